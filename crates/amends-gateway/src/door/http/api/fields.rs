//! What a request says beside its path: the parameters of a query, the members of a body, the fields of a form. All are read
//! the same way, and what nobody asked for is refused.

use std::collections::BTreeMap;

use amends_core::nearest::nearest;
use serde_json::Value;

use super::problem::Problem;

/// How many parameters there may be, and how long a text in one.
const FIELDS_MAX: usize = 32;
const TEXT_MAX: usize = 500;

/// What a request says beside its path.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    held: BTreeMap<String, Value>,
    asked: Vec<&'static str>,
    /// Whether everything is written as text, so that a number is one in a text.
    written: bool,
}

impl Fields {
    /// The parameters of a query, or the fields of a form.
    pub(crate) fn encoded(text: &str) -> Result<Self, Problem> {
        let mut held = BTreeMap::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let Some(name) = decoded(name, true) else {
                return Err(Problem::field("query", "a name is not UTF-8"));
            };
            let Some(value) = decoded(value, true) else {
                return Err(Problem::field(&shown(&name), "it is not UTF-8"));
            };
            if held.insert(name.clone(), Value::String(value)).is_some() {
                return Err(Problem::field(&shown(&name), "it is there twice"));
            }
            if held.len() > FIELDS_MAX {
                return Err(Problem::field(&shown(&name), "there are too many parameters"));
            }
        }
        Ok(Self { held, asked: Vec::new(), written: true })
    }

    /// The members of a body.
    pub(crate) fn json(text: &str) -> Result<Self, Problem> {
        let read: Value =
            serde_json::from_str(text).map_err(|error| Problem::field("body", format!("it is not JSON: {error}")))?;
        match read {
            Value::Object(held) => Ok(Self { held: held.into_iter().collect(), asked: Vec::new(), written: false }),
            _ => Err(Problem::field("body", "it is not an object")),
        }
    }

    /// A text, where it is there and not empty.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>, Problem> {
        self.long_text(name, TEXT_MAX)
    }

    /// A text of at most that many characters, where it is there and not empty.
    pub(crate) fn long_text(&mut self, name: &'static str, max: usize) -> Result<Option<String>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.chars().count() > max => {
                Err(Problem::field(name, format!("it is longer than {max} characters")))
            }
            Some(Value::String(text)) if text.contains('\0') => Err(Problem::field(name, "it holds a NUL")),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            Some(_) => Err(Problem::field(name, "it is not a text")),
        }
    }

    /// A text that must be there.
    pub(crate) fn needed(&mut self, name: &'static str, max: usize) -> Result<String, Problem> {
        self.long_text(name, max)?.ok_or_else(|| Problem::field(name, "it is missing"))
    }

    /// Whether everything is written as text.
    pub(crate) const fn is_written(&self) -> bool {
        self.written
    }

    /// Whatever is there under that name.
    pub(crate) fn value(&mut self, name: &'static str) -> Option<Value> {
        self.take(name)
    }

    /// The texts whose names begin like that, by the rest of their names.
    pub(crate) fn prefixed(&mut self, prefix: &str) -> BTreeMap<String, String> {
        let names: Vec<String> = self.held.keys().filter(|name| name.starts_with(prefix)).cloned().collect();
        let text = |name: String| {
            let value = self.held.remove(&name)?;
            Some((name.strip_prefix(prefix)?.to_owned(), value.as_str()?.to_owned()))
        };
        names.into_iter().filter_map(text).collect()
    }

    /// A number between those, both included.
    pub(crate) fn number(&mut self, name: &'static str, default: u64, min: u64, max: u64) -> Result<u64, Problem> {
        let found = match self.take(name) {
            None => return Ok(default),
            Some(Value::String(text)) if self.written => text.parse().ok(),
            Some(value) => value.as_u64(),
        };
        match found {
            Some(number) if (min..=max).contains(&number) => Ok(number),
            _ => Err(Problem::field(name, format!("it is not a whole number from {min} to {max}"))),
        }
    }

    /// Yes or no; no where it is not there.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool, Problem> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(Value::String(text)) if self.written => match text.as_str() {
                "true" | "on" => Ok(true),
                "false" | "" => Ok(false),
                _ => Err(Problem::field(name, "it is neither `true` nor `false`")),
            },
            Some(_) => Err(Problem::field(name, "it is neither `true` nor `false`")),
        }
    }

    /// One of those words.
    pub(crate) fn word(&mut self, name: &'static str, words: &[&str]) -> Result<Option<String>, Problem> {
        match self.text(name)? {
            Some(text) if !words.contains(&text.as_str()) => {
                Err(Problem::field(name, format!("it is none of `{}`", words.join("`, `"))))
            }
            found => Ok(found),
        }
    }

    /// Refuses what nobody asked for.
    pub(crate) fn finish(&self) -> Result<(), Problem> {
        let Some(name) = self.held.keys().next() else { return Ok(()) };
        let hint = match nearest(name, self.asked.iter().copied()).first() {
            Some(near) => format!("; did you mean `{near}`?"),
            None => String::new(),
        };
        Err(Problem::field(&shown(name), format!("nothing is known by this name{hint}")))
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.asked.push(name);
        self.held.remove(name).filter(|value| !value.is_null())
    }
}

/// A name from outside, cut to what can be shown.
fn shown(name: &str) -> String {
    name.chars().take(60).collect()
}

/// A text without its percent signs; nothing where it is not UTF-8. In forms and queries a plus is a blank.
pub(crate) fn decoded(text: &str, plus: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' if plus => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// A text as it stands in an address.
pub(crate) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(problem: Problem) -> (u16, String, String) {
        (problem.status.as_u16(), problem.field.unwrap_or_default(), problem.detail)
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut fields = Fields::encoded("limit=abc&open=true&q=a+b%2Fc").unwrap();
        assert_eq!(refused(fields.number("limit", 20, 1, 100).unwrap_err()).1, "limit");
        assert!(fields.flag("open").unwrap());
        assert_eq!(fields.text("q").unwrap().as_deref(), Some("a b/c"));
        fields.finish().unwrap();
        for (text, field) in [("a=%ff", "a"), ("a=1&a=2", "a"), ("%ff=1", "query")] {
            assert_eq!(refused(Fields::encoded(text).unwrap_err()).1, field, "{text}");
        }
        let mut fields = Fields::encoded("limt=5").unwrap();
        assert_eq!(fields.number("limit", 20, 1, 100).unwrap(), 20);
        let (status, field, detail) = refused(fields.finish().unwrap_err());
        assert_eq!((status, field.as_str()), (400, "limt"));
        assert!(detail.contains("did you mean `limit`"), "{detail}");
    }

    #[test]
    fn a_body_keeps_its_types() {
        let mut fields = Fields::json(r#"{"choice":5,"n":"7","note":null}"#).unwrap();
        assert_eq!(refused(fields.needed("choice", 10).unwrap_err()).2, "it is not a text");
        assert!(fields.number("n", 1, 1, 9).is_err(), "a text is no number");
        assert_eq!(refused(fields.needed("note", 10).unwrap_err()).2, "it is missing");
        for odd in ["", "[]", "{", "7"] {
            assert_eq!(refused(Fields::json(odd).unwrap_err()).1, "body", "{odd}");
        }
    }

    #[test]
    fn an_address_comes_back_as_it_was() {
        let odd = "a/b c?ü%";
        assert_eq!(decoded(&encoded(odd), false).as_deref(), Some(odd));
        assert_eq!(decoded("a+b", false).as_deref(), Some("a+b"));
        assert_eq!(decoded("%4", false), None);
    }
}
