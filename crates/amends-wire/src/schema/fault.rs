//! What a validator complains of, in plain words.

use amends_core::failure::bounded;
use amends_core::nearest::nearest;
use amends_core::refusal::ArgumentFault;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use super::{NO_SUCH_FIELD, NOTHING, PRESENT};

/// How many options are spelled out.
const OPTIONS_MAX: usize = 8;
/// How many characters of a value are shown.
const SHOWN_CHARS_MAX: usize = 60;
/// How far alternatives within alternatives are followed.
const DEPTH_MAX: usize = 4;

/// One thing that is wrong with a value.
#[derive(Debug)]
pub(super) struct Complaint {
    /// Where, by the names on the way there: a name may have dots of its own.
    pub(super) at: Vec<String>,
    /// What kind of thing.
    pub(super) what: What,
    /// The same in words.
    pub(super) said: ArgumentFault,
}

/// What is wrong with a place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Nothing is there, and something must be.
    Missing,
    /// Something is there under a name that cannot be there; the names that can.
    Misnamed { known: Vec<String> },
    /// It has fewer fields than it must have.
    TooFew,
    /// What is there does not fit.
    Wrong,
}

/// Adds what an error says to the complaints. `source` is the whole schema.
pub(super) fn describe(error: &ValidationError<'_>, source: &Value, depth: usize, complaints: &mut Vec<Complaint>) {
    let at = names(error.instance_path());
    let path = dotted(&at);
    let here = |what: What, expected: String| Complaint {
        said: ArgumentFault {
            got: Some(shown(&path, error.instance())),
            field: path.clone(),
            expected,
            nearest: Vec::new(),
        },
        at: at.clone(),
        what,
    };
    let member = |name: &str, what: What, expected: &str, got: Option<&str>, nearest: Vec<String>| {
        let at: Vec<String> = at.iter().cloned().chain([name.to_owned()]).collect();
        let (field, expected, got) = (dotted(&at), expected.to_owned(), got.map(str::to_owned));
        Complaint { said: ArgumentFault { field, expected, got, nearest }, at, what }
    };
    match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            complaints.push(member(name, What::Missing, PRESENT, Some(NOTHING), Vec::new()));
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let known = known_fields(error, source);
            complaints.extend(unexpected.iter().take(OPTIONS_MAX).map(|name| {
                let near = nearest(name, known.iter().map(String::as_str));
                member(name, What::Misnamed { known: known.clone() }, NO_SUCH_FIELD, None, near)
            }));
        }
        // What is wrong is a name, not what stands under it.
        Kind::PropertyNames { error: why } if why.instance().is_string() => {
            let name = why.instance().as_str().unwrap_or_default();
            let known = known_fields(error, source);
            let (expected, mut near) = match why.kind() {
                Kind::Enum { options } => {
                    let names = options.as_array().into_iter().flatten().filter_map(Value::as_str);
                    (one_of(options), nearest(name, names))
                }
                kind => (expected(kind), Vec::new()),
            };
            near.retain(|near| error.instance().get(near).is_none());
            complaints.push(member(name, What::Misnamed { known }, &format!("as a name {expected}"), None, near));
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            match nearest_branch(context, error.instance_path()).filter(|_| depth < DEPTH_MAX) {
                Some(branch) => branch.iter().for_each(|error| describe(error, source, depth + 1, complaints)),
                None => complaints.push(here(What::Wrong, alternatives(context))),
            }
        }
        Kind::Enum { options } => {
            let mut complaint = here(What::Wrong, one_of(options));
            if let (Some(given), Some(options)) = (error.instance().as_str(), options.as_array()) {
                complaint.said.nearest = nearest(given, options.iter().filter_map(Value::as_str));
            }
            complaints.push(complaint);
        }
        kind @ Kind::MinProperties { .. } => complaints.push(here(What::TooFew, expected(kind))),
        kind => complaints.push(here(What::Wrong, expected(kind))),
    }
}

