//! What may not pass between agents and tools.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::category::Category;
use super::field::Field;
use super::find::{self, How};
use super::pattern::HINT;
use super::{QUOTED_MIN, put};

/// How deep JSON is followed that is written inside texts of JSON.
const TEXTS_MAX: usize = 2;
/// How many values of declared fields are looked for.
const QUOTED_MAX: usize = 64;

/// What may not pass. It looks at JSON as it is written, and leaves every byte as it is that it does not mask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sieve {
    categories: BTreeSet<Category>,
    fields: Vec<Field>,
}

/// A value that was declared, and what it is.
struct Declared {
    text: String,
    category: Category,
}

impl Sieve {
    /// One that stops those categories: by their shapes, and in the fields that are declared to hold them.
    pub fn new(categories: impl IntoIterator<Item = Category>, fields: impl IntoIterator<Item = Field>) -> Self {
        let categories: BTreeSet<Category> = categories.into_iter().collect();
        let fields = fields.into_iter().filter(|field| field.category().is_some_and(|it| categories.contains(&it)));
        Self { fields: fields.collect(), categories }
    }

    /// Which categories are in a call's arguments.
    pub fn finds(&self, arguments: &str) -> BTreeSet<Category> {
        let mut found = BTreeSet::new();
        if !self.fields.is_empty()
            && let Ok(document) = serde_json::from_str::<Value>(arguments)
        {
            let there = |field: &&Field| field.values(&document).into_iter().any(|value| !value.is_null());
            found.extend(self.fields.iter().filter(there).filter_map(Field::category));
        }
        if self.may_find(arguments) {
            self.walk(arguments, &[], TEXTS_MAX, &mut found);
        }
        found
    }

    /// A result with what may not pass masked, and what that was; nothing where nothing is. `structured` reads what the declared
    /// fields are fields of, and is asked only where there are any.
    pub fn masked(
        &self,
        result: &str,
        structured: impl FnOnce() -> Option<Value>,
    ) -> Option<(String, BTreeSet<Category>)> {
        let declared = if self.fields.is_empty() { Vec::new() } else { self.declared(structured()) };
        if declared.is_empty() && !self.may_find(result) {
            return None;
        }
        let mut found = BTreeSet::new();
        let masked = self.walk(result, &declared, TEXTS_MAX, &mut found);
        (!found.is_empty()).then(|| (masked.into_owned(), found))
    }

    /// Masks what may not pass in a plain text.
    pub fn mask_text(&self, text: &mut String) {
        if let Some(masked) = self.text(text, &[], &mut BTreeSet::new()) {
            *text = masked;
        }
    }

    /// Whether there is nothing that it holds back.
    pub fn lets_all_pass(&self) -> bool {
        self.categories.is_empty() && self.fields.is_empty()
    }

    /// Whether it is worth looking at all. Only the floor's shapes are known well enough to tell.
    fn may_find(&self, text: &str) -> bool {
        let more = self.categories.iter().any(|category| !Category::FLOOR.contains(category) && category.has_pattern());
        !self.categories.is_empty() && (more || HINT.is_match(text))
    }

