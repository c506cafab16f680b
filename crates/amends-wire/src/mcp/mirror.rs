//! Arguments that a tool's schema wants repeated in headers (`x-mcp-header`), for those on the way who read no bodies.

use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

use super::era::HEADER_MISMATCH;
use super::http::{decode, encode};

const KEYWORD: &str = "x-mcp-header";
const PREFIX: &str = "Mcp-Param-";
/// How deep a schema is looked into; what lies deeper is not mirrored.
const DEPTH_MAX: usize = 32;
/// The greatest integer that every reader of JSON takes for the same.
const INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// The arguments of one tool that headers repeat. No two of them have the same header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirrors(Vec<Mirror>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mirror {
    header: String,
    /// Where the argument is: the names that lead to it, outermost first.
    path: Vec<String>,
}

/// Why a tool cannot be called over HTTP as its schema wants it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MirrorError {
    /// What stands there cannot be a part of a header's name.
    #[error("`x-mcp-header` at `{0}` cannot be a header's name")]
    Name(String),
    /// Only strings, integers and booleans can be repeated in a header.
    #[error("`x-mcp-header` at `{0}` is not on a string, an integer or a boolean")]
    Kind(String),
    /// Two arguments want the same header.
    #[error("the header `{0}` is wanted by two arguments")]
    Twice(String),
    /// Whether there is such an argument depends on other values.
    #[error("`x-mcp-header` stands under `{0}`, where no single argument is meant")]
    Unreachable(String),
}

/// A header that does not say what its argument says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the header `{0}` does not say what the arguments say")]
pub struct MirrorMismatch(String);

impl MirrorMismatch {
    /// The JSON-RPC code for it; over HTTP it goes with the status 400.
    pub const fn code(&self) -> i64 {
        HEADER_MISMATCH
    }
}

impl Mirrors {
    /// The mirrored arguments of a tool with that input schema.
    ///
    /// ```
    /// use amends_wire::mcp::mirror::Mirrors;
    ///
    /// let schema = r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
    /// let mirrors = Mirrors::of(serde_json::from_str(schema).unwrap()).unwrap();
    /// let headers = mirrors.headers(Some(r#"{"region":"eu"}"#));
    /// assert_eq!(headers, [("Mcp-Param-Region".to_owned(), "eu".to_owned())]);
    /// ```
    pub fn of(schema: &RawValue) -> Result<Self, MirrorError> {
        let mut found = Self::default();
        // Most schemas mirror nothing, and need not be read for that.
        if schema.get().contains(KEYWORD)
            && let Ok(schema) = serde_json::from_str::<Value>(schema.get())
        {
            found.look(&schema, &mut Vec::new())?;
        }
        Ok(found)
    }

    /// Whether nothing is mirrored.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The headers that go with those arguments. What is absent or null has none.
    pub fn headers(&self, arguments: Option<&str>) -> Vec<(String, String)> {
        let Some(arguments) = self.read(arguments) else {
            return Vec::new();
        };
        let mirrored = self.0.iter().filter_map(|mirror| {
            Some((mirror.header.clone(), encode(&words(mirror.argument(&arguments)?)?).into_owned()))
        });
        mirrored.collect()
    }

