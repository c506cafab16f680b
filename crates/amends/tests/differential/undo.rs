//! Takes back what Amends rewrites, and leaves every other byte.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A member of an object, as it was written.
struct Member<'a> {
    name: String,
    /// Where its name begins in the object's text.
    start: usize,
    value: &'a RawValue,
}

/// The members of an object, in order, doubled names too.
fn members(text: &str) -> Vec<Member<'_>> {
    struct All<'a>(&'a str);
    impl<'a> Visitor<'a> for All<'a> {
        type Value = Vec<Member<'a>>;
        fn expecting(&self, words: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            words.write_str("an object")
        }
        fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Self::Value, M::Error> {
            let mut all = Vec::new();
            while let Some((name, value)) = map.next_entry::<&'a RawValue, &'a RawValue>()? {
                let start = name.get().as_ptr() as usize - self.0.as_ptr() as usize;
                let name = serde_json::from_str(name.get()).expect("a name");
                all.push(Member { name, start, value });
            }
            Ok(all)
        }
    }
    serde_json::Deserializer::from_str(text).deserialize_map(All(text)).unwrap_or_default()
}

/// The value of a member, as it was written.
pub(crate) fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    members(text).into_iter().find(|member| member.name == name).map(|member| member.value.get())
}

/// The object with another value for a member that it has.
pub(crate) fn with(text: &str, name: &str, other: &str) -> String {
    match value(text, name) {
        Some(old) => {
            let at = old.as_ptr() as usize - text.as_ptr() as usize;
            format!("{}{other}{}", &text[..at], &text[at + old.len()..])
        }
        None => text.to_owned(),
    }
}

/// The object without the members of which that is true, and without the commas that came with them.
pub(crate) fn without(text: &str, gone: impl Fn(&str) -> bool) -> String {
    let mut text = text.to_owned();
    while let Some((start, end)) = place(&text, &gone) {
        let (before, after) = (&text[..start], &text[end..]);
        text = match before.strip_suffix(',') {
            Some(before) => format!("{before}{after}"),
            None => format!("{before}{}", after.strip_prefix(',').unwrap_or(after)),
        };
    }
    text
}

fn place(text: &str, gone: &impl Fn(&str) -> bool) -> Option<(usize, usize)> {
    let member = members(text).into_iter().find(|member| gone(&member.name))?;
    let value = member.value.get();
    Some((member.start, value.as_ptr() as usize - text.as_ptr() as usize + value.len()))
}

/// The object whose `_meta` has none of the members of which that is true; without `_meta`, if nothing else was in it.
pub(crate) fn without_meta(text: &str, gone: impl Fn(&str) -> bool) -> String {
    let Some(meta) = value(text, "_meta") else {
        return text.to_owned();
    };
    let rest = without(meta, gone);
    if rest == "{}" && rest != meta { without(text, |name| name == "_meta") } else { with(text, "_meta", &rest) }
}

#[test]
fn what_is_undone_leaves_every_other_byte() {
    let text = r#"{ "a":1.0 ,"x":1,"_meta":{"b":1e2,"amends/x":{"y":[1]}},"x":2 }"#;
    assert_eq!(value(text, "a"), Some("1.0"));
    assert_eq!(without(text, |name| name == "x"), r#"{ "a":1.0 ,"_meta":{"b":1e2,"amends/x":{"y":[1]}} }"#);
    let ours = |name: &str| name.starts_with("amends/");
    assert_eq!(without_meta(text, ours), r#"{ "a":1.0 ,"x":1,"_meta":{"b":1e2},"x":2 }"#);
    assert_eq!(without_meta(r#"{"_meta":{"amends/x":1},"b":2}"#, ours), r#"{"b":2}"#);
    assert_eq!(without_meta(r#"{"b":2,"_meta":{"amends/x":1}}"#, ours), r#"{"b":2}"#);
    assert_eq!(without_meta(r#"{"_meta":{},"b":2}"#, ours), r#"{"_meta":{},"b":2}"#);
    assert_eq!(with(r#"{"a": 1 ,"b":2}"#, "a", "\"t\""), r#"{"a": "t" ,"b":2}"#);
}
