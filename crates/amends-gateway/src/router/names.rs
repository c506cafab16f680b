//! The names under which what upstreams offer is served.

use std::collections::{BTreeMap, BTreeSet};

/// The longest name that model providers take.
const NAME_MAX: usize = 64;

/// One upstream's names, as it gives them.
#[derive(Debug)]
pub struct Offered<'a> {
    /// The upstream's name.
    pub upstream: &'a str,
    /// What its names begin with; nothing where they stay as they are.
    pub prefix: &'a str,
    /// Its names.
    pub names: Vec<&'a str>,
}

/// The served name of each name of each upstream, in their order; nothing where there is none left for it.
///
/// A name that two upstreams would be served under is served for neither: it would then depend on who was listed first which of
/// them a call reaches. Each gets its upstream's name before it. An upstream that gives a name twice is served with the first.
pub fn assign(offers: &[Offered<'_>]) -> Vec<Vec<Option<String>>> {
    let mut wanted: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for offer in offers {
        for name in &offer.names {
            wanted.entry(served(offer.prefix, name)).or_default().insert(offer.upstream);
        }
    }
    let mut taken = BTreeSet::new();
    let mut assigned = Vec::new();
    for offer in offers {
        let mut names = Vec::new();
        for name in &offer.names {
            let mut served_name = served(offer.prefix, name);
            if wanted[&served_name].len() > 1 {
                served_name = served(&format!("{}__", offer.upstream), name);
                // Its own name may be what another wants for something else.
                let others = wanted.get(&served_name).is_some_and(|by| by.iter().any(|by| *by != offer.upstream));
                if others {
                    names.push(None);
                    continue;
                }
            }
            names.push(taken.insert(served_name.clone()).then_some(served_name));
        }
        assigned.push(names);
    }
    assigned
}

/// A name behind a prefix: at most 64 of `A-Za-z0-9_-`, which every model provider takes. Without a prefix it stays as it is.
pub fn served(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        return name.to_owned();
    }
    let sound = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain = format!("{prefix}{name}");
    let mut served: String = plain.chars().map(|c| if sound(c) { c } else { '_' }).collect();
    if served == plain && served.len() <= NAME_MAX {
        return served;
    }
    // Two names that are cut or mended alike still differ.
    served.truncate(NAME_MAX - 9);
    format!("{served}_{}", &amends_ledger::digest(name.as_bytes()).as_str()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(offers: &[(&str, &str, &[&str])]) -> Vec<Vec<Option<String>>> {
        let offers: Vec<_> = offers
            .iter()
            .map(|(upstream, prefix, names)| Offered { upstream, prefix, names: names.to_vec() })
            .collect();
        assign(&offers)
    }

    fn some(names: &[&str]) -> Vec<Option<String>> {
        names.iter().map(|name| Some((*name).to_owned())).collect()
    }

    #[test]
    fn names_get_their_prefix_and_stay_apart() {
        let both = assigned(&[("a", "a__", &["get", "put"]), ("b", "b__", &["get"])]);
        assert_eq!(both, [some(&["a__get", "a__put"]), some(&["b__get"])]);
    }

    #[test]
    fn a_name_that_two_want_is_given_to_neither() {
        let both = assigned(&[("a", "", &["get", "only"]), ("b", "", &["get"])]);
        assert_eq!(both, [some(&["a__get", "only"]), some(&["b__get"])]);
        // Whoever is listed first changes nothing.
        let other = assigned(&[("b", "", &["get"]), ("a", "", &["get", "only"])]);
        assert_eq!(other, [some(&["b__get"]), some(&["a__get", "only"])]);
    }

    #[test]
    fn nobody_gets_a_name_that_means_another_upstream() {
        let both = assigned(&[("a", "", &["get", "b__get"]), ("b", "", &["get"])]);
        assert_eq!(both, [some(&["a__get", "b__get"]), vec![None]]);
        assert_eq!(assigned(&[("a", "", &["x", "x"])]), [vec![Some("x".to_owned()), None]]);
    }

    #[test]
    fn a_served_name_is_one_that_model_providers_take() {
        let long = "x".repeat(100);
        let names = assigned(&[("a", "a__", &["read.file", "read/file", &long, "ä"])]);
        for name in names[0].iter().flatten() {
            assert!(name.len() <= NAME_MAX && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)));
        }
        let distinct: BTreeSet<_> = names[0].iter().collect();
        assert_eq!(distinct.len(), 4);
        assert_eq!(assigned(&[("a", "", &["read.file"])]), [some(&["read.file"])]);
    }
}
