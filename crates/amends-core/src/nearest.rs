//! The nearest names to one that is not known.

use crate::limits::NEAREST_MAX;

/// The names that are close to `wanted`, nearest first, at most three.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let wanted: String = wanted.chars().take(64).collect::<String>().to_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .map(|name| (likeness(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score >= 0.75)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(NEAREST_MAX).map(|(_, name)| name.to_owned()).collect()
}

/// How like two names are, from 0 to 1. One slip of the finger in a short name is told by how many there are: by their letters
/// alone, `pya` is hardly like `pay`.
fn likeness(wanted: &str, name: &str) -> f64 {
    let slipped = wanted.chars().count().min(name.chars().count()) >= 3 && strsim::osa_distance(wanted, name) <= 1;
    strsim::jaro_winkler(wanted, name).max(if slipped { 0.9 } else { 0.0 })
}

/// Serde's word about an unknown key, with the nearest known one instead of all of them. Other words stay as they are.
pub fn unknown_key(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    match (message.starts_with("unknown field"), quoted.next()) {
        (true, Some(unknown)) => {
            let known: Vec<&str> = quoted.collect();
            let hint = match nearest(unknown, known.iter().copied()).first() {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: `{}`", known.join("`, `")),
            };
            format!("unknown key `{unknown}`; {hint}")
        }
        _ => message.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typo_finds_its_name_and_a_stranger_finds_nothing() {
        assert_eq!(nearest("isue_refund", ["issue_refund", "charge_card"]), ["issue_refund"]);
        assert!(nearest("zzz", ["issue_refund", "charge_card"]).is_empty());
        assert_eq!(nearest("pya", ["drop", "pay", "take"]), ["pay"], "two letters in the wrong order");
        assert!(nearest("go", ["do", "no"]).is_empty(), "of two letters, one is half");
    }
}
