//! What a schema says plainly of an action's inputs.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

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
/// How many parts of a schema are gone through for names.
const PARTS_MAX: usize = 1000;

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

/// The names of what something may have.
#[derive(Default)]
pub(super) struct Named<'a> {
    pub(super) names: BTreeSet<&'a str>,
    /// Whether it may have more, of which the names are not told.
    pub(super) more: bool,
}

impl<'a> Named<'a> {
    /// The properties that a schema names, wherever in it that is said of the same value.
    pub(super) fn by(schema: &'a Value) -> Self {
        let mut named = Self::default();
        let mut left = vec![schema];
        let mut looks = 0;
        // Ends: only so many parts are looked at.
        while let Some(part) = left.pop() {
            looks += 1;
            if looks > PARTS_MAX {
                named.more = true;
                break;
            }
            named.names.extend(names(part, "properties"));
            let required = part.get("required").and_then(Value::as_array);
            named.names.extend(required.into_iter().flatten().filter_map(Value::as_str));
            let target = part
                .get("$ref")
                .and_then(Value::as_str)
                .map(|to| to.strip_prefix('#').and_then(|to| schema.pointer(to)));
            let elsewhere = part.get("$dynamicRef").is_some() || part.get("patternProperties").is_some();
            named.more |= elsewhere || target == Some(None);
            left.extend(target.flatten());
            left.extend(["if", "then", "else"].into_iter().filter_map(|key| part.get(key)));
            let lists = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| part.get(key)?.as_array());
            left.extend(lists.flatten());
            left.extend(part.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(Map::values));
        }
        named
    }

    /// Those and no others.
    pub(super) fn only(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { names: names.into_iter().collect(), more: false }
    }

    /// Whether it surely has nothing of that name.
    pub(super) fn lacks(&self, name: &str) -> bool {
        !self.more && !self.names.contains(name)
    }
}

fn names<'a>(part: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    part.get(key).and_then(Value::as_object).into_iter().flat_map(Map::keys).map(String::as_str)
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
