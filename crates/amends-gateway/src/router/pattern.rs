//! Which of an upstream's tools are served.

/// What an operator exposes and hides of an upstream's tools, by their names over there. `*` stands for anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns {
    /// What is served; everything where nothing is named.
    pub expose: Vec<String>,
    /// What is not, even where it is exposed.
    pub hide: Vec<String>,
}

impl Patterns {
    /// Whether a tool of that name is served.
    pub fn shows(&self, name: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, name));
        (self.expose.is_empty() || any(&self.expose)) && !any(&self.hide)
    }

    /// Whether everything is served as it is.
    pub fn is_open(&self) -> bool {
        self.expose.is_empty() && self.hide.is_empty()
    }
}

/// Whether a name fits a pattern. Each `*` takes as little as it can, which loses nothing: the pieces between are fixed.
fn fits(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_and_nothing() {
        for (pattern, name, fit) in [
            ("get_order", "get_order", true),
            ("get_order", "get_orders", false),
            ("get_*", "get_", true),
            ("get_*", "forget_it", false),
            ("*_order", "get_order", true),
            ("*ab*ab", "ab", false),
            ("*ab*ab", "xabab", true),
            ("a*b*c", "a-c-b-c", true),
            ("*", "", true),
            ("", "x", false),
            ("ä*", "äö", true),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_hidden_is_hidden_even_where_it_is_exposed() {
        let patterns = |expose: &[&str], hide: &[&str]| Patterns {
            expose: expose.iter().map(|&pattern| pattern.to_owned()).collect(),
            hide: hide.iter().map(|&pattern| pattern.to_owned()).collect(),
        };
        assert!(patterns(&[], &[]).shows("x"));
        assert!(patterns(&["get_*"], &[]).shows("get_x") && !patterns(&["get_*"], &[]).shows("set_x"));
        assert!(!patterns(&["get_*"], &["*_secret"]).shows("get_secret"));
    }
}
