//! Reading JSON that may have a name twice in one object: one reader takes the first, another the last.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// What a JSON text says.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// The value, with the last of what is there twice.
    pub value: Value,
    /// The first name that is there twice in the same object, after the names on the way there.
    pub twice: Option<Vec<String>>,
}

/// Reads a JSON text once, and sees which of its names is there twice.
pub fn read(text: &str) -> serde_json::Result<Read> {
    let mut found = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Reader(&mut found).deserialize(&mut deserializer)?;
    deserializer.end()?;
    found.reverse();
    Ok(Read { value, twice: (!found.is_empty()).then_some(found) })
}

/// Reads a value. It leaves the way to the first name that is there twice, from the inside out.
struct Reader<'a>(&'a mut Vec<String>);

impl Reader<'_> {
    /// Reads what is inside, under that name.
    fn inside<T, E>(self, name: &dyn fmt::Display, read: impl FnOnce(Reader<'_>) -> Result<T, E>) -> Result<T, E> {
        let before = self.0.len();
        let value = read(Reader(self.0))?;
        if before == 0 && !self.0.is_empty() {
            self.0.push(name.to_string());
        }
        Ok(value)
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        words.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = Reader(self.0).inside(&name, |reader| map.next_value_seed(reader))?;
            if self.0.is_empty() && members.contains_key(&name) {
                self.0.push(name.clone());
            }
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = Reader(self.0).inside(&read.len(), |reader| items.next_element_seed(reader))? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_there_twice_is_found_however_deep() {
        let twice = |text: &str| read(text).unwrap().twice.map(|at| at.join("."));
        assert_eq!(twice(r#"{"a":1,"a":1}"#).as_deref(), Some("a"));
        assert_eq!(twice(r#"{"a":1,"\u0061":2}"#).as_deref(), Some("a"));
        assert_eq!(twice(r#"{"a":1,"b":[{"c":1},{"c":1,"c":2}],"a":3}"#).as_deref(), Some("b.1.c"));
        assert_eq!(twice(r#"{"a":{"b":{"x":1,"x":1}},"c":[{"y":1,"y":1}],"d":1}"#).as_deref(), Some("a.b.x"));
        assert_eq!(twice(r#"{"a":[{"c":1},{"c":2}],"c":{"a":null,"b":true}}"#), None);
    }

    #[test]
    fn the_value_is_what_any_reader_reads() {
        for text in [
            r#"{"b":[{"c":1},{"c":-2,"c":3}],"a":{"z":null,"y":true},"d":-1.5e3,"e":"\u00e9\n"}"#,
            r#"[18446744073709551615,-9223372036854775808,123456789012345678901,0.1,[],{}]"#,
            "7",
            " \"x\" ",
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(read(text).unwrap().value, value, "{text}");
        }
        for text in ["", "{", r#"{"a":}"#, r#"{"a":{"b":1e999}}"#, "{}{}", "\"\\ud800\"", &"[".repeat(10_000)] {
            assert!(read(text).is_err() && serde_json::from_str::<Value>(text).is_err(), "{text}");
        }
    }
}
