//! Whether anything at all fits a schema.
//!
//! A schema is taken for what can be seen of it. Where that is not enough to be sure, something fits: a sound schema is never
//! refused.

mod fits;
mod kinds;

use std::cell::Cell;
use std::collections::HashSet;

use serde_json::Value;

use fits::same;

/// How deep a schema is looked into.
const DEPTH_MAX: usize = 12;
/// How many parts of a schema are looked at in all, the same ones again among them.
const LOOKS_MAX: usize = 20_000;
/// How many schemas that must all fit are looked at together.
const LAYERS_MAX: usize = 256;
/// The types there are. A number that is whole is an `integer` here, as well as a `number`.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
/// What says something of a value whatever stands beside it in its schema.
const ALONE: [&str; 19] = [
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "required",
    "properties",
    "patternProperties",
];
/// What says nothing of a value.
const NOTES: [&str; 11] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "$schema",
    "$defs",
    "definitions",
];

/// Why no inputs fit that schema, which are always an object; nothing where they may.
pub(super) fn nothing_given(schema: &Value) -> Option<String> {
    let within = Within::of(schema)?;
    let layers = within.layers([schema]);
    let why = within.nothing(&layers, 0);
    why.or_else(|| match types(&layers).contains(&"object") {
        true => nothing_fits(schema),
        false => Some("inputs are an object, and it asks for something else".into()),
    })
}

/// Why no fields fit that schema, which are always an object.
pub(super) fn nothing_fits(schema: &Value) -> Option<String> {
    let object = serde_json::json!({ "type": "object" });
    let within = Within::of(schema)?;
    within.nothing(&within.layers([schema, &object]), 0)
}

/// Whether a value surely does not fit that part of a schema.
pub(super) fn never_fits(value: &Value, root: &Value, part: &Value) -> bool {
    Within::of(root).is_some_and(|within| within.fits(value, part, 0) == Some(false))
}

/// The types that a schema allows, by what it says itself.
pub(super) fn kinds(schema: &Value) -> Vec<&'static str> {
    // Beside what it names elsewhere it may say nothing that counts.
    if schema.get("$ref").is_some() { TYPES.to_vec() } else { types(&[schema]) }
}

/// A whole schema, whose parts may name each other.
struct Within<'a> {
    root: &'a Value,
    /// Whether what names another part can be followed.
    followed: bool,
    /// How many more parts are looked at.
    looks: Cell<usize>,
}

impl<'a> Within<'a> {
    /// Nothing for a schema of times in which the words meant something else.
    fn of(root: &'a Value) -> Option<Self> {
        let draft = root.get("$schema").and_then(Value::as_str).unwrap_or("2020-12");
        let old = draft.contains("draft-03") || draft.contains("draft-04");
        let new = draft.contains("2020-12") || draft.contains("2019-09");
        // A part with an address of its own would have to be found by it.
        let followed = new && !root.to_string().contains("\"$id\"");
        (!old).then(|| Self { root, followed, looks: Cell::new(LOOKS_MAX) })
    }

    /// Those schemas, and all that they say must fit as well: each only forbids more.
    fn layers(&self, schemas: impl IntoIterator<Item = &'a Value>) -> Vec<&'a Value> {
        let mut layers = Vec::new();
        let mut left: Vec<(&Value, usize)> = schemas.into_iter().map(|schema| (schema, 0)).collect();
        // Ends: there is a bound on how many are taken.
        while let Some((schema, depth)) = left.pop() {
            if layers.len() == LAYERS_MAX || depth > DEPTH_MAX {
                continue;
            }
            if schema.get("$ref").is_some() {
                // Where it cannot be followed, what stands beside it may not count either.
                let Some(target) = self.target(schema) else { continue };
                left.push((target, depth + 1));
            }
            layers.push(schema);
            let all = schema.get("allOf").and_then(Value::as_array);
            left.extend(all.into_iter().flatten().map(|other| (other, depth + 1)));
        }
        layers
    }

    /// The part that a schema names in its `$ref`.
    fn target(&self, schema: &Value) -> Option<&'a Value> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        let plain = pointer.is_empty() || (pointer.starts_with('/') && !pointer.contains('%'));
        self.root.pointer(pointer).filter(|_| self.followed && plain)
    }