    fn declared(&self, document: Option<Value>) -> Vec<Declared> {
        let Some(document) = document else { return Vec::new() };
        let mut declared = Vec::new();
        for field in &self.fields {
            let Some(category) = field.category() else { continue };
            for value in field.values(&document) {
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(number) => number.to_string(),
                    Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => continue,
                };
                if text.len() >= QUOTED_MIN && declared.len() < QUOTED_MAX {
                    declared.push(Declared { text, category });
                }
            }
        }
        // A value that holds another one goes first, or what is left of it would not be found.
        declared.sort_by_key(|declared| std::cmp::Reverse(declared.text.len()));
        declared
    }

    /// Goes over JSON: each text and each number in it is looked at by itself.
    fn walk<'a>(
        &self,
        json: &'a str,
        declared: &[Declared],
        texts: usize,
        found: &mut BTreeSet<Category>,
    ) -> Cow<'a, str> {
        let bytes = json.as_bytes();
        let mut changed: Option<String> = None;
        let (mut at, mut kept) = (0, 0);
        while at < bytes.len() {
            let end = match bytes[at] {
                b'"' => end_of_text(bytes, at),
                b'0'..=b'9' => end_of_number(bytes, at),
                _ => {
                    at += 1;
                    continue;
                }
            };
            if let Some(instead) = self.token(&json[at..end], declared, texts, found) {
                let so_far = changed.get_or_insert_default();
                so_far.push_str(&json[kept..at]);
                so_far.push_str(&instead);
                kept = end;
            }
            at = end;
        }
        match changed {
            Some(mut changed) => {
                changed.push_str(&json[kept..]);
                Cow::Owned(changed)
            }
            None => Cow::Borrowed(json),
        }
    }

    /// What stands in the place of a text or a number; nothing where it may stay.
    fn token(
        &self,
        token: &str,
        declared: &[Declared],
        texts: usize,
        found: &mut BTreeSet<Category>,
    ) -> Option<String> {
        let written = |text: &str| Value::String(text.to_owned()).to_string();
        if !token.starts_with('"') {
            return self.text(token, declared, found).map(|masked| written(&masked));
        }
        let inner = token.get(1..token.len() - 1)?;
        let text: Cow<'_, str> = match inner.contains('\\') {
            false => Cow::Borrowed(inner),
            // A text that cannot be read is looked at as it is written.
            true => serde_json::from_str(token).map_or(Cow::Borrowed(inner), Cow::Owned),
        };
        if let (Some(deeper), true) = (texts.checked_sub(1), text.trim_start().starts_with(['{', '['])) {
            let masked = match self.walk(&text, declared, deeper, found) {
                Cow::Owned(masked) => Some(masked),
                Cow::Borrowed(_) => None,
            };
            return masked.map(|masked| written(&masked));
        }
        self.text(&text, declared, found).map(|masked| written(&masked))
    }

    /// A text with what may not pass masked; nothing where nothing is.
    fn text(&self, text: &str, declared: &[Declared], found: &mut BTreeSet<Category>) -> Option<String> {
        let mut masked = Cow::Borrowed(text);
        for declared in declared {
            if masked.contains(declared.text.as_str()) {
                found.insert(declared.category);
                masked = Cow::Owned(masked.replace(declared.text.as_str(), declared.category.mask()));
            }
        }
        let places = find::find(&masked, &self.categories, How::Sure);
        if !places.is_empty() {
            found.extend(places.iter().map(|place| place.category));
            masked = Cow::Owned(put(&masked, &places));
        }
        match masked {
            Cow::Owned(masked) => Some(masked),
            Cow::Borrowed(_) => None,
        }
    }
}

