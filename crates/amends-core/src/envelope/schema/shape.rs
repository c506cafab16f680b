//! The shapes of which the schema is built.

use serde::Serialize;
use serde_json::{Value, json};

/// A definition and its name.
pub(super) fn define(name: &str, schema: Value) -> (String, Value) {
    (name.to_owned(), schema)
}

/// An object with those fields, some of them required.
pub(super) fn object(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "required": required, "properties": properties})
}

/// What another definition says, and more.
pub(super) fn extends(base: &str, required: &[&str], properties: Value) -> Value {
    json!({"allOf": [see(base)], "required": required, "properties": properties})
}

/// One of those definitions.
pub(super) fn any_of(first: &[&str], rest: &[&str]) -> Value {
    let bodies: Vec<Value> = first.iter().chain(rest).map(|name| see(name)).collect();
    json!({"oneOf": bodies})
}

/// One of a closed list of words.
pub(super) fn one_of<T: Serialize>(all: &[T], description: &str) -> Value {
    json!({"type": "string", "enum": all, "description": description})
}

/// A list of at least and at most so many.
pub(super) fn list(items: Value, min: usize, max: Option<usize>) -> Value {
    let mut list = json!({"type": "array", "items": items});
    if min > 0 {
        list["minItems"] = min.into();
    }
    if let Some(max) = max {
        list["maxItems"] = max.into();
    }
    list
}

/// A text.
pub(super) fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// A time or a span in milliseconds.
pub(super) fn milliseconds(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": format!("{description} In milliseconds.")})
}

/// What that definition says.
pub(super) fn see(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}
