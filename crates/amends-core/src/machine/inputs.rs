//! Whether an action's inputs can be given at all.

use serde_json::{Map, Value};

/// Why no value fits that schema, where that is plain to see. A schema that nothing fits for subtler reasons passes.
pub(super) fn contradiction(schema: &Value) -> Option<String> {
    match schema {
        Value::Bool(false) => return Some("it allows nothing".into()),
        Value::Object(_) => {}
        _ => return None,
    }
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    for (low, high) in [
        ("minimum", "maximum"),
        ("minLength", "maxLength"),
        ("minItems", "maxItems"),
        ("minProperties", "maxProperties"),
    ] {
        if let (Some(least), Some(most)) = (number(low), number(high))
            && least > most
        {
            return Some(format!("its `{low}` is above its `{high}`"));
        }
    }
    let choices = schema.get("enum").and_then(Value::as_array);
    if choices.is_some_and(Vec::is_empty) {
        return Some("its `enum` is empty".into());
    }
    let offered = choices.cloned().or_else(|| schema.get("const").map(|only| vec![only.clone()]));
    if let (Some(offered), Some(kind)) = (&offered, schema.get("type").and_then(Value::as_str))
        && !offered.iter().any(|value| is_of(value, kind))
    {
        return Some(format!("none of the values it names is of type `{kind}`"));
    }
    let no_properties = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&no_properties);
    let closed =
        schema.get("additionalProperties") == Some(&Value::Bool(false)) && schema.get("patternProperties").is_none();
    for required in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        match properties.get(required) {
            None if closed => return Some(format!("it requires `{required}` and allows no such property")),
            None => {}
            Some(property) => {
                if let Some(reason) = contradiction(property) {
                    return Some(format!("nothing fits its `{required}`: {reason}"));
                }
            }
        }
    }
    None
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_contradictions_are_seen_and_what_can_be_given_passes() {
        for schema in [
            json!(false),
            json!({ "enum": [] }),
            json!({ "type": "string", "enum": [1, 2] }),
            json!({ "type": "integer", "const": 1.5 }),
            json!({ "minimum": 3, "maximum": 2 }),
            json!({ "required": ["item"], "properties": {}, "additionalProperties": false }),
            json!({ "required": ["item"], "properties": { "item": { "minLength": 2, "maxLength": 1 } } }),
        ] {
            assert!(contradiction(&schema).is_some(), "{schema}");
        }
        for schema in [
            json!(true),
            json!({}),
            json!({ "required": ["item"], "properties": { "item": { "type": "string" } }, "additionalProperties": false }),
            json!({ "properties": { "item": { "enum": [] } } }),
            json!({ "type": "integer", "enum": [1, 2.0] }),
        ] {
            assert_eq!(contradiction(&schema), None, "{schema}");
        }
    }
}
