//! What a JSON reader would silently make something else of: names that are there twice, and numbers that it cannot hold.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::twice::{self, Read};

/// What is wrong with a text that is JSON, and where: the names on the way there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unsound {
    /// A name is there twice.
    Twice(Vec<String>),
    /// A whole number is larger than what is kept exactly.
    Beyond(Vec<String>, String),
}

/// What in a text a reader would make something else of: the first name that is there twice, else the first such number. What is not JSON is for others to find.
pub(super) fn unsound(text: &str) -> Option<Unsound> {
    // What cannot be read, or is deeper than a reader goes, is not looked into: each level of it would take more of the stack.
    let Read { twice, .. } = twice::read(text).ok()?;
    if let Some(at) = twice {
        return Some(Unsound::Twice(at));
    }
    let mut found = None;
    let mut at = Vec::new();
    let look = Look { at: &mut at, found: &mut found };
    // Why it cannot be read on is in what was found.
    let _ = look.deserialize(&mut serde_json::Deserializer::from_str(text));
    found
}

/// A look into a value. It ends with the first number that it finds.
struct Look<'a> {
    at: &'a mut Vec<String>,
    found: &'a mut Option<Unsound>,
}

impl Look<'_> {
    /// Looks at a value that stands alone.
    fn alone(&mut self, text: &str) {
        let whole = text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) && !text.contains(['.', 'e', 'E']);
        if whole && text.parse::<i64>().is_err() && text.parse::<u64>().is_err() {
            *self.found = Some(Unsound::Beyond(self.at.clone(), text.to_owned()));
        }
    }
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        let raw: &'de RawValue = serde::Deserialize::deserialize(deserializer)?;
        let text = raw.get();
        if text.starts_with(['{', '[']) {
            // Each level is read once more for each level around it, which are few.
            let mut inner = serde_json::Deserializer::from_str(text);
            let _ = inner.deserialize_any(self);
        } else {
            self.alone(text);
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        words.write_str("an object or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            self.at.push(name);
            map.next_value_seed(Look { at: self.at, found: self.found })?;
            if self.found.is_some() {
                return Ok(());
            }
            self.at.pop();
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for n in 0_usize.. {
            self.at.push(n.to_string());
            if items.next_element_seed(Look { at: self.at, found: self.found })?.is_none() || self.found.is_some() {
                return Ok(());
            }
            self.at.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_twice_or_beyond_all_numbers_is_found_however_deep() {
        let at = |path: &str| path.split('.').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(unsound(r#"{"a":1,"b":[{"c":1,"c":2}]}"#), Some(Unsound::Twice(at("b.0.c"))));
        assert_eq!(unsound(r#"{"a":1,"\u0061":2}"#), Some(Unsound::Twice(at("a"))));
        let beyond = |path, number: &str| Some(Unsound::Beyond(at(path), number.to_owned()));
        assert_eq!(unsound(r#"{"a":[1,18446744073709551616]}"#), beyond("a.1", "18446744073709551616"));
        assert_eq!(unsound(r#"{"a":-9223372036854775809}"#), beyond("a", "-9223372036854775809"));
        for fine in [
            r#"{"a":[{"c":1},{"c":2}],"c":18446744073709551615,"d":-9223372036854775808}"#,
            r#"{"a":1e30,"b":12345678901234567890.5,"c":"18446744073709551616","d":null}"#,
            "[]",
            "7",
        ] {
            assert_eq!(unsound(fine), None, "{fine}");
        }
    }

    #[test]
    fn what_is_deeper_than_a_reader_goes_is_left_to_the_reader() {
        for levels in [100, 200, 100_000] {
            let deep = format!("{}18446744073709551616{}", "[".repeat(levels), "]".repeat(levels));
            let found = unsound(&deep);
            assert_eq!(found.is_some(), levels == 100, "{levels}: {found:?}");
        }
    }
}
