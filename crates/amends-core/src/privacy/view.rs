//! What is shown of a call's arguments.

use serde_json::{Map, Value};

use super::category::Category;
use super::pattern::SECRET_FIELDS;
use super::{Mask, QUOTED_MIN, Quoted};

/// How long a view is.
pub const VIEW_BYTES_MAX: usize = 2_048;

/// How much of the arguments is read for a view.
const READ_BYTES_MAX: usize = 8_192;

/// How long one value in a view is.
const VALUE_BYTES_MAX: usize = 1_024;

/// How many values of declared fields are looked for in other texts.
const QUOTED_MAX: usize = 64;

impl Mask {
    /// The view of a call's arguments: JSON with what is private masked, cut to [`VIEW_BYTES_MAX`].
    pub fn view(&self, arguments: &Value) -> String {
        let mut shown = bounded(arguments, &mut { READ_BYTES_MAX });
        self.mask_fields(&mut shown);
        self.mask_values(&mut shown, &[]);
        // The names of fields are the agent's own words too.
        cut(self.text(&shown.to_string()), VIEW_BYTES_MAX)
    }

    /// The arguments with everything masked that it finds.
    pub fn masked(&self, arguments: &Value) -> Value {
        let mut shown = arguments.clone();
        self.mask_fields(&mut shown);
        self.mask_values(&mut shown, &[]);
        shown
    }

    /// Masks what is private in arguments.
    pub(super) fn arguments(&self, arguments: &mut Map<String, Value>, quoted: &[Quoted]) {
        let mut document = Value::Object(std::mem::take(arguments));
        self.mask_fields(&mut document);
        self.mask_values(&mut document, quoted);
        if let Value::Object(masked) = document {
            *arguments = masked;
        }
    }

    fn mask_fields(&self, document: &mut Value) {
        for field in self.fields.iter().filter(|field| field.is_of_args()) {
            field.mask_in(document);
        }
    }

    /// The values of the declared fields of a call's arguments, to be masked where a text quotes them.
    pub fn quoted_of_arguments(&self, arguments: &Value) -> Vec<Quoted> {
        self.quoted(arguments, true)
    }

    /// The same for a call's result.
    pub fn quoted_of_result(&self, result: &Value) -> Vec<Quoted> {
        self.quoted(result, false)
    }

    /// Whether any field is declared.
    pub fn has_fields(&self) -> bool {
        !self.fields.is_empty()
    }

