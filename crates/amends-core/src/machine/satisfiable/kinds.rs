//! Whether a value of one type can fit.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::fits::matches;
use super::{Within, named, types};
use crate::machine::inputs::closed_properties;

/// Up to here numbers are told apart, and so are their multiples.
const EXACT_MAX: f64 = 1e15;
/// How many values of a type are tried.
const TRIED_MAX: usize = 256;
/// How many items of an array are looked at.
const ITEMS_MAX: usize = 8;

impl<'a> Within<'a> {
    /// Why no value of that type fits.
    pub(super) fn none_of(&self, kind: &str, layers: &[&'a Value], depth: usize) -> Option<String> {
        match kind {
            "string" => sizes(layers, "minLength", "maxLength"),
            "number" => numbers(layers, false),
            "integer" => numbers(layers, true).or_else(|| self.untaken(&few(layers)?, layers)),
            "array" => sizes(layers, "minItems", "maxItems").or_else(|| self.items(layers, depth)),
            "object" => sizes(layers, "minProperties", "maxProperties").or_else(|| self.members(layers, depth)),
            "boolean" => self.untaken(&[json!(true), json!(false)], layers),
            "null" => self.untaken(&[Value::Null], layers),
            _ => None,
        }
    }

    fn untaken(&self, values: &[Value], layers: &[&'a Value]) -> Option<String> {
        let none = !values.iter().any(|value| self.may_fit(value, layers));
        none.then(|| "none of the few values it leaves fits all of it".into())
    }

    fn items(&self, layers: &[&'a Value], depth: usize) -> Option<String> {
        let most = least_of(layers, "maxItems").unwrap_or(f64::INFINITY);
        let least = most_of(layers, "minItems").unwrap_or(0.0);
        // Where the first items have schemas of their own, those of the others are not asked of all.
        let rest = || {
            let every = layers.iter().filter(|layer| layer.get("prefixItems").is_none());
            every.filter_map(|layer| layer.get("items").filter(|items| !items.is_array()))
        };
        for layer in layers {
            let Some(contained) = layer.get("contains") else { continue };
            let wanted = layer.get("minContains").and_then(Value::as_f64).unwrap_or(1.0);
            if layer.get("maxContains").and_then(Value::as_f64).is_some_and(|most| most < wanted) {
                return Some("its `minContains` is above its `maxContains`".into());
            }
            if wanted < 1.0 {
                continue;
            }
            if wanted > most {
                return Some(format!("it must contain {wanted} items and may have {most}"));
            }
            if let Some(reason) = self.nothing(&self.layers(rest().chain([contained])), depth + 1) {
                return Some(format!("nothing fits its `contains`: {reason}"));
            }
        }
        for at in 0..ITEMS_MAX.min(least as usize) {
            let first = |layer: &&'a Value| layer.get("prefixItems").and_then(|items| items.get(at));
            let of = layers.iter().filter_map(first).chain(rest());
            if let Some(reason) = self.nothing(&self.layers(of), depth + 1) {
                return Some(format!("nothing fits its item {at}: {reason}"));
            }
        }
        let different = layers.iter().any(|layer| layer.get("uniqueItems") == Some(&Value::Bool(true)));
        let known = named(&self.layers(rest())).filter(|known| different && (known.len() as f64) < least)?;
        Some(format!("it wants {least} different items and there are {}", known.len()))
    }

    fn members(&self, layers: &[&'a Value], depth: usize) -> Option<String> {
        let allowed = allowed(layers);
        let required = required(layers);
        for name in &required {
            if allowed.as_ref().is_some_and(|allowed| !allowed.contains(name)) {
                return Some(format!("it requires `{name}` and allows no such property"));
            }
            let named = layers.iter().filter_map(|layer| layer.get("propertyNames"));
            if !named.into_iter().all(|names| self.fits(&json!(name), names, depth + 1) != Some(false)) {
                return Some(format!("it requires `{name}`, which its `propertyNames` do not allow"));
            }
            if let Some(reason) = self.nothing(&self.member(layers, name), depth + 1) {
                return Some(format!("nothing fits its `{name}`: {reason}"));
            }
        }
        let most = least_of(layers, "maxProperties").unwrap_or(f64::INFINITY);
        if required.len() as f64 > most {
            return Some(format!("it requires {} properties and allows {most}", required.len()));
        }
        let allowed = allowed?;
        if let Some(least) = most_of(layers, "minProperties") {
            let can_be = |name: &&&str| self.nothing(&self.member(layers, name), depth + 1).is_none();
            let few = allowed.iter().filter(can_be).count();
            if (few as f64) < least {
                return Some(format!("it wants {least} properties and allows {few}"));
            }
        }
        self.untaken(&self.objects(layers, &allowed, &required)?, layers)
    }

    /// Every object that there can be, where that is only a few and something joins their properties.
    fn objects(&self, layers: &[&'a Value], allowed: &BTreeSet<&str>, required: &BTreeSet<&str>) -> Option<Vec<Value>> {
        let joins = ["not", "anyOf", "oneOf", "if", "dependentRequired"];
        if !layers.iter().any(|layer| joins.iter().any(|key| layer.get(*key).is_some())) {
            return None;
        }
        let mut objects = vec![Map::new()];
        for name in allowed {
            let of = self.member(layers, name);
            let values = named(&of).map(|named| named.into_iter().cloned().collect()).or_else(|| {
                match types(&of).as_slice() {
                    ["boolean"] => Some(vec![json!(true), json!(false)]),
                    ["null"] => Some(vec![Value::Null]),
                    _ => None,
                }
            })?;
            let without = (!required.contains(name)).then_some(None);
            let choices: Vec<Option<Value>> = values.into_iter().map(Some).chain(without).collect();
            if objects.len() * choices.len() > TRIED_MAX {
                return None;
            }
            let with = |object: &Map<String, Value>, choice: &Option<Value>| {
                let mut object = object.clone();
                object.extend(choice.clone().map(|value| ((*name).to_owned(), value)));
                object
            };
            objects = objects.iter().flat_map(|object| choices.iter().map(|choice| with(object, choice))).collect();
        }
        Some(objects.into_iter().map(Value::Object).collect())
    }

    /// What is asked of the property of that name.
    fn member(&self, layers: &[&'a Value], name: &str) -> Vec<&'a Value> {
        let mut of = Vec::new();
        for layer in layers {
            let known = layer.get("properties").and_then(|known| known.get(name));
            let patterns: Vec<(Option<bool>, &Value)> = layer
                .get("patternProperties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(pattern, schema)| (matches(pattern, name), schema))
                .collect();
            let other = known.is_none() && patterns.iter().all(|(fits, _)| *fits == Some(false));
            of.extend(known);
            of.extend(patterns.into_iter().filter(|(fits, _)| *fits == Some(true)).map(|(_, schema)| schema));
            of.extend(layer.get("additionalProperties").filter(|_| other));
        }
        self.layers(of)
    }
}

/// The properties that may be there, where no others may.
fn allowed<'a>(layers: &[&'a Value]) -> Option<BTreeSet<&'a str>> {
    let closed = layers.iter().filter_map(|layer| closed_properties(Some(layer)));
    closed.map(|known| known.into_iter().collect::<BTreeSet<_>>()).reduce(|one, other| &one & &other)
}

/// The properties that must be there, those among them that others bring with them.
fn required<'a>(layers: &[&'a Value]) -> BTreeSet<&'a str> {
    let of = |names: &'a Value| names.as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut required: BTreeSet<&str> = layers.iter().filter_map(|layer| layer.get("required")).flat_map(of).collect();
    let brings = layers.iter().filter_map(|layer| layer.get("dependentRequired")?.as_object()).flatten();
    let brings: BTreeMap<&str, Vec<&str>> =
        brings.fold(BTreeMap::new(), |mut all: BTreeMap<_, Vec<_>>, (name, with)| {
            all.entry(name.as_str()).or_default().extend(of(with));
            all
        });
    let mut left: Vec<&str> = required.iter().copied().collect();
    // Ends: a name is followed only when it is new, and there are finitely many.
    while let Some(name) = left.pop() {
        for with in brings.get(name).into_iter().flatten() {
            if required.insert(with) {
                left.push(with);
            }
        }
    }
    required
}

fn sizes(layers: &[&Value], low: &str, high: &str) -> Option<String> {
    let least = most_of(layers, low)?;
    let most = least_of(layers, high)?;
    (least > most).then(|| format!("its `{low}` is above its `{high}`"))
}

/// The bounds of a number, each with whether it is itself left out.
fn bounds(layers: &[&Value]) -> ((f64, bool), (f64, bool)) {
    let (low, above) = (most_of(layers, "minimum"), most_of(layers, "exclusiveMinimum"));
    let (high, below) = (least_of(layers, "maximum"), least_of(layers, "exclusiveMaximum"));
    let or = |bound: Option<f64>, none: f64| bound.unwrap_or(none);
    let (low, above) = (or(low, f64::NEG_INFINITY), or(above, f64::NEG_INFINITY));
    let (high, below) = (or(high, f64::INFINITY), or(below, f64::INFINITY));
    ((low.max(above), above >= low), (high.min(below), below <= high))
}

/// The first and the last whole number within the bounds.
fn whole(layers: &[&Value]) -> (f64, f64) {
    let ((bottom, above), (top, below)) = bounds(layers);
    let first = if above { bottom.floor() + 1.0 } else { bottom.ceil() };
    let last = if below { top.ceil() - 1.0 } else { top.floor() };
    (first, last)
}

fn numbers(layers: &[&Value], wholly: bool) -> Option<String> {
    let ((bottom, above), (top, below)) = bounds(layers);
    let exact = |bound: f64| bound.is_finite() && bound.abs() < EXACT_MAX;
    if !exact(bottom) || !exact(top) {
        return None;
    }
    if bottom > top || (bottom == top && (above || below)) {
        return Some("its least value is above its greatest".into());
    }
    let (first, last) = whole(layers);
    if wholly && first > last {
        return Some("there is no whole number between its bounds".into());
    }
    for step in all(layers, "multipleOf").filter(|step| *step > 0.0) {
        let none = if step.fract() == 0.0 {
            (first / step).ceil() * step > last
        } else {
            // What is broken is not told apart from what lies very near.
            let (least, most) = (bottom / step, top / step);
            let near = 1e-6;
            least.abs().max(most.abs()) < 1e9 && (least - near).ceil() > (most + near).floor()
        };
        if none {
            return Some(format!("there is no multiple of {step} between its bounds"));
        }
    }
    None
}

/// The whole numbers within the bounds, where they are few.
fn few(layers: &[&Value]) -> Option<Vec<Value>> {
    let (first, last) = whole(layers);
    let few = first.abs() < EXACT_MAX && last.abs() < EXACT_MAX && last - first < TRIED_MAX as f64;
    few.then(|| (first as i64..=last as i64).map(Value::from).collect())
}

fn all(layers: &[&Value], key: &str) -> impl Iterator<Item = f64> {
    layers.iter().filter_map(move |layer| layer.get(key).and_then(Value::as_f64))
}

fn most_of(layers: &[&Value], key: &str) -> Option<f64> {
    all(layers, key).reduce(f64::max)
}

fn least_of(layers: &[&Value], key: &str) -> Option<f64> {
    all(layers, key).reduce(f64::min)
}