    /// Whether the headers say what the arguments say. `header` gives the value of the header of that name.
    pub fn check<'h>(
        &self,
        arguments: Option<&str>,
        header: impl Fn(&str) -> Option<&'h str>,
    ) -> Result<(), MirrorMismatch> {
        let Some(arguments) = self.read(arguments) else {
            return Ok(());
        };
        for mirror in &self.0 {
            let given = header(&mirror.header);
            let fits = match (mirror.argument(&arguments).and_then(words), given) {
                (Some(expected), Some(given)) => decode(given).is_some_and(|given| same(&given, &expected)),
                (Some(_), None) => false,
                (None, _) => true,
            };
            if !fits {
                return Err(MirrorMismatch(mirror.header.clone()));
            }
        }
        Ok(())
    }

    fn read(&self, arguments: Option<&str>) -> Option<Value> {
        if self.is_empty() { None } else { serde_json::from_str(arguments.unwrap_or("{}")).ok() }
    }

    fn look(&mut self, schema: &Value, path: &mut Vec<String>) -> Result<(), MirrorError> {
        let Some(schema) = schema.as_object() else {
            return Ok(());
        };
        for (keyword, inner) in schema {
            if is_subschema(keyword) && mentions(inner, DEPTH_MAX) {
                return Err(MirrorError::Unreachable(keyword.clone()));
            }
        }
        let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|_| path.len() < DEPTH_MAX)
        else {
            return Ok(());
        };
        for (name, property) in properties {
            path.push(name.clone());
            if let Some(wanted) = property.get(KEYWORD) {
                self.add(wanted, property, path)?;
            }
            self.look(property, path)?;
            path.pop();
        }
        Ok(())
    }

    fn add(&mut self, wanted: &Value, property: &Value, path: &[String]) -> Result<(), MirrorError> {
        let place = path.join(".");
        let Some(name) = wanted.as_str().filter(|name| is_token(name)) else {
            return Err(MirrorError::Name(place));
        };
        if !is_plain(property.get("type")) {
            return Err(MirrorError::Kind(place));
        }
        let header = format!("{PREFIX}{name}");
        if self.0.iter().any(|mirror| mirror.header.eq_ignore_ascii_case(&header)) {
            return Err(MirrorError::Twice(header));
        }
        self.0.push(Mirror { header, path: path.to_vec() });
        Ok(())
    }
}

impl Mirror {
    fn argument<'a>(&self, arguments: &'a Value) -> Option<&'a Value> {
        self.path.iter().try_fold(arguments, |value, name| value.get(name))
    }
}

