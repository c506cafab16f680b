//! What must not be read in a trace: what kinds of it there are, how it is found in a text, and what stands in its place.
//!
//! A [`Mask`] works on texts before they are recorded. Nothing that is decided depends on what it leaves, and what it
//! costs is bounded by the length of the text: the patterns are regular, without backtracking, and what they find is
//! checked in one pass.
//!
//! A [`Sieve`] works on what passes between agents and tools. Much hangs on it, so it finds only what hardly anything else looks
//! like, and what was declared.

mod category;
mod event;
mod field;
mod find;
mod number;
mod pattern;
mod sieve;
mod view;

use std::collections::BTreeSet;

pub use category::{Category, NoPattern};
pub use field::{Field, FieldError};
use find::{Found, How};
pub use sieve::Sieve;
pub use view::VIEW_BYTES_MAX;

/// How often a text is gone over. What is put in place of a secret hardly ever makes a new one of what is beside it.
const ROUNDS_MAX: usize = 8;

/// How long a value of a declared field is at least to be looked for in other texts. A shorter one is in too many words.
const QUOTED_MIN: usize = 4;

/// What is masked in texts before they are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    categories: BTreeSet<Category>,
    fields: Vec<Field>,
    views: bool,
}

impl Default for Mask {
    /// The floor: what is always masked, and views of the arguments are recorded.
    fn default() -> Self {
        Self { categories: Category::FLOOR.into_iter().collect(), fields: Vec::new(), views: true }
    }
}

impl Mask {
    /// The floor, and these categories. Those without a pattern are found in declared fields only.
    pub fn new(
        categories: impl IntoIterator<Item = Category>,
        fields: Vec<Field>,
        views: bool,
    ) -> Result<Self, NoPattern> {
        let mut mask = Self { fields, views, ..Self::default() };
        for category in categories {
            if !category.has_pattern() {
                return Err(NoPattern(category));
            }
            mask.categories.insert(category);
        }
        Ok(mask)
    }

    /// The same with the fields of one tool declared beside its own.
    #[must_use]
    pub fn with_fields(&self, fields: &[Field]) -> Self {
        let mut mask = self.clone();
        mask.fields.extend_from_slice(fields);
        mask
    }

    /// Whether views of the arguments are recorded.
    pub const fn shows_arguments(&self) -> bool {
        self.views
    }

    /// The text with everything masked that it finds.
    pub fn text(&self, text: &str) -> String {
        self.text_without(text, &[])
    }

    /// The same, and without these values.
    pub fn text_without(&self, text: &str, quoted: &[Quoted]) -> String {
        let mut masked = text.to_owned();
        for quoted in quoted {
            if masked.contains(quoted.value.as_str()) {
                masked = masked.replace(quoted.value.as_str(), &quoted.mask);
            }
        }
        for _ in 0..ROUNDS_MAX {
            let found = self.find(&masked);
            if found.is_empty() {
                return masked;
            }
            masked = put(&masked, &found);
        }
        // What cannot be made clean is not recorded.
        Category::Credential.mask().to_owned()
    }

    /// Whether it would mask anything in that text.
    pub fn finds(&self, text: &str) -> bool {
        !self.find(text).is_empty()
    }

    fn find(&self, text: &str) -> Vec<Found> {
        find::find(text, &self.categories, How::Likely)
    }
}

/// A value of a declared field, to be masked wherever a text quotes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quoted {
    value: String,
    mask: String,
}