/// The end of a text that begins there, its last quote included.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of a number that begins there.
fn end_of_number(bytes: &[u8], start: usize) -> usize {
    let part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    start + bytes[start..].iter().take_while(|byte| part(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floor() -> Sieve {
        Sieve::new(Category::FLOOR, [])
    }

    fn masked(json: &str) -> Option<String> {
        floor().masked(json, || None).map(|(masked, _)| masked)
    }

    #[test]
    fn what_may_not_pass_is_masked_and_every_other_byte_stays() {
        assert_eq!(
            masked(r#"{ "z":1,  "a": ["call\nAKIAIOSFODNN7EXAMPLE", 4111111111111111], "b":"\u00e9" }"#).unwrap(),
            r#"{ "z":1,  "a": ["call\n[redacted:credential]", "[redacted:payment_card]"], "b":"\u00e9" }"#
        );
        let nested = r#"{"text":"{\"note\":\"it is\\nghp_0123456789abcdefghijABCDEFGHIJ456789\"}"}"#;
        assert_eq!(masked(nested).unwrap(), r#"{"text":"{\"note\":\"it is\\n[redacted:credential]\"}"}"#);
        let (_, found) = floor().masked(r#"["123-45-6789"]"#, || None).unwrap();
        assert_eq!(found, BTreeSet::from([Category::GovernmentId]));
    }

    #[test]
    fn ordinary_things_pass() {
        for json in [
            r#"{"order":"ord_1001","amount":12.5,"idempotency_key":"c7f0a3e2-4d57-4f0e-9a53-0d2f1f7c7a11"}"#,
            r#"{"next_token":"abc123","page_token":"CAUQAA","cursor":"eyJ"}"#,
            r#"{"at":1731726337000,"ns":1731726337000123456,"id":"4532015112830367"}"#,
            r#"{"token":"rev_0123456789abcdef0123456789abcdef"}"#,
            r#"{"class":"sk-loading-indicator-animation","url":"https://host/a@b"}"#,
            r#"{"snowflake":"4532015112830366123","phone":"+44 20 7946 0958","mail":"ada@example.org"}"#,
            r#"{"password":"hunter2"}"#,
        ] {
            assert_eq!(masked(json), None, "{json}");
            assert!(floor().finds(json).is_empty(), "{json}");
        }
    }

    #[test]
    fn a_hint_is_in_whatever_is_sure() {
        for secret in [
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
            "AKIAIOSFODNN7EXAMPLE",
            "AIzaSyA1234567890abcdefghijklmnopqrstuv",
            "ya29.0123456789abcdefghijkl",
            "ghp_0123456789abcdefghijABCDEFGHIJ456789",
            "github_pat_11ABCDEFG0123456789_abcdefghijklmnop",
            "glpat-0123456789abcdefghij",
            "xoxb-123456789012-abcdefghijkl",
            "https://hooks.slack.com/services/T000/B000/XXXXXXXXXXXX",
            "sk_live_0123456789abcdefghij",
            "whsec_0123456789abcdefghij",
            "npm_0123456789abcdefghijABCDEFGHIJ456789",
            "pypi-0123456789abcdefghijABCDEFGHIJ456789",
            "https://ada:secret@host/x",
            "4111 1111 1111 1111",
            "378282246310005",
            "36227206271667",
            "123-45-6789",
            "QQ123456C".replace("QQ", "AB").as_str(),
        ] {
            let json = Value::from(format!("it said:\n{secret}")).to_string();
            assert!(HINT.is_match(&json), "{json}");
            let masked = masked(&json).unwrap_or_else(|| panic!("{json}"));
            assert!(!masked.contains(secret) && masked.contains("[redacted:"), "{masked}");
            assert_eq!(floor().finds(&json).len(), 1, "{json}");
        }
    }

    #[test]
    fn a_declared_field_is_found_by_its_place_and_masked_wherever_it_is_quoted() {
        let field = |path: &str| Field::parse(path, Some(Category::Health)).unwrap();
        let sieve = Sieve::new([Category::Health], [field("args.diagnosis")]);
        assert_eq!(sieve.finds(r#"{"diagnosis":"flu"}"#), BTreeSet::from([Category::Health]));
        assert!(sieve.finds(r#"{"diagnosis":null,"note":"flu"}"#).is_empty());
        let sieve = Sieve::new([Category::Health], [field("result.diagnosis")]);
        let result =
            r#"{"content":[{"type":"text","text":"found measles"}],"structuredContent":{"diagnosis":"measles"}}"#;
        let structured = serde_json::json!({ "diagnosis": "measles" });
        let (masked, _) = sieve.masked(result, || Some(structured)).unwrap();
        assert_eq!(
            masked,
            r#"{"content":[{"type":"text","text":"found [redacted:health]"}],"structuredContent":{"diagnosis":"[redacted:health]"}}"#
        );
        let idle = Sieve::new([Category::Contact], [field("result.diagnosis")]);
        assert!(idle.masked(result, || None).is_none());
    }

    #[test]
    fn broken_json_does_no_harm() {
        for json in ["\"", "\"\\", "{\"a", "\"\\ud800 4111111111111111\"", "12-", "é\"é"] {
            let _ = floor().masked(json, || None);
            let _ = floor().finds(json);
        }
    }
}