/// An argument as a header says it; nothing for what has no header.
fn words(argument: &Value) -> Option<String> {
    match argument {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(match number.as_f64() {
            Some(value)
                if !number.is_i64() && !number.is_u64() && value.fract() == 0.0 && value.abs() <= INTEGER_MAX =>
            {
                format!("{value:.0}")
            }
            _ => number.to_string(),
        }),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether two spellings mean the same: numbers by their value, all else by its letters.
fn same(given: &str, expected: &str) -> bool {
    given == expected
        || matches!((given.parse::<f64>(), expected.parse::<f64>()), (Ok(given), Ok(expected)) if given == expected)
}

fn is_token(name: &str) -> bool {
    let special = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || special(byte))
}

/// Whether values of that type fit into a header; null may stand beside one that does.
fn is_plain(kind: Option<&Value>) -> bool {
    let plain = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    match kind {
        Some(Value::Array(kinds)) => {
            let mut others = kinds.iter().filter(|kind| kind.as_str() != Some("null"));
            others.next().is_some_and(plain) && others.next().is_none()
        }
        Some(kind) => plain(kind),
        None => false,
    }
}

/// Keywords whose schemas say something of arguments without naming one.
fn is_subschema(keyword: &str) -> bool {
    const KEYWORDS: [&str; 19] = [
        "$defs",
        "additionalProperties",
        "allOf",
        "anyOf",
        "contains",
        "contentSchema",
        "definitions",
        "dependentSchemas",
        "else",
        "if",
        "items",
        "not",
        "oneOf",
        "patternProperties",
        "prefixItems",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    ];
    KEYWORDS.contains(&keyword)
}

fn mentions(schema: &Value, depth: usize) -> bool {
    match schema {
        _ if depth == 0 => false,
        Value::Object(members) => {
            members.contains_key(KEYWORD) || members.values().any(|inner| mentions(inner, depth - 1))
        }
        Value::Array(entries) => entries.iter().any(|inner| mentions(inner, depth - 1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: &str) -> Result<Mirrors, MirrorError> {
        Mirrors::of(&RawValue::from_string(schema.to_owned()).unwrap())
    }

    fn property(text: &str) -> Result<Mirrors, MirrorError> {
        of(&format!(r#"{{"type":"object","properties":{{"a":{text}}}}}"#))
    }

    const MANY: &str = r#"{"properties":{
        "s":{"type":"string","x-mcp-header":"S"}, "n":{"type":"integer","x-mcp-header":"N"},
        "b":{"type":["boolean","null"],"x-mcp-header":"B"}, "free":{"type":"number"},
        "deep":{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"Deep"}}}}}"#;

    #[test]
    fn arguments_are_repeated_in_headers_as_headers_can_carry_them() {
        let mirrors = of(MANY).unwrap();
        let said = |arguments: &str| {
            let headers = mirrors.headers(Some(arguments));
            let mut lines: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            // Their order is that of the schema's members, which not every build keeps.
            lines.sort();
            lines
        };
        assert_eq!(
            said(r#"{"s":"us west 1","n":42,"b":false,"free":1.5,"deep":{"s":"x"}}"#),
            ["Mcp-Param-B: false", "Mcp-Param-Deep: x", "Mcp-Param-N: 42", "Mcp-Param-S: us west 1"]
        );
        assert_eq!(
            said(r#"{"s":" padded ","n":42.0,"b":null}"#),
            ["Mcp-Param-N: 42", "Mcp-Param-S: =?base64?IHBhZGRlZCA=?="]
        );
        assert_eq!(said(r#"{"s":"","n":1e2}"#), ["Mcp-Param-N: 100", "Mcp-Param-S: "]);
        assert_eq!(said(r#"{"s":"a\r\nb","deep":1}"#), ["Mcp-Param-S: =?base64?YQ0KYg==?="]);
        assert_eq!(said(r#"{"s":["x"]}"#), [""; 0]);
        assert_eq!(mirrors.headers(None), []);
    }

    #[test]
    fn what_was_repeated_is_checked_against_the_arguments() {
        let mirrors = of(MANY).unwrap();
        let check = |arguments: &str, headers: &[(&str, &str)]| {
            let find = |name: &str| headers.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
            mirrors.check(Some(arguments), find).is_ok()
        };
        assert!(check(r#"{"s":"Hello"}"#, &[("Mcp-Param-S", "=?base64?SGVsbG8=?=")]));
        assert!(!check(r#"{"s":"Hello"}"#, &[("Mcp-Param-S", "=?base64?SGVsbG8?=")]), "the padding is missing");
        assert!(!check(r#"{"s":"Hello"}"#, &[("Mcp-Param-S", "=?base64?SGVs!!!bG8=?=")]));
        assert!(
            check(r#"{"s":"=?base64?SGVsbG8="}"#, &[("Mcp-Param-S", "=?base64?SGVsbG8=")]),
            "half a wrapper is none"
        );
        assert!(!check(r#"{"s":"Hello"}"#, &[]), "the header is missing");
        assert!(!check(r#"{"s":"Hello"}"#, &[("Mcp-Param-S", "hello")]));
        assert!(check(r#"{"n":42}"#, &[("Mcp-Param-N", "42.0")]) && !check(r#"{"n":42}"#, &[("Mcp-Param-N", "43")]));
        assert!(check(r#"{"b":null}"#, &[]) && check("{}", &[]));
    }

    #[test]
    fn a_schema_that_cannot_be_mirrored_is_refused_with_the_place() {
        assert_eq!(property(r#"{"type":"string","x-mcp-header":""}"#), Err(MirrorError::Name("a".into())));
        assert_eq!(property(r#"{"type":"string","x-mcp-header":"A B"}"#), Err(MirrorError::Name("a".into())));
        assert_eq!(property(r#"{"type":"string","x-mcp-header":1}"#), Err(MirrorError::Name("a".into())));
        for kind in [r#""number""#, r#""object""#, r#""array""#, r#""null""#, r#"["string","integer"]"#] {
            let text = format!(r#"{{"type":{kind},"x-mcp-header":"A"}}"#);
            assert_eq!(property(&text), Err(MirrorError::Kind("a".into())), "{kind}");
        }
        let twice = r#"{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}"#;
        assert_eq!(property(twice), Err(MirrorError::Twice("Mcp-Param-a".into())));
        let items = r#"{"type":"array","items":{"type":"string","x-mcp-header":"A"}}"#;
        assert_eq!(property(items), Err(MirrorError::Unreachable("items".into())));
        assert_eq!(property(r#"{"type":"string","default":"x-mcp-header"}"#), Ok(Mirrors::default()));
    }
}
