//! Changes that leave JSON JSON: another value, one from elsewhere, one member less, one level more.

use serde_json::{Map, Value, json};

use crate::chance::Chance;

/// One change nests a value less deep than two to the power of this, which is as deep as the parser goes.
const NEST_BITS: usize = 8;

/// The bytes with one value changed, where they are JSON. Lines that are JSON each count as such.
pub(crate) fn changed(bytes: &[u8], other: &[u8], chance: &mut Chance) -> Option<Vec<u8>> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let whole = serde_json::from_slice::<Value>(bytes).ok();
    let at = if whole.is_some() { 0 } else { chance.below(lines.len()) };
    let mut value = match whole {
        Some(value) => {
            lines = vec![bytes];
            value
        }
        None => serde_json::from_slice(lines[at]).ok()?,
    };
    let donor = serde_json::from_slice::<Value>(other).ok();
    change(&mut value, donor.as_ref(), chance);
    let text = value.to_string();
    lines[at] = text.as_bytes();
    Some(lines.join(&b'\n'))
}

fn change(root: &mut Value, donor: Option<&Value>, chance: &mut Chance) {
    let count = size(root);
    let place = nth(root, &mut chance.below(count));
    match chance.below(7) {
        0 => *place = simple(chance),
        1 | 2 => {
            if let Some(donor) = donor {
                let mut donor = donor.clone();
                let count = size(&donor);
                *place = nth(&mut donor, &mut chance.below(count)).take();
            }
        }
        3 => match place {
            Value::Object(fields) => {
                if let Some(name) = fields.keys().nth(chance.below(fields.len())).cloned() {
                    fields.remove(&name);
                }
            }
            Value::Array(items) if !items.is_empty() => drop(items.remove(chance.below(items.len()))),
            other => *other = Value::Null,
        },
        4 => match place {
            Value::Array(items) if !items.is_empty() => {
                let item = items[chance.below(items.len())].clone();
                items.resize(items.len() + 1 + chance.below(20), item);
            }
            Value::String(text) => *text = text.repeat(1 + chance.below(200)),
            other => *other = json!([other.clone(), other.clone()]),
        },
        5 => {
            for _ in 0..chance.small(NEST_BITS) {
                *place = if chance.below(2) == 0 { json!([place.take()]) } else { json!({"a": place.take()}) };
            }
        }
        _ => {
            if let Value::Object(fields) = place {
                rename(fields, chance);
            }
        }
    }
}

/// Gives one member the name of another, which it then stands in for.
fn rename(fields: &mut Map<String, Value>, chance: &mut Chance) {
    let names: Vec<String> = fields.keys().cloned().collect();
    if names.is_empty() {
        return;
    }
    let (from, to) = (&names[chance.below(names.len())], &names[chance.below(names.len())]);
    if let Some(value) = fields.remove(from) {
        fields.insert(to.clone(), value);
    }
}

fn simple(chance: &mut Chance) -> Value {
    match chance.below(10) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(false),
        3 => json!(chance.below(600)),
        4 => json!(-1),
        5 => json!(u64::MAX),
        6 => json!(1.5e300),
        7 => json!("\u{0}\u{202e}\"`"),
        8 => json!({}),
        _ => json!([]),
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(size).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// The value of that number, counting each before what is in it.
fn nth<'a>(value: &'a mut Value, n: &mut usize) -> &'a mut Value {
    if *n == 0 {
        return value;
    }
    *n -= 1;
    let sizes: Vec<usize> = match &*value {
        Value::Array(items) => items.iter().map(size).collect(),
        Value::Object(fields) => fields.values().map(size).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let mut at = 0;
    while at + 1 < sizes.len() && *n >= sizes[at] {
        *n -= sizes[at];
        at += 1;
    }
    match value {
        Value::Array(items) => nth(&mut items[at], n),
        Value::Object(fields) => nth(fields.values_mut().nth(at).expect("it was counted"), n),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
