//! Whether one value fits a schema, as far as that is sure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{NOTES, Within};
use crate::machine::inputs::is_of;

/// Above this, whole numbers are not told apart.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

impl Within<'_> {
    /// Whether a value may fit all of those.
    pub(super) fn may_fit(&self, value: &Value, layers: &[&Value]) -> bool {
        layers.iter().all(|layer| self.fits(value, layer, 0) != Some(false))
    }

    /// The same of a value that all of those name. What they name is not gone through again for each of many, nor what is among
    /// them anyway.
    pub(super) fn may_fit_rest(&self, value: &Value, layers: &[&Value]) -> bool {
        let gone_through = ["enum", "const", "allOf", "$ref"];
        layers.iter().all(|layer| self.fits_but(&gone_through, value, layer, 0) != Some(false))
    }

    /// Whether a value fits a schema; nothing where that is not sure.
    pub(super) fn fits(&self, value: &Value, schema: &Value, depth: usize) -> Option<bool> {
        self.fits_but(&[], value, schema, depth)
    }

    /// The same without some words of the schema.
    fn fits_but(&self, words: &[&str], value: &Value, schema: &Value, depth: usize) -> Option<bool> {
        let said = match schema {
            Value::Bool(open) => return Some(*open),
            Value::Object(said) => said,
            _ => return None,
        };
        if !self.looks(depth) || (said.contains_key("$ref") && self.target(schema).is_none()) {
            return None;
        }
        all(said
            .iter()
            .filter(|(key, _)| !words.contains(&key.as_str()))
            .map(|(key, of)| self.plainly(value, key, of).unwrap_or_else(|| self.joined(value, key, of, said, depth))))
    }

    /// What a word says that speaks of the value alone; nothing where it is none of those.
    fn plainly(&self, value: &Value, key: &str, of: &Value) -> Option<Option<bool>> {
        let number = |compare: fn(f64, f64) -> bool| match (value, of) {
            (Value::Number(is), Value::Number(bound)) => exact(is).zip(exact(bound)).map(|(is, by)| compare(is, by)),
            (Value::Number(_), _) => None,
            _ => Some(true),
        };
        let size = |size: Option<usize>, compare: fn(f64, f64) -> bool| match size {
            Some(size) => of.as_f64().map(|bound| compare(size as f64, bound)),
            None => Some(true),
        };
        let letters = value.as_str().map(|text| text.chars().count());
        let items = value.as_array().map(Vec::len);
        let members = value.as_object().map(Map::len);
        Some(match key {
            key if NOTES.contains(&key) => Some(true),
            "type" => super::listed(of).map(|kinds| kinds.iter().any(|kind| is_of(value, kind))),
            "const" => Some(equal(value, of)),
            "enum" => of.as_array().map(|all| all.iter().any(|other| equal(value, other))),
            "minimum" => number(|is, by| is >= by),
            "maximum" => number(|is, by| is <= by),
            "exclusiveMinimum" => number(|is, by| is > by),
            "exclusiveMaximum" => number(|is, by| is < by),
            "multipleOf" => match (value, of) {
                (Value::Number(is), Value::Number(of)) => {
                    exact(is).zip(exact(of)).and_then(|(is, of)| multiple(is, of))
                }
                (Value::Number(_), _) => None,
                _ => Some(true),
            },
            "minLength" => size(letters, |is, by| is >= by),
            "maxLength" => size(letters, |is, by| is <= by),
            "minItems" => size(items, |is, by| is >= by),
            "maxItems" => size(items, |is, by| is <= by),
            "minProperties" => size(members, |is, by| is >= by),
            "maxProperties" => size(members, |is, by| is <= by),
            "pattern" => match (value.as_str(), of.as_str()) {
                (Some(text), Some(pattern)) => matches(pattern, text),
                (Some(_), None) => None,
                (None, _) => Some(true),
            },
            "required" => match (value.as_object(), of.as_array()) {
                (Some(members), Some(names)) => {
                    Some(names.iter().filter_map(Value::as_str).all(|name| members.contains_key(name)))
                }
                (Some(_), None) => None,
                (None, _) => Some(true),
            },
            "dependentRequired" => match (value.as_object(), of.as_object()) {
                (Some(members), Some(of)) => {
                    let there = of.iter().filter(|(name, _)| members.contains_key(*name));
                    let mut names = there.filter_map(|(_, names)| names.as_array()).flatten().filter_map(Value::as_str);
                    Some(names.all(|name| members.contains_key(name)))
                }
                (Some(_), None) => None,
                (None, _) => Some(true),
            },
            _ => return None,
        })
    }

    /// What a word says that speaks of other schemas; not sure where it is one that is not known here.
    fn joined(&self, value: &Value, key: &str, of: &Value, said: &Map<String, Value>, depth: usize) -> Option<bool> {
        let fits = |schema: &Value| self.fits(value, schema, depth + 1);
        let branches = || of.as_array().into_iter().flatten().map(fits);
        match key {
            "$ref" => self.target(&Value::Object(said.clone())).and_then(fits),
            "allOf" => all(branches()),
            "anyOf" => any(branches()),
            "oneOf" => {
                let (yes, unsure) = branches().fold((0, 0), |(yes, unsure), fits| match fits {
                    Some(true) => (yes + 1, unsure),
                    Some(false) => (yes, unsure),
                    None => (yes, unsure + 1),
                });
                if yes > 1 { Some(false) } else { (unsure == 0).then_some(yes == 1) }
            }
            "not" => fits(of).map(|fits| !fits),
            "if" => {
                let chosen = if fits(of)? { said.get("then") } else { said.get("else") };
                chosen.map_or(Some(true), fits)
            }
            "then" | "else" => Some(true),
            "properties" => match (value.as_object(), of.as_object()) {
                (Some(members), Some(of)) => {
                    all(of.iter().filter_map(|(name, schema)| Some(self.fits(members.get(name)?, schema, depth + 1))))
                }
                (Some(_), None) => None,
                (None, _) => Some(true),
            },
            "additionalProperties" if said.get("patternProperties").is_none() => {
                let known = said.get("properties").and_then(Value::as_object);
                let other = |name: &String| known.is_none_or(|known| !known.contains_key(name));
                let others = value.as_object().into_iter().flatten().filter(|(name, _)| other(name));
                all(others.map(|(_, value)| self.fits(value, of, depth + 1)))
            }
            "items" if of.is_object() && said.get("prefixItems").is_none() => {
                all(value.as_array().into_iter().flatten().map(|item| self.fits(item, of, depth + 1)))
            }
            // Of other kinds of values, these say nothing.
            "items" | "prefixItems" | "contains" | "minContains" | "maxContains" | "uniqueItems" => {
                (!value.is_array()).then_some(true)
            }
            "additionalProperties" | "patternProperties" | "propertyNames" | "dependentSchemas" => {
                (!value.is_object()).then_some(true)
            }
            _ => None,
        }
    }
}

