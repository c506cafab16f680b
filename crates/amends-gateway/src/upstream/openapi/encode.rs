//! Values as an address, a form or a header can carry them.

use std::fmt::Write;

use amends_wire::object::{Object, string};
use serde_json::value::RawValue;

/// A text as one part of a path.
pub(super) fn path(text: &str) -> String {
    encoded(text, b"-._~")
}

/// A text as a name or a value in a query or a form.
pub(super) fn query(text: &str) -> String {
    encoded(text, b"-._~")
}

fn encoded(text: &str, kept: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing into a text cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// A value that is neither a list nor an object as text; numbers as they were written, null as nothing.
pub(super) fn scalar(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => string(value).map(|text| text.into_owned()),
        b'{' | b'[' => None,
        b'n' => Some(String::new()),
        _ => Some(value.get().to_owned()),
    }
}

/// The members of an object as a form: lists one by one, objects as `name[key]`.
pub(super) fn form<'a>(members: impl IntoIterator<Item = (String, &'a RawValue)>) -> String {
    let mut pairs = Vec::new();
    for (name, value) in members {
        put(&query(&name), value, 0, &mut pairs);
    }
    pairs.join("&")
}

fn put(name: &str, value: &RawValue, depth: usize, pairs: &mut Vec<String>) {
    if let Some(text) = scalar(value) {
        pairs.push(format!("{name}={}", query(&text)));
    } else if depth > 16 {
        pairs.push(format!("{name}={}", query(value.get())));
    } else if let Some(object) = Object::parse(value.get()) {
        for member in object.members() {
            put(&format!("{name}%5B{}%5D", query(&member.name())), member.value, depth + 1, pairs);
        }
    } else if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(value.get()) {
        for item in items {
            put(name, item, depth + 1, pairs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_keeps_numbers_and_nests_by_brackets() {
        let object = Object::parse(r#"{"a b": 1.50, "c": {"d": [true, "é&="]}, "e": null}"#).unwrap();
        let members = object.members().iter().map(|member| (member.name().into_owned(), member.value));
        assert_eq!(form(members), "a%20b=1.50&c%5Bd%5D=true&c%5Bd%5D=%C3%A9%26%3D&e=");
    }
}