    /// Whether there is still something to be looked at.
    fn looks(&self, depth: usize) -> bool {
        let left = self.looks.get();
        self.looks.set(left.saturating_sub(1));
        left > 0 && depth <= DEPTH_MAX
    }

    /// Why nothing fits all of those.
    fn nothing(&self, layers: &[&'a Value], depth: usize) -> Option<String> {
        self.without_branches(layers, depth).or_else(|| self.branches(layers, depth))
    }

    fn without_branches(&self, layers: &[&'a Value], depth: usize) -> Option<String> {
        if !self.looks(depth) {
            return None;
        }
        let forbids = |layer: &Value| layer.get("not").is_some_and(|not| is_open(not) || said(not, layer, layers));
        if layers.iter().any(|layer| **layer == Value::Bool(false) || forbids(layer)) {
            return Some("it allows nothing".into());
        }
        let types = types(layers);
        if types.is_empty() {
            return Some("its types exclude each other".into());
        }
        if let Some(named) = named(layers) {
            let empty = |layer: &&Value| layer.get("enum").and_then(Value::as_array).is_some_and(Vec::is_empty);
            return match named.as_slice() {
                [] if layers.iter().any(empty) => Some("its `enum` is empty".into()),
                named if named.iter().any(|value| self.may_fit_rest(value, layers)) => None,
                _ => Some("none of the values it names fits the rest of it".into()),
            };
        }
        // Where one type is possible, that may do.
        let why: Option<Vec<String>> = types.into_iter().map(|kind| self.none_of(kind, layers, depth)).collect();
        why?.into_iter().next()
    }

    /// Choices of which none can be taken.
    fn branches(&self, layers: &[&'a Value], depth: usize) -> Option<String> {
        for key in ["anyOf", "oneOf"] {
            for branches in layers.iter().filter_map(|layer| layer.get(key).and_then(Value::as_array)) {
                let open = |branch: &'a Value| {
                    // What is there twice never fits alone.
                    if key == "oneOf" && branches.iter().filter(|other| *other == branch).count() > 1 {
                        return false;
                    }
                    let mut with = self.layers([branch]);
                    with.extend(layers);
                    // The choice itself is not looked at once more, so that this ends.
                    self.without_branches(&with, depth + 1).is_none()
                };
                if !branches.is_empty() && !branches.iter().any(open) {
                    return Some(format!("nothing fits any branch of its `{key}`"));
                }
            }
        }
        None
    }
}

/// The types that all of them allow.
fn types(layers: &[&Value]) -> Vec<&'static str> {
    let mut types = TYPES.to_vec();
    for layer in layers {
        if let Some(said) = layer.get("type").and_then(listed) {
            // A whole number is a number.
            types.retain(|kind| said.contains(kind) || (*kind == "integer" && said.contains(&"number")));
        }
        let not = layer.get("not").and_then(Value::as_object).filter(|not| not.len() == 1);
        if let Some(said) = not.and_then(|not| not.get("type")).and_then(listed) {
            let forbidden = |kind: &&str| said.contains(kind) || (*kind == "integer" && said.contains(&"number"));
            types.retain(|kind| !forbidden(kind));
        }
    }
    types
}

/// The types that are written; nothing where one is none, since such a schema cannot be used at all, which is said elsewhere.
fn listed(said: &Value) -> Option<Vec<&str>> {
    let said: Vec<&str> = match said {
        Value::String(one) => vec![one],
        Value::Array(some) => some.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    said.iter().all(|kind| TYPES.contains(kind)).then_some(said)
}

/// The values that are named, where some are: it must be one of them. Each is there once.
fn named<'a>(layers: &[&'a Value]) -> Option<Vec<&'a Value>> {
    let lists = layers.iter().filter_map(|layer| layer.get("enum").and_then(Value::as_array));
    let only = layers.iter().filter_map(|layer| layer.get("const")).map(std::slice::from_ref);
    let mut all = lists.map(Vec::as_slice).chain(only);
    let first = all.next()?;
    // By their texts, since they may be thousands.
    let mut left: HashSet<String> = first.iter().map(same).collect();
    for others in all {
        let others: HashSet<String> = others.iter().map(same).collect();
        left.retain(|value| others.contains(value));
    }
    Some(first.iter().filter(|value| left.remove(&same(value))).collect())
}

