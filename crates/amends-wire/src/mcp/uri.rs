//! Which addresses a template of resources stands for.

/// How long a template and an address may be to be held against each other.
const LENGTH_MAX: usize = 4096;

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Exactly that.
    Literal(String),
    /// Something within one segment of a path.
    Segment,
    /// Anything.
    Any,
}

/// The form of an address, RFC 6570, as far as it tells which addresses have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

impl Template {
    /// Reads a template; nothing where a brace is left open, or it is too long.
    ///
    /// ```
    /// use amends_wire::mcp::uri::Template;
    ///
    /// let template = Template::parse("users://{name}/posts{?page}").unwrap();
    /// assert!(template.fits("users://ada/posts?page=2"));
    /// assert!(!template.fits("users://ada/bob/posts"));
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > LENGTH_MAX {
            return None;
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let close = open + rest[open..].find('}')?;
            if open > 0 {
                parts.push(Part::Literal(rest[..open].to_owned()));
            }
            let simple = rest[open + 1..close].starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '%');
            parts.push(if simple { Part::Segment } else { Part::Any });
            rest = &rest[close + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Some(Self { parts })
    }

    /// Whether an address has this form.
    pub fn fits(&self, uri: &str) -> bool {
        if uri.len() > LENGTH_MAX {
            return false;
        }
        let bytes = uri.as_bytes();
        // Where one can be in the address after each part. The work is bounded by the lengths of both.
        let mut at = vec![false; bytes.len() + 1];
        at[0] = true;
        for part in &self.parts {
            let mut next = vec![false; at.len()];
            let mut inside = false;
            for here in 0..at.len() {
                match part {
                    Part::Literal(literal) => {
                        if at[here] && bytes[here..].starts_with(literal.as_bytes()) {
                            next[here + literal.len()] = true;
                        }
                    }
                    Part::Segment => {
                        next[here] = inside;
                        inside = (inside || at[here]) && bytes.get(here) != Some(&b'/');
                    }
                    Part::Any => {
                        inside |= at[here];
                        next[here] = inside;
                    }
                }
            }
            at = next;
        }
        at[bytes.len()]
    }

    /// How much of it is fixed: of two templates that fit, the one that fixes more is meant.
    pub fn fixed(&self) -> usize {
        self.parts.iter().map(|part| if let Part::Literal(literal) = part { literal.len() } else { 0 }).sum()
    }
}

/// The scheme of an address, in lower case; nothing where it has none.
pub fn scheme(uri: &str) -> Option<String> {
    let (scheme, _) = uri.split_once(':')?;
    let sound = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    sound.then(|| scheme.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(template: &str, uri: &str) -> bool {
        Template::parse(template).unwrap().fits(uri)
    }

    #[test]
    fn a_variable_stands_for_one_segment_and_an_open_one_for_many() {
        assert!(fits("a://x/{id}", "a://x/7") && !fits("a://x/{id}", "a://x/7/8"));
        assert!(!fits("a://x/{id}", "a://x/"), "a variable stands for something");
        assert!(fits("a://{+path}", "a://x/y/z") && fits("a://x{/rest*}", "a://x/y/z"));
        assert!(fits("a://x{?q}", "a://x") && fits("a://x{?q}", "a://x?q=1"));
        assert!(fits("a://{x}-{y}", "a://1-2") && !fits("a://{x}-{y}", "a://12"));
        assert!(fits("a://x", "a://x") && !fits("a://x", "a://xy"));
        assert!(fits("", "") && !fits("", "a"));
        assert!(fits("a://{x}", "a://\u{e4}"));
    }

    #[test]
    fn odd_templates_and_long_ones_are_bounded() {
        assert!(Template::parse("a://{x").is_none());
        assert!(Template::parse(&"x".repeat(LENGTH_MAX + 1)).is_none());
        let many = "{x}".repeat(1000);
        assert!(!fits(&many, &"y".repeat(LENGTH_MAX + 1)));
        assert!(fits(&many, &"y".repeat(2000)));
        assert!(Template::parse("a://b/{x}").unwrap().fixed() > Template::parse("{+x}").unwrap().fixed());
    }

    #[test]
    fn a_scheme_is_read_where_there_is_one() {
        assert_eq!(scheme("HTTP://x").as_deref(), Some("http"));
        assert_eq!((scheme("x"), scheme(":x"), scheme("1a:b"), scheme("a b:c")), (None, None, None, None));
    }
}
