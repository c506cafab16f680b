//! What a schema says plainly of an action's inputs.

use serde_json::Value;

/// The fields that an action's inputs may have, where no others are allowed.
pub(super) fn closed_properties(schema: Option<&Value>) -> Option<Vec<&str>> {
    let schema = schema?;
    (schema.get("additionalProperties") == Some(&Value::Bool(false)) && schema.get("patternProperties").is_none()).then(
        || {
            schema
                .get("properties")
                .and_then(Value::as_object)
                .map_or_else(Vec::new, |all| all.keys().map(String::as_str).collect())
        },
    )
}

/// Whether that field must be there.
pub(super) fn requires(schema: &Value, field: &str) -> bool {
    schema.get("required").and_then(Value::as_array).is_some_and(|all| all.iter().any(|name| name == field))
}

pub(super) fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        _ => true,
    }
}