/// Whether all of it is true; not sure where nothing is false and something not sure.
fn all(of: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut sure = Some(true);
    for one in of {
        match one {
            Some(true) => {}
            Some(false) => return Some(false),
            None => sure = None,
        }
    }
    sure
}

fn any(of: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    all(of.map(|one| one.map(|one| !one))).map(|none| !none)
}

/// Whether two values are the same: `2` is `2.0`.
pub(super) fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(name, one): (&String, &Value)| other.get(name).is_some_and(|other| equal(one, other));
            one.len() == other.len() && one.iter().all(same)
        }
        _ => one == other,
    }
}

/// One text for all values that are the same.
pub(super) fn same(value: &Value) -> String {
    match value {
        // Without the sign of a zero.
        Value::Number(number) => {
            number.as_f64().map_or_else(|| number.to_string(), |number| (number + 0.0).to_string())
        }
        Value::Array(items) => format!("[{}]", items.iter().map(same).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let members: BTreeMap<&String, String> = members.iter().map(|(name, value)| (name, same(value))).collect();
            format!("{members:?}")
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.to_string(),
    }
}

/// A number that is told apart from those around it.
fn exact(number: &serde_json::Number) -> Option<f64> {
    number.as_f64().filter(|number| number.abs() < EXACT_MAX)
}

/// Whether a number is so many times another; of broken ones, only that it is far from it is sure.
fn multiple(is: f64, of: f64) -> Option<bool> {
    if of <= 0.0 {
        return None;
    }
    if is.fract() == 0.0 && of.fract() == 0.0 {
        return Some(is % of == 0.0);
    }
    let times = is / of;
    let off = (times - times.round()).abs();
    (times.abs() < 1e9 && off > 1e-6).then_some(false)
}

/// Whether a text has that pattern in it; not sure where patterns of different tongues may mean different things by it.
pub(super) fn matches(pattern: &str, text: &str) -> Option<bool> {
    let mut before = ' ';
    for letter in pattern.chars() {
        if before == '\\' && letter.is_alphanumeric() {
            return None;
        }
        before = if before == '\\' && letter == '\\' { ' ' } else { letter };
    }
    if ["(?", "&&", "--", "~~", "[["].iter().any(|special| pattern.contains(special)) {
        return None;
    }
    Some(regex::Regex::new(pattern).ok()?.is_match(text))
}