/// The text with each place that was found replaced. The places are in order and do not overlap.
fn put(text: &str, found: &[Found]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut from = 0;
    for place in found {
        masked.push_str(&text[from..place.start]);
        masked.push_str(place.category.mask());
        from = place.end;
    }
    masked.push_str(&text[from..]);
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Mask {
        let with_pattern = Category::ALL.into_iter().filter(|category| category.has_pattern());
        Mask::new(with_pattern, Vec::new(), true).unwrap()
    }

    #[test]
    fn secrets_of_many_shapes_are_masked_by_the_floor() {
        for secret in [
            "Bearer abcdef0123456789abcdef",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
            "AKIAIOSFODNN7EXAMPLE",
            "AIzaSyA1234567890abcdefghijklmnopqrstuv",
            "ghp_0123456789abcdefghijABCDEFGHIJ456789",
            "github_pat_11ABCDEFG0123456789_abcdefghijklmnop",
            "xoxb-123456789012-abcdefghijkl",
            "sk_live_0123456789abcdefghij",
            "rev_0123456789abcdef0123456789abcdef",
            "4111 1111 1111 1111",
            "4111111111111111",
            "378282246310005",
            "123-45-6789",
        ] {
            let masked = Mask::default().text(&format!("it said {secret}, and no more"));
            assert!(masked.starts_with("it said ") && masked.ends_with(", and no more"), "{masked}");
            assert!(!masked.contains(secret) && masked.contains("[redacted:"), "{masked}");
        }
    }

    #[test]
    fn only_the_value_of_a_pair_goes() {
        let mask = Mask::default();
        assert_eq!(mask.text("password=hunter2&user=ada"), "password=[redacted:credential]&user=ada");
        assert_eq!(mask.text(r#"{"api_key": "abc", "n": 1}"#), r#"{"api_key": "[redacted:credential]", "n": 1}"#);
        assert_eq!(mask.text("https://ada:secret@host/x"), "https://[redacted:credential]@host/x");
        assert_eq!(
            mask.text("a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b"),
            "a [redacted:credential] b"
        );
        assert_eq!(mask.text("cut: -----BEGIN PRIVATE KEY-----\nMIIE"), "cut: [redacted:credential]");
    }

    #[test]
    fn the_other_categories_are_masked_where_they_are_asked_for() {
        for (text, category) in [
            ("ada@example.org", Category::Contact),
            ("+44 20 7946 0958", Category::Contact),
            ("DE89 3704 0044 0532 0130 00", Category::Financial),
            ("192.168.17.4", Category::OnlineIdentifier),
            ("2001:db8::8a2e:370:7334", Category::OnlineIdentifier),
            ("48.85837, 2.29448", Category::Location),
        ] {
            let said = format!("it is {text} here");
            assert_eq!(Mask::default().text(&said), said);
            let masked = Mask::new([category], Vec::new(), true).unwrap().text(&said);
            assert_eq!(masked, format!("it is {} here", category.mask()));
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "the bearer of bad news",
            "order 1731726337000 was paid at 12:30:05",
            "call_0f3c9d2b6a4e48c1, attempt 2 of 3",
            "no answer from `shop` in 5 s; it may have happened",
            "version 1.2.3.4567 of 2026-03-01",
            "4111 1111 1111 1112",
            "000-12-3456",
            "token budget is spent",
            "http://127.0.0.1:7070/mcp",
            "aes::cipher::block",
        ] {
            assert_eq!(Mask::default().text(text), text);
        }
        for text in ["DE89 3704 0044 0532 0130 01", "999.1.2.3", "12:30:05", "a::b", "std::fmt"] {
            assert_eq!(all().text(text), text);
        }
    }

    #[test]
    fn a_card_between_other_numbers_is_found() {
        for text in ["1 4111 1111 1111 1111", "4111111111111111 2026", "id 12 4111-1111-1111-1111 34"] {
            let masked = Mask::default().text(text);
            assert!(masked.contains("[redacted:payment_card]") && !masked.contains("1111 1111"), "{masked}");
        }
    }

    #[test]
    fn a_category_without_a_pattern_is_refused() {
        assert_eq!(Mask::new([Category::Health], Vec::new(), true), Err(NoPattern(Category::Health)));
    }

    /// A small generator, so that a failing text can be made again from its number.
    fn texts() -> impl Iterator<Item = String> {
        const PIECES: [&str; 34] = [
            "password=",
            "token: ",
            "Bearer ",
            "4111 1111 ",
            "1111 1111",
            "4111111111111111",
            "123-45-6789",
            "AKIA",
            "IOSFODNN7EXAMPLE",
            "[redacted:credential]",
            "[redacted:",
            "]",
            "https://",
            "ada:pw@",
            "host",
            "ghp_",
            "0123456789abcdefghij",
            "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----",
            "\"",
            "'",
            "=",
            ":",
            " ",
            "\n",
            "é",
            "ada@example.org",
            "+44 20 7946 0958",
            "DE89370400440532013000",
            "192.168.1.1",
            "2001:db8::1",
            "48.85837, 2.29448",
            "-",
            "secret",
        ];
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut next = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below as u64).unwrap()
        };
        (0..20_000).map(move |_| (0..=next(9)).map(|_| PIECES[next(PIECES.len())]).collect())
    }

    #[test]
    fn what_is_masked_is_clean_and_stays_as_it_is() {
        for mask in [Mask::default(), all()] {
            for text in texts() {
                let masked = mask.text(&text);
                assert!(!mask.finds(&masked), "{text:?} -> {masked:?}");
                assert_eq!(mask.text(&masked), masked, "{text:?}");
                assert_eq!(mask.finds(&text), masked != text, "{text:?} -> {masked:?}");
            }
        }
    }
}
