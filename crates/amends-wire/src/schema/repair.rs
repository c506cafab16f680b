//! Arguments that are right but for names: put right where the nearest name leaves no choice.

use amends_core::refusal::ArgumentFault;
use serde_json::{Map, Value};

use super::{NO_SUCH_FIELD, Schema};

/// The arguments with every misspelt field and option replaced by the one name that is near; nothing where that does not
/// make them valid. Whatever else is wrong with them is the agent's to put right.
pub(super) fn repaired(schema: &Schema, value: &Value, faults: &[ArgumentFault]) -> Option<Map<String, Value>> {
    if faults.is_empty() {
        return None;
    }
    let mut args = value.clone();
    // A missing field may be one that is only misspelt: whether it still is shows in the end.
    let unmissed = faults.iter().filter(|fault| fault.expected != super::PRESENT);
    for fault in unmissed {
        let [near] = fault.nearest.as_slice() else { return None };
        let (parent, name) = fault.field.rsplit_once('.').unwrap_or(("", &fault.field));
        let place = within(&mut args, parent)?;
        if fault.expected == NO_SUCH_FIELD {
            let fields = place.as_object_mut().filter(|fields| !fields.contains_key(near))?;
            let moved = fields.remove(name)?;
            fields.insert(near.clone(), moved);
        } else {
            *member(place, name)? = Value::String(near.clone());
        }
    }
    let valid = schema.is_valid(&args);
    match args {
        Value::Object(args) if valid => Some(args),
        _ => None,
    }
}

fn within<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.').filter(|part| !part.is_empty()).try_fold(value, member)
}

fn member<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    match value {
        Value::Object(fields) => fields.get_mut(name),
        Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::schema::Schema;

    fn call(given: &Value) -> Option<Value> {
        let schema = Schema::from_value(json!({
            "type": "object", "additionalProperties": false, "required": ["order", "currency"],
            "properties": {
                "order": {"type": "string"}, "amount": {"type": "number"},
                "currency": {"enum": ["EUR", "USD", "GBP"]},
                "lines": {"type": "array", "items": {"type": "object", "additionalProperties": false,
                    "properties": {"quantity": {"type": "integer"}}}},
            },
        }))
        .unwrap();
        let recovery = schema.recovery("pay", given);
        assert_ne!(recovery.call.is_some(), recovery.template.is_some(), "one of them, never both");
        let call = recovery.call?;
        assert!(schema.is_valid(&Value::Object(call.args.clone())));
        Some(Value::Object(call.args))
    }

    #[test]
    fn names_that_are_nearly_right_make_a_complete_call() {
        let given = json!({"ordr": "o1", "currency": "EURO", "lines": [{"quantty": 2}]});
        assert_eq!(call(&given), Some(json!({"order": "o1", "currency": "EUR", "lines": [{"quantity": 2}]})));
    }

    #[test]
    fn nothing_is_guessed_beyond_names() {
        for given in [
            json!({"order": "o1"}),
            json!({"order": 5, "currency": "EUR"}),
            json!({"order": "o1", "currency": "XYZ"}),
            json!({"order": "o1", "currency": "EUR", "quite_another": 1}),
            json!({"order": "o1", "ordr": "o2", "currency": "EUR"}),
        ] {
            assert_eq!(call(&given), None, "{given}");
        }
    }
}
