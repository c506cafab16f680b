//! JSON as expressions see it. CEL tells signed whole numbers from unsigned ones and adds them to none but their own kind; JSON
//! knows one kind, so that every whole number is signed where it can be, as it is in an expression.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// A value whose whole numbers are signed where they can be.
pub(super) struct Whole<'a>(pub(super) &'a Value);

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Number(number) => match number.as_i64() {
                Some(number) => serializer.serialize_i64(number),
                None => number.serialize(serializer),
            },
            Value::Array(items) => serializer.collect_seq(items.iter().map(Whole)),
            Value::Object(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, Whole(value)))),
            Value::Null | Value::Bool(_) | Value::String(_) => self.0.serialize(serializer),
        }
    }
}