/// What the other kinds of error expect.
fn expected(kind: &Kind) -> String {
    match kind {
        Kind::Type { kind } => types(kind),
        Kind::Constant { expected_value } => format!("`{}`", literal(expected_value)),
        Kind::ExclusiveMaximum { limit } => format!("a number < {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("a number > {limit}"),
        Kind::Maximum { limit } => format!("a number ≤ {limit}"),
        Kind::Minimum { limit } => format!("a number ≥ {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::MaxLength { limit } => format!("at most {limit} characters"),
        Kind::MinLength { limit } => format!("at least {limit} characters"),
        Kind::MaxItems { limit } => format!("at most {limit} items"),
        Kind::AdditionalItems { limit } => format!("at most {limit} items"),
        Kind::MinItems { limit } => format!("at least {limit} items"),
        Kind::MaxProperties { limit } => format!("at most {limit} fields"),
        Kind::MinProperties { limit } => format!("at least {limit} fields"),
        Kind::UniqueItems => "items that all differ".to_owned(),
        Kind::Contains => "an item that fits the schema's `contains`".to_owned(),
        Kind::Pattern { pattern } => format!("text that matches `{}`", bounded(pattern)),
        Kind::Format { format } => format!("text in the format `{}`", bounded(format)),
        Kind::ContentEncoding { content_encoding } => {
            format!("text in the encoding `{}`", bounded(content_encoding))
        }
        Kind::ContentMediaType { content_media_type } => {
            format!("text of the type `{}`", bounded(content_media_type))
        }
        Kind::FalseSchema => "nothing".to_owned(),
        Kind::Not { .. } => "something else: the schema excludes this".to_owned(),
        Kind::OneOfMultipleValid { .. } => "exactly one of the alternatives to fit, not several".to_owned(),
        Kind::PropertyNames { .. } => "field names that the schema allows".to_owned(),
        Kind::UnevaluatedItems { .. } => "no further items".to_owned(),
        other => format!("what the schema's `{}` asks for", other.keyword()),
    }
}

/// The alternative that was meant, if its faults tell: one whose own type fits, with the fewest faults.
fn nearest_branch<'a>(
    context: &'a [Vec<ValidationError<'static>>],
    here: &Location,
) -> Option<&'a Vec<ValidationError<'static>>> {
    let misses = |error: &ValidationError<'_>| {
        error.instance_path() == here
            && matches!(error.kind(), Kind::Type { .. } | Kind::Constant { .. } | Kind::Enum { .. })
    };
    let wrong_tag = |error: &ValidationError<'_>| matches!(error.kind(), Kind::Constant { .. });
    context
        .iter()
        .filter(|branch| !branch.is_empty() && !branch.iter().any(misses))
        .min_by_key(|branch| (branch.iter().any(wrong_tag), branch.len()))
}

/// The alternatives, where each only wants another type or value.
fn alternatives(context: &[Vec<ValidationError<'static>>]) -> String {
    let mut words: Vec<String> = Vec::new();
    for error in context.iter().filter_map(|branch| branch.first()) {
        let word = match error.kind() {
            Kind::Enum { options } => one_of(options),
            kind => expected(kind),
        };
        if !words.contains(&word) && words.len() < OPTIONS_MAX {
            words.push(word);
        }
    }
    if words.is_empty() { "one of the alternatives in the schema".to_owned() } else { words.join(" or ") }
}

fn one_of(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut words: Vec<_> = options.iter().take(OPTIONS_MAX).map(|option| format!("`{}`", literal(option))).collect();
    if options.len() > OPTIONS_MAX {
        words.push(format!("{} more", options.len() - OPTIONS_MAX));
    }
    format!("one of {}", words.join(", "))
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => type_name(*one).to_owned(),
        TypeKind::Multiple(many) => {
            let mut names: Vec<_> = many.iter().map(type_name).collect();
            names.sort_by_key(|name| *name == type_name(JsonType::Null));
            names.join(" or ")
        }
    }
}

const fn type_name(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "a list",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "text",
    }
}

/// The names a schema knows where it found others.
fn known_fields(error: &ValidationError<'_>, source: &Value) -> Vec<String> {
    let place = error.schema_path().as_str();
    let parent = place.rsplit_once('/').map_or("", |(parent, _)| parent);
    let fields = source.pointer(parent).and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    fields.map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
}

/// The names on the way to a place.
fn names(location: &Location) -> Vec<String> {
    let name = |segment| match segment {
        LocationSegment::Property(name) => name.to_string(),
        LocationSegment::Index(n) => n.to_string(),
    };
    location.segments().map(name).collect()
}

