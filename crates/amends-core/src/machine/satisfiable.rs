//! Whether anything at all fits a schema.

use serde_json::Value;

use super::inputs::{closed_properties, is_of};

/// How deep a schema is looked into.
const DEPTH_MAX: usize = 12;
/// The types there are.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// Why no inputs fit that schema, which are always an object; nothing where they may. What cannot be seen passes.
pub(super) fn nothing_given(schema: &Value) -> Option<String> {
    let object = serde_json::json!({ "type": "object" });
    let why = Layers::of(&[schema], 0).nothing(0);
    why.or_else(|| {
        Layers::of(&[schema, &object], 0)
            .nothing(0)
            .map(|_| "inputs are an object, and it asks for something else".into())
    })
}

/// Why no value fits that schema.
pub(super) fn nothing_fits(schema: &Value) -> Option<String> {
    Layers::of(&[schema], 0).nothing(0)
}

/// Schemas that must all fit: each only forbids more, so that what one of them does not say is said by none.
struct Layers<'a>(Vec<&'a Value>);

impl<'a> Layers<'a> {
    fn of(schemas: &[&'a Value], depth: usize) -> Self {
        let mut layers = Vec::new();
        for schema in schemas {
            layers.push(*schema);
            let all = schema.get("allOf").and_then(Value::as_array).filter(|_| depth < DEPTH_MAX);
            for other in all.into_iter().flatten() {
                layers.extend(Self::of(&[other], depth + 1).0);
            }
        }
        Self(layers)
    }

    fn nothing(&self, depth: usize) -> Option<String> {
        self.without_branches(depth).or_else(|| self.branches(depth))
    }

    fn without_branches(&self, depth: usize) -> Option<String> {
        if depth > DEPTH_MAX {
            return None;
        }
        let forbids = |layer: &&&Value| {
            let not = layer.get("not");
            **layer == &Value::Bool(false) || not.is_some_and(|not| *not == Value::Bool(true) || is_empty(not))
        };
        if self.0.iter().any(|layer| forbids(&layer)) {
            return Some("it allows nothing".into());
        }
        let types = self.types();
        if types.is_empty() {
            return Some("its types exclude each other".into());
        }
        if let Some(reason) = self.numbers(&types).or_else(|| self.sizes(&types)).or_else(|| self.named(&types)) {
            return Some(reason);
        }
        self.properties(&types, depth)
    }

    /// The types that all of them allow.
    fn types(&self) -> Vec<&'static str> {
        let mut types = TYPES.to_vec();
        for said in self.0.iter().filter_map(|layer| layer.get("type")) {
            let said: Vec<&str> = match said {
                Value::String(one) => vec![one],
                Value::Array(some) => some.iter().filter_map(Value::as_str).collect(),
                _ => continue,
            };
            // A schema with a type that there is not cannot be used at all, which is said elsewhere.
            if said.iter().any(|kind| !TYPES.contains(kind)) {
                continue;
            }
            // A whole number is a number.
            types.retain(|kind| said.contains(kind) || (*kind == "integer" && said.contains(&"number")));
        }
        types
    }

    fn numbers(&self, types: &[&str]) -> Option<String> {
        if !types.iter().all(|kind| matches!(*kind, "number" | "integer")) {
            return None;
        }
        let least = |key: &str| self.all(key).reduce(f64::max).unwrap_or(f64::NEG_INFINITY);
        let most = |key: &str| self.all(key).reduce(f64::min).unwrap_or(f64::INFINITY);
        let (low, above) = (least("minimum"), least("exclusiveMinimum"));
        let (high, below) = (most("maximum"), most("exclusiveMaximum"));
        let (bottom, top) = (low.max(above), high.min(below));
        if bottom > top || (bottom == top && (above >= bottom || below <= top)) {
            return Some("its least value is above its greatest".into());
        }
        let first = if above >= low && above.is_finite() { above.floor() + 1.0 } else { bottom.ceil() };
        let last = if below <= high && below.is_finite() { below.ceil() - 1.0 } else { top.floor() };
        let whole = types == ["integer"] && first.is_finite() && last.is_finite() && first > last;
        whole.then(|| "there is no whole number between its bounds".into())
    }