/// Whether everything fits a schema.
fn is_open(schema: &Value) -> bool {
    match schema {
        Value::Bool(open) => *open,
        Value::Object(said) => said.keys().all(|key| NOTES.contains(&key.as_str())),
        _ => false,
    }
}

/// Whether all that a schema asks is asked already, by the one it stands in or by one of the others.
fn said(not: &Value, of: &Value, layers: &[&Value]) -> bool {
    let Some(asked) = not.as_object() else { return false };
    let alone = |(key, value): (&String, &Value)| {
        NOTES.contains(&key.as_str())
            || (ALONE.contains(&key.as_str()) && layers.iter().any(|layer| layer.get(key) == Some(value)))
    };
    let rest = |of: &serde_json::Map<String, Value>| {
        of.iter().filter(|(key, _)| *key != "not").count() == asked.len()
            && asked.iter().all(|(key, value)| of.get(key) == Some(value))
    };
    asked.iter().all(alone) || of.as_object().is_some_and(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn thousands_of_named_values_are_looked_at_soon() {
        let names = |from: usize| (from..from + 60_000).map(|n| json!(format!("v{n}"))).collect::<Vec<_>>();
        let needs = |of: Value| json!({ "required": ["n"], "properties": { "n": of } });
        let some = needs(json!({ "allOf": [{ "enum": names(0) }, { "enum": names(59_999) }], "enum": names(50_000) }));
        let none = needs(json!({ "allOf": [{ "enum": names(0) }, { "enum": names(60_000) }] }));
        let long = needs(json!({ "enum": names(0), "allOf": [{ "enum": names(0) }, { "minLength": 9 }] }));
        let begun = std::time::Instant::now();
        assert_eq!(nothing_given(&some), None);
        assert!(nothing_given(&none).is_some_and(|why| why.contains("none of the values it names fits")));
        // More than can be looked at one by one.
        assert_eq!(nothing_given(&long), None);
        assert!(begun.elapsed().as_secs() < 10, "it took {:?}", begun.elapsed());
    }

    #[test]
    fn inputs_that_nobody_can_give_are_seen_and_all_others_pass() {
        let needs = |n: Value| json!({ "type": "object", "required": ["n"], "properties": { "n": n } });
        for schema in [
            json!({ "type": "string" }),
            json!({ "type": ["array", "null"] }),
            needs(json!({ "type": "number", "exclusiveMinimum": 5, "maximum": 5 })),
            needs(json!({ "type": "number", "minimum": 5, "exclusiveMaximum": 5 })),
            needs(json!({ "type": "integer", "minimum": 1.2, "maximum": 1.8 })),
            needs(json!({ "type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2 })),
            needs(json!({ "not": {} })),
            needs(json!({ "const": 1, "enum": [2, 3] })),
            needs(json!({ "enum": ["abc"], "maxLength": 2 })),
            needs(json!({ "enum": [1, 2], "exclusiveMinimum": 2 })),
            needs(json!({ "type": "string", "anyOf": [{ "type": "integer" }, { "enum": [3] }] })),
            needs(json!({ "type": "array", "minItems": 2, "maxItems": 1 })),
            json!({ "allOf": [{ "required": ["n"] }, { "properties": { "n": false } }] }),
            json!({ "allOf": [{ "type": "object" }, { "type": "string" }] }),
            json!({ "type": "object", "minProperties": 3, "properties": { "n": {} }, "additionalProperties": false }),
            json!({ "required": ["a"], "dependentRequired": { "a": ["b"] }, "properties": { "a": {} }, "additionalProperties": false }),
            json!({ "required": ["a", "b"], "maxProperties": 1 }),
            json!({ "minProperties": 2, "properties": { "a": {}, "b": false }, "additionalProperties": false }),
            json!({ "required": ["n"], "propertyNames": { "pattern": "^[a-c]$" } }),
            json!({ "required": ["n"], "properties": { "a": {} }, "additionalProperties": { "not": {} } }),
            json!({ "required": ["n"], "patternProperties": { "^n": false } }),
            needs(json!({ "type": "string", "not": { "type": "string" } })),
            needs(json!({ "type": "string", "minLength": 2, "not": { "minLength": 2, "description": "the same" } })),
            needs(json!({ "not": { "title": "anything" } })),
            needs(json!({ "type": "boolean", "not": { "enum": [true, false] } })),
            needs(json!({ "type": "integer", "minimum": 1, "maximum": 2, "not": { "enum": [1, 2.0] } })),
            needs(json!({ "type": "number", "multipleOf": 5, "minimum": 11, "maximum": 14 })),
            needs(json!({ "type": "number", "multipleOf": 0.5, "minimum": 1.1, "maximum": 1.4 })),
            needs(json!({ "type": "integer", "multipleOf": 1.5, "minimum": 1, "maximum": 2 })),
            needs(json!({ "const": 7, "multipleOf": 2 })),
            needs(json!({ "oneOf": [{ "type": "string" }, { "type": "string" }] })),
            needs(json!({ "enum": ["a", "b"], "oneOf": [{ "enum": ["a", "b"] }, { "minLength": 1 }] })),
            needs(json!({ "type": "array", "contains": {}, "maxItems": 0 })),
            needs(json!({ "type": "array", "contains": false })),
            needs(json!({ "type": "array", "contains": { "type": "string" }, "items": { "type": "integer" } })),
            needs(json!({ "type": "array", "minItems": 1, "items": false })),
            needs(json!({ "type": "array", "minItems": 3, "uniqueItems": true, "items": { "enum": [1, 2] } })),
            needs(json!({ "enum": ["abc", "abd"], "pattern": "^x" })),
            needs(json!({ "const": "a", "enum": ["b"] })),
            needs(json!({ "type": ["string", "null"], "minLength": 2, "maxLength": 1, "not": { "type": "null" } })),
            needs(json!({ "type": ["string", "array"], "minLength": 2, "maxLength": 1, "minItems": 2, "maxItems": 1 })),
            json!({
                "$defs": { "few": { "maximum": 1 }, "n": { "type": "integer", "allOf": [{ "$ref": "#/$defs/few" }] } },
                "required": ["n"], "properties": { "n": { "$ref": "#/$defs/n", "minimum": 2 } },
            }),
            json!({
                "required": ["a", "b"], "additionalProperties": false,
                "properties": { "a": { "type": "boolean" }, "b": { "const": 1 } },
                "not": { "properties": { "b": { "maximum": 3 } } },
            }),
        ] {
            assert!(nothing_given(&schema).is_some(), "{schema}");
        }
        for schema in [
            json!(true),
            json!({}),
            json!({ "type": ["object", "null"] }),
            needs(json!({ "type": "number", "exclusiveMinimum": 0 })),
            needs(json!({ "type": "number", "minimum": 5, "maximum": 5 })),
            needs(json!({ "type": "integer", "minimum": 1.2, "maximum": 2 })),
            needs(json!({ "type": "integer", "exclusiveMinimum": 1, "maximum": 2 })),
            needs(json!({ "exclusiveMinimum": 5, "maximum": 5 })),
            needs(json!({ "not": { "type": "string" } })),
            needs(json!({ "const": 2, "enum": [2, 3] })),
            needs(json!({ "enum": ["abc", 3], "maxLength": 2 })),
            needs(json!({ "type": "string", "anyOf": [{ "type": "integer" }, { "minLength": 3 }] })),
            needs(json!({ "$ref": "#/$defs/x" })),
            needs(json!({ "type": ["string", "null"], "minLength": 2, "maxLength": 1 })),
            needs(json!({ "minLength": 2, "maxLength": 1 })),
            needs(json!({ "minimum": 3, "maximum": 2 })),
            needs(json!({ "const": 2, "enum": [2.0, 3] })),
            needs(json!({ "type": "integer", "enum": [1, 2.0] })),
            needs(json!({ "type": "integer", "const": 2.0, "multipleOf": 2 })),
            needs(
                json!({ "type": "number", "exclusiveMinimum": 9_007_199_254_740_992_u64, "maximum": 9_007_199_254_740_993_u64 }),
            ),
            needs(json!({ "type": "number", "multipleOf": 0.1, "minimum": 0.3, "maximum": 0.3 })),
            needs(json!({ "type": "number", "multipleOf": 5, "minimum": 11, "maximum": 15 })),
            needs(json!({ "type": "string", "not": { "minLength": 2 }, "maxLength": 3 })),
            needs(
                json!({ "type": "object", "properties": { "a": {} }, "not": { "properties": { "a": {} }, "required": ["a"] } }),
            ),
            needs(json!({ "oneOf": [{ "type": "string" }, { "type": "string", "minLength": 2 }] })),
            needs(json!({ "type": "array", "contains": false, "minContains": 0 })),
            needs(json!({ "type": ["array", "null"], "contains": false })),
            needs(json!({ "type": "array", "items": false })),
            needs(json!({ "enum": ["1a"], "pattern": "^\\d" })),
            needs(json!({ "enum": ["abc"], "format": "email" })),
            needs(json!({ "enum": ["abc"], "somethingElse": false })),
            json!({ "$defs": { "t": { "properties": { "t": { "$ref": "#/$defs/t" } }, "required": ["t"] } }, "$ref": "#/$defs/t" }),
            json!({
                "$schema": "http://json-schema.org/draft-07/schema#", "definitions": { "x": {} },
                "required": ["n"], "properties": { "n": { "$ref": "#/definitions/x", "not": {} } },
            }),
            json!({ "dependentRequired": { "a": ["b"] }, "properties": { "a": {} }, "additionalProperties": false }),
            json!({ "required": ["n"], "patternProperties": { "^n": {} }, "additionalProperties": false }),
            json!({
                "required": ["a"], "additionalProperties": false, "properties": { "a": { "type": "boolean" } },
                "not": { "properties": { "a": { "const": true } } },
            }),
            json!({ "properties": { "n": false } }),
            json!({ "allOf": [{ "required": ["n"] }, { "properties": { "n": { "type": "string" } } }] }),
            json!({ "type": "object", "minProperties": 1, "properties": { "n": {} }, "additionalProperties": false }),
            json!({ "oneOf": [{ "required": ["a"] }, { "required": ["b"] }], "properties": { "a": {}, "b": {} }, "additionalProperties": false }),
        ] {
            assert_eq!(nothing_given(&schema), None, "{schema}");
        }
    }

    #[test]
    fn a_schema_that_names_itself_over_and_over_is_left_soon() {
        let both = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
        let mut schema = json!({ "$ref": "#/$defs/d0" });
        for n in 0..40 {
            let next = both(&format!("d{}", (n + 1) % 40));
            schema["$defs"][format!("d{n}")] = json!({
                "allOf": [next, next], "anyOf": [next, next], "required": ["a", "b"], "properties": { "a": next, "b": next },
            });
        }
        let begun = std::time::Instant::now();
        assert_eq!(nothing_given(&schema), None);
        assert!(begun.elapsed().as_secs() < 5, "it took {:?}", begun.elapsed());
    }
}
