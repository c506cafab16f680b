//! JSON as expressions see it. CEL tells signed whole numbers from unsigned ones and adds them to none but their own kind; JSON
//! knows one kind, so that every whole number is signed where it can be, as it is in an expression.

use serde::{Serialize, Serializer};
use serde_json::{Number, Value};

/// Below this, whole numbers that are written as broken ones (`5.0`) are told apart.
pub(super) const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A value whose whole numbers are signed where they can be.
pub(super) struct Whole<'a> {
    value: &'a Value,
    /// Whether a number without a fraction is whole, however it is written.
    by_worth: bool,
}

impl<'a> Whole<'a> {
    /// Numbers are of the kind as which they are written.
    pub(super) fn as_written(value: &'a Value) -> Self {
        Self { value, by_worth: false }
    }

    /// Numbers are of the kind that they are: `5.0` is whole.
    pub(super) fn by_worth(value: &'a Value) -> Self {
        Self { value, by_worth: true }
    }
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of = |value| Whole { value, ..*self };
        match self.value {
            Value::Number(number) => {
                let worth = || worth(number).filter(|_| self.by_worth);
                match number.as_i64().or_else(worth) {
                    Some(number) => serializer.serialize_i64(number),
                    None => number.serialize(serializer),
                }
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(of)),
            Value::Object(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, of(value)))),
            Value::Null | Value::Bool(_) | Value::String(_) => self.value.serialize(serializer),
        }
    }
}

/// The whole number that is written as a broken one.
fn worth(number: &Number) -> Option<i64> {
    let broken = number.as_f64().filter(|it| number.is_f64() && it.fract() == 0.0 && it.abs() < EXACT_MAX)?;
    Some(broken as i64)
}

/// The same value, with every number without a fraction written as a whole one.
pub(super) fn wholly(mut value: Value) -> Value {
    let mut left = vec![&mut value];
    // Ends: each turn takes one value of a finite tree.
    while let Some(value) = left.pop() {
        match value {
            Value::Number(number) => {
                if let Some(whole) = worth(number) {
                    *number = whole.into();
                }
            }
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => left.extend(fields.values_mut()),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
    value
}