    fn sizes(&self, types: &[&str]) -> Option<String> {
        let of = [
            ("string", "minLength", "maxLength"),
            ("array", "minItems", "maxItems"),
            ("object", "minProperties", "maxProperties"),
        ];
        let (_, low, high) = of.into_iter().find(|(kind, ..)| types == [*kind])?;
        let (least, most) = (self.all(low).reduce(f64::max)?, self.all(high).reduce(f64::min).unwrap_or(f64::INFINITY));
        if least > most {
            return Some(format!("its `{low}` is above its `{high}`"));
        }
        let closed = self.0.iter().filter_map(|layer| closed_properties(Some(layer))).map(|known| known.len()).min();
        let few = closed.filter(|known| low == "minProperties" && (*known as f64) < least)?;
        Some(format!("it wants {least} properties and allows {few}"))
    }

    /// The values that are named, where some are: one of them must be all that is asked.
    fn named(&self, types: &[&str]) -> Option<String> {
        let lists = self.0.iter().filter_map(|layer| layer.get("enum").and_then(Value::as_array).cloned());
        let only = self.0.iter().filter_map(|layer| layer.get("const")).map(|only| vec![only.clone()]);
        let lists: Vec<Vec<Value>> = lists.chain(only).collect();
        let (first, rest) = lists.split_first()?;
        let fits = |value: &&Value| {
            let number = value.as_f64();
            let length = value.as_str().map(|text| text.chars().count() as f64);
            let above = |is: Option<f64>, key: &str| is.is_none_or(|is| self.all(key).all(|least| is >= least));
            let below = |is: Option<f64>, key: &str| is.is_none_or(|is| self.all(key).all(|most| is <= most));
            rest.iter().all(|list| list.contains(value))
                && types.iter().any(|kind| is_of(value, kind))
                && above(number, "minimum")
                && below(number, "maximum")
                && number.is_none_or(|is| self.all("exclusiveMinimum").all(|least| is > least))
                && number.is_none_or(|is| self.all("exclusiveMaximum").all(|most| is < most))
                && above(length, "minLength")
                && below(length, "maxLength")
        };
        (!first.iter().any(|value| fits(&value))).then(|| "none of the values it names fits the rest of it".into())
    }

    /// The properties that must be there.
    fn properties(&self, types: &[&str], depth: usize) -> Option<String> {
        // Where it may be something else than an object, that may do.
        let object = types == ["object"] || (depth == 0 && types.contains(&"object"));
        let required = self.0.iter().filter_map(|layer| layer.get("required").and_then(Value::as_array));
        for name in required.flatten().filter_map(Value::as_str).filter(|_| object) {
            if self.0.iter().filter_map(|layer| closed_properties(Some(layer))).any(|known| !known.contains(&name)) {
                return Some(format!("it requires `{name}` and allows no such property"));
            }
            let of: Vec<&Value> =
                self.0.iter().filter_map(|layer| layer.get("properties").and_then(|all| all.get(name))).collect();
            if let Some(reason) = Layers::of(&of, depth + 1).nothing(depth + 1) {
                return Some(format!("nothing fits its `{name}`: {reason}"));
            }
        }
        None
    }

    /// Choices of which none can be taken.
    fn branches(&self, depth: usize) -> Option<String> {
        if depth > DEPTH_MAX {
            return None;
        }
        for key in ["anyOf", "oneOf"] {
            for branches in self.0.iter().filter_map(|layer| layer.get(key).and_then(Value::as_array)) {
                let open = |branch: &Value| {
                    let mut with: Vec<&Value> = Layers::of(&[branch], depth + 1).0;
                    with.extend(&self.0);
                    // The choice itself is not looked at once more, so that this ends.
                    Layers(with).without_branches(depth + 1).is_none()
                };
                if !branches.is_empty() && !branches.iter().any(open) {
                    return Some(format!("nothing fits any branch of its `{key}`"));
                }
            }
        }
        None
    }

    fn all(&self, key: &str) -> impl Iterator<Item = f64> {
        self.0.iter().filter_map(move |layer| layer.get(key).and_then(Value::as_f64))
    }
}

fn is_empty(schema: &Value) -> bool {
    schema.as_object().is_some_and(serde_json::Map::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
            json!({ "properties": { "n": false } }),
            json!({ "allOf": [{ "required": ["n"] }, { "properties": { "n": { "type": "string" } } }] }),
            json!({ "type": "object", "minProperties": 1, "properties": { "n": {} }, "additionalProperties": false }),
            json!({ "oneOf": [{ "required": ["a"] }, { "required": ["b"] }], "properties": { "a": {}, "b": {} }, "additionalProperties": false }),
        ] {
            assert_eq!(nothing_given(&schema), None, "{schema}");
        }
    }
}
