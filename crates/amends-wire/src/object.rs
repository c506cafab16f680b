//! A look at the members of a JSON object without reading into their values.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The top-level members of a JSON object, each a slice of the text it was read from. Names may repeat; the last counts.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    members: Vec<Member<'a>>,
}

/// One member of an object: its name as written, and its value.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The name with its quotes and escapes, as it stands in the text.
    pub key: &'a RawValue,
    /// The value as it stands in the text.
    pub value: &'a RawValue,
}

impl<'a> Object<'a> {
    /// Reads the members of an object; nothing if the text is not a whole JSON object.
    ///
    /// ```
    /// use amends_wire::Object;
    ///
    /// let object = Object::parse(r#"{"n": 1.0, "deep": {"a": []}}"#).unwrap();
    /// assert_eq!(object.get("n").unwrap().get(), "1.0");
    /// assert_eq!(object.get("deep").unwrap().get(), r#"{"a": []}"#);
    /// ```
    pub fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The value of that member; the last one where the name repeats.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.members.iter().rev().find(|member| member.is(name)).map(|member| member.value)
    }

    /// The value of that member, if it is a string.
    pub fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(string)
    }

    /// Whether the name is there more than once.
    pub fn repeats(&self, name: &str) -> bool {
        self.members.iter().filter(|member| member.is(name)).nth(1).is_some()
    }

    /// The names that are there more than once.
    pub fn repeated(&self) -> HashSet<Cow<'a, str>> {
        let mut seen = HashSet::new();
        self.members.iter().map(Member::name).filter(|name| !seen.insert(name.clone())).collect()
    }

    /// All members in their order.
    pub fn members(&self) -> &[Member<'a>] {
        &self.members
    }
}

impl<'a> Member<'a> {
    /// Its name, without quotes and escapes.
    pub fn name(&self) -> Cow<'a, str> {
        string(self.key).unwrap_or(Cow::Borrowed(self.key.get()))
    }

    fn is(&self, name: &str) -> bool {
        self.name() == name
    }
}

/// The text of a JSON string, borrowed where it has no escapes; nothing if the value is not a string that can be read.
pub fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str::<String>(raw.get()).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

/// A text as a JSON string, with its quotes.
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always JSON")
}

/// Whether a value is an object, by its first character.
pub(crate) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// Whether a value is an array, by its first character.
pub(crate) fn is_array(raw: &RawValue) -> bool {
    raw.get().starts_with('[')
}

/// Whether a value is `null`.
pub(crate) fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Vec<Member<'de>>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(8);
                while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    members.push(Member { key, value });
                }
                Ok(members)
            }
        }

        Ok(Self { members: deserializer.deserialize_map(Members)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_through_their_escapes_and_the_last_of_a_name_counts() {
        let object = Object::parse(r#" {"\u0069d":1,"x":[{"id":9}],"id": "two" } "#).unwrap();
        assert_eq!(object.get("id").unwrap().get(), "\"two\"");
        assert!(object.repeats("id") && !object.repeats("x"));
        assert!(object.repeated().contains("id") && object.repeated().len() == 1);
        assert_eq!(object.string("id").unwrap(), "two");
        assert!(object.get("y").is_none());
    }

    #[test]
    fn what_is_not_a_whole_object_is_nothing() {
        for text in ["", "[]", "1", "{", "{\"a\":1}x", "{\"a\"}", "{1:2}", "{\"a\":\u{1}}"] {
            assert!(Object::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_lone_surrogate_is_no_string_but_no_panic_either() {
        let object = Object::parse(r#"{"\ud800":"\ud800"}"#).unwrap();
        assert_eq!(object.members()[0].name(), r#""\ud800""#);
        assert!(string(object.members()[0].value).is_none());
    }
}