/// The same as a dotted path.
pub(super) fn dotted(at: &[String]) -> String {
    at.iter().map(|name| bounded(name)).collect::<Vec<_>>().join(".")
}

/// A value as far as it is shown: never a whole object, never what its name says is secret.
fn shown(path: &str, value: &Value) -> String {
    match value {
        Value::Array(items) => format!("a list of {} items", items.len()),
        Value::Object(fields) => format!("an object with {} fields", fields.len()),
        Value::String(text) if is_secret(path) => {
            format!("text of {} characters", text.chars().count())
        }
        Value::String(text) => format!("\"{}\"", cut(&bounded(text))),
        Value::Number(_) if is_secret(path) => "a number".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => cut(&value.to_string()),
    }
}

/// A schema's own value, as it is written.
fn literal(value: &Value) -> String {
    cut(&bounded(&value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Whether a field's name says that its value is nobody's business.
fn is_secret(path: &str) -> bool {
    let path = path.to_lowercase();
    ["pass", "secret", "token", "key", "auth", "credential", "card", "cvc", "cvv", "iban", "ssn", "pin"]
        .iter()
        .any(|word| path.contains(word))
}

#[cfg(test)]
mod tests {
    use crate::schema::Schema;
    use serde_json::{Value, json};

    fn fault(schema: Value, value: &Value) -> (String, String, Option<String>, Vec<String>) {
        let fault = Schema::from_value(schema).unwrap().check(value).swap_remove(0);
        (fault.field, fault.expected, fault.got, fault.nearest)
    }

    #[test]
    fn complaints_are_in_plain_words() {
        let of = |schema: Value, value: Value| {
            let (_, expected, got, _) = fault(schema, &value);
            format!("{expected}; {}", got.unwrap_or_default())
        };
        assert_eq!(of(json!({"type": "string"}), json!(5)), "text; 5");
        assert_eq!(of(json!({"type": ["integer", "null"]}), json!("x")), "a whole number or null; \"x\"");
        assert_eq!(of(json!({"minimum": 1}), json!(0.5)), "a number ≥ 1; 0.5");
        assert_eq!(of(json!({"maxLength": 2}), json!("abc")), "at most 2 characters; \"abc\"");
        assert_eq!(of(json!({"const": "a"}), json!("b")), "`a`; \"b\"");
        assert_eq!(
            of(json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), json!({})),
            "text or null; an object with 0 fields"
        );
        assert_eq!(of(json!({"type": "array"}), json!("x".repeat(99))), format!("a list; \"{}…\"", "x".repeat(60)));
        assert_eq!(of(json!(false), json!([1, 2])), "nothing; a list of 2 items");
    }

    #[test]
    fn an_unknown_field_and_a_wrong_option_find_the_nearest() {
        let schema =
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"amount": {}}, "additionalProperties": false}}});
        let (field, expected, got, nearest) = fault(schema, &json!({"ammount": 1}));
        assert_eq!((field.as_str(), expected.as_str(), got), ("ammount", "no such field", None));
        assert_eq!(nearest, ["amount"]);
        let (_, expected, _, nearest) = fault(json!({"enum": ["red", "green"]}), &json!("gren"));
        assert_eq!((expected.as_str(), nearest), ("one of `red`, `green`", vec!["green".to_owned()]));
    }

    #[test]
    fn the_alternative_that_was_meant_is_the_one_that_is_explained() {
        let schema = json!({"oneOf": [
            {"type": "object", "required": ["n"], "properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}},
            {"type": "object", "required": ["kind", "s"], "properties": {"kind": {"const": "b"}, "s": {"type": "string"}}},
        ]});
        let (field, expected, ..) = fault(schema, &json!({"kind": "b", "s": 3}));
        assert_eq!((field.as_str(), expected.as_str()), ("s", "text"));
    }

    #[test]
    fn secrets_are_not_shown() {
        let schema = json!({"properties": {"api_key": {"maxLength": 3}, "user": {"type": "integer"}}});
        let faults =
            Schema::from_value(schema).unwrap().check(&json!({"api_key": "hunter2!", "user": {"password": "hunter2"}}));
        assert!(faults.iter().all(|fault| !format!("{fault:?}").contains("hunter2")), "{faults:?}");
    }
}