    fn quoted(&self, document: &Value, of_args: bool) -> Vec<Quoted> {
        let mut quoted = Vec::new();
        let fields =
            self.fields.iter().filter(|field| field.is_of_args() == of_args && field.is_of_result() != of_args);
        for field in fields {
            for value in field.values(document) {
                let value = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(number) => number.to_string(),
                    Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => continue,
                };
                if value.len() >= QUOTED_MIN && quoted.len() < QUOTED_MAX {
                    quoted.push(Quoted { value, mask: field.mask().to_owned() });
                }
            }
        }
        // A value that holds another one goes first, or what is left of it would not be found.
        quoted.sort_by_key(|quoted| std::cmp::Reverse(quoted.value.len()));
        quoted
    }

    /// Masks what is private by its name or its shape.
    fn mask_values(&self, value: &mut Value, quoted: &[Quoted]) {
        match value {
            Value::String(text) => *text = self.text_without(text, quoted),
            Value::Number(number) => {
                let text = number.to_string();
                let masked = self.text_without(&text, quoted);
                if masked != text {
                    *value = Value::String(masked);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_values(item, quoted)),
            Value::Object(members) => {
                for (name, value) in members {
                    if SECRET_FIELDS.is_match(name) && !matches!(value, Value::Null | Value::Bool(_)) {
                        *value = Value::String(Category::Credential.mask().to_owned());
                    } else {
                        self.mask_values(value, quoted);
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// A copy of a document that is no larger than what is left to be read. What is beyond it is dropped, and what stays keeps
/// its place.
fn bounded(value: &Value, left: &mut usize) -> Value {
    let mut take = |bytes: usize| {
        let fits = *left >= bytes;
        *left = left.saturating_sub(bytes);
        fits
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            if take(8) {
                value.clone()
            } else {
                Value::String("…".to_owned())
            }
        }
        Value::String(text) => {
            let fits = text.len() <= VALUE_BYTES_MAX;
            if !take(text.len().min(VALUE_BYTES_MAX)) {
                return Value::String("…".to_owned());
            }
            Value::String(if fits { text.clone() } else { format!("{}…", &text[..whole_words(text)]) })
        }
        Value::Array(items) => {
            let mut kept = Vec::new();
            for item in items {
                if *left == 0 {
                    break;
                }
                kept.push(bounded(item, left));
            }
            Value::Array(kept)
        }
        Value::Object(members) => {
            let mut kept = Map::new();
            for (name, member) in members {
                if *left < name.len() {
                    *left = 0;
                    break;
                }
                *left -= name.len();
                kept.insert(name.clone(), bounded(member, left));
            }
            Value::Object(kept)
        }
    }
}

/// Where a long text is cut: after a word that is no number, so that no half of a secret is left that has lost its shape.
fn whole_words(text: &str) -> usize {
    let start = &text[..text.floor_char_boundary(VALUE_BYTES_MAX)];
    let word = start.rfind(|c: char| c.is_ascii_whitespace()).unwrap_or(0);
    start[..word].trim_end_matches(|c: char| c.is_ascii_digit() || c.is_ascii_whitespace() || "-+.()".contains(c)).len()
}

/// The text up to so many bytes, with a sign that it was cut. A mask is not cut in two.
fn cut(text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let mut end = text.floor_char_boundary(bytes_max);
    if let Some(mask) = text[..end].rfind("[redacted:")
        && !text[mask..end].contains(']')
    {
        end = mask;
    }
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Field;
    use super::*;

    fn declared(paths: &[&str]) -> Mask {
        let fields = paths.iter().map(|path| Field::parse(path, None).unwrap()).collect();
        Mask::new([], fields, true).unwrap()
    }

    #[test]
    fn a_view_shows_what_was_asked_without_what_is_private() {
        let mask = declared(&["args.diagnosis", "args.items.*.note"]);
        let arguments = json!({
            "order": "A-7", "amount": 12.5, "diagnosis": {"code": "F41"}, "password": "hunter2", "retry": true,
            "card": 4_111_111_111_111_111_u64, "items": [{"note": "for mum", "n": 1}], "memo": "token=abc",
        });
        let shown: Value = serde_json::from_str(&mask.view(&arguments)).unwrap();
        assert_eq!(
            shown,
            json!({
                "order": "A-7", "amount": 12.5, "diagnosis": "[redacted:private]", "password": "[redacted:credential]",
                "retry": true, "card": "[redacted:payment_card]",
                "items": [{"note": "[redacted:private]", "n": 1}], "memo": "token=[redacted:credential]",
            })
        );
    }

    #[test]
    fn a_view_is_bounded_and_never_shows_half_a_mask() {
        let mask = Mask::default();
        for padding in 0..80 {
            let long =
                json!({ "a": "é".repeat(900 + padding), "b": "x".repeat(padding), "c": vec!["4111111111111111"; 200] });
            let view = mask.view(&long);
            assert!(view.len() <= VIEW_BYTES_MAX + '…'.len_utf8());
            assert!(!mask.finds(&view) && !view.contains("4111"), "{view}");
            assert!(!view.trim_end_matches('…').ends_with("[redacted:payment"), "{view}");
        }
    }

    #[test]
    fn what_a_text_quotes_of_a_declared_field_is_masked() {
        let mask = declared(&["args.name", "result.id"]);
        let quoted = mask.quoted_of_arguments(&json!({ "name": "Ada Lovelace", "id": "keep-me" }));
        assert_eq!(
            mask.text_without("no such person: Ada Lovelace (keep-me)", &quoted),
            "no such person: [redacted:private] (keep-me)"
        );
        let quoted = mask.quoted_of_result(&json!({ "id": 123_456 }));
        assert_eq!(mask.text_without("row 123456", &quoted), "row [redacted:private]");
        assert!(mask.quoted_of_arguments(&json!({ "name": "Al" })).is_empty());
    }
}
