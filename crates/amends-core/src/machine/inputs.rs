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

/// How far names of other parts are followed.
const FOLLOWED_MAX: usize = 8;

/// Whether that field must be there.
pub(super) fn requires(schema: &Value, field: &str) -> bool {
    requires_within(schema, schema, field)
}

/// The same of a part of a schema.
pub(super) fn requires_within(root: &Value, part: &Value, field: &str) -> bool {
    let mut left = vec![(part, 0)];
    // Ends: what is named is followed only so far.
    while let Some((part, depth)) = left.pop() {
        let part = meant(root, part);
        let required = part.get("required").and_then(Value::as_array);
        if required.is_some_and(|all| all.iter().any(|name| name == field)) {
            return true;
        }
        let all = part.get("allOf").and_then(Value::as_array).filter(|_| depth < FOLLOWED_MAX);
        left.extend(all.into_iter().flatten().map(|part| (part, depth + 1)));
    }
    false
}

/// The part of a schema that is meant where one says nothing but the name of another.
pub(super) fn meant<'a>(root: &'a Value, part: &'a Value) -> &'a Value {
    let beside = ["$ref", "$defs", "definitions", "$schema", "title", "description", "$comment"];
    let mut part = part;
    for _ in 0..FOLLOWED_MAX {
        let alone = part.as_object().is_some_and(|said| said.keys().all(|key| beside.contains(&key.as_str())));
        let pointer = part.get("$ref").and_then(Value::as_str).and_then(|named| named.strip_prefix("#/"));
        // A part with an address of its own would have to be found by it.
        let plain = pointer.filter(|pointer| alone && !pointer.contains('%') && root.get("$id").is_none());
        match plain.and_then(|pointer| root.pointer(&format!("/{pointer}"))) {
            Some(named) => part = named,
            None => break,
        }
    }
    part
}

/// The property of that name, of a part of a schema.
pub(super) fn property<'a>(root: &'a Value, part: &'a Value, name: &str) -> Option<&'a Value> {
    Some(meant(root, meant(root, part).get("properties")?.get(name)?))
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
