//! Names that are there twice in an object: one reader takes the first, another the last.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// How many names are compared one by one; more are looked up.
const FEW: usize = 16;

/// The first name in a JSON text that is there twice in the same object, with the names on the way there: `items.0.price`. What is not
/// JSON is for others to find.
pub fn twice(text: &str) -> Option<String> {
    let mut found = Vec::new();
    // Why it cannot be read on is in what was found, or the text is not JSON.
    let ended = Look(&mut found).deserialize(&mut serde_json::Deserializer::from_str(text));
    found.reverse();
    (ended.is_err() && !found.is_empty()).then(|| found.join("."))
}

/// A look into a value. It fails with the first name that is there twice, and leaves the way there, from the inside out.
struct Look<'a>(&'a mut Vec<String>);

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// The names of one object.
#[derive(Default)]
struct Names {
    few: Vec<String>,
    many: HashSet<String>,
}

impl Names {
    /// Whether it is a name that was not there.
    fn take(&mut self, name: &str) -> bool {
        if self.few.iter().any(|known| known == name) || self.many.contains(name) {
            return false;
        }
        match self.few.len() < FEW {
            true => self.few.push(name.to_owned()),
            false => drop(self.many.insert(name.to_owned())),
        }
        true
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        words.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = Names::default();
        while let Some(name) = map.next_key::<String>()? {
            if !names.take(&name) {
                self.0.push(name);
                return Err(serde::de::Error::custom("a name is there twice"));
            }
            if let Err(error) = map.next_value_seed(Look(self.0)) {
                if !self.0.is_empty() {
                    self.0.push(name);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for n in 0_usize.. {
            match items.next_element_seed(Look(self.0)) {
                Ok(Some(())) => {}
                Ok(None) => return Ok(()),
                Err(error) => {
                    if !self.0.is_empty() {
                        self.0.push(n.to_string());
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_there_twice_is_found_however_deep() {
        assert_eq!(twice(r#"{"a":1,"a":1}"#).as_deref(), Some("a"));
        assert_eq!(twice(r#"{"a":1,"\u0061":2}"#).as_deref(), Some("a"));
        assert_eq!(twice(r#"{"a":1,"b":[{"c":1},{"c":1,"c":2}]}"#).as_deref(), Some("b.1.c"));
        let many: String = (0..100).map(|n| format!(r#""n{n}":0,"#)).collect();
        assert_eq!(twice(&format!(r#"{{{many}"n50":1}}"#)).as_deref(), Some("n50"));
        assert_eq!(twice(&format!(r#"{{{many}"other":1}}"#)), None);
    }

    #[test]
    fn equal_names_in_different_objects_are_fine_and_what_is_no_json_is_not_ours() {
        for text in [
            r#"{"a":[{"c":1},{"c":2}],"c":{"a":null,"b":true},"d":-1.5e3,"e":"x"}"#,
            "[]",
            "7",
            "",
            "{",
            r#"{"a":}"#,
            r#"{"a":{"b":1e999}}"#,
        ] {
            assert_eq!(twice(text), None, "{text}");
        }
        assert_eq!(twice(&"[".repeat(10_000)), None, "too deep");
    }
}
