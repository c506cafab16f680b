//! Schemas: any of them is taken or refused, and what is taken checks any value at a bounded cost.

use amends_wire::Schema;
use amends_wire::schema::FAULTS_MAX;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A schema and values to hold against it.
#[derive(Deserialize)]
struct Given {
    schema: Value,
    #[serde(default)]
    values: Vec<Value>,
}

/// The longest that one fault may be in each of its parts but its path.
const PART_BYTES_MAX: usize = 8 * 1024;

/// Reads the bytes as a schema with values, or as a schema that is held against itself.
pub fn target(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let given = match Given::deserialize(&value) {
        Ok(given) => given,
        Err(_) => Given { schema: value.clone(), values: vec![value] },
    };
    let Ok(schema) = Schema::from_value(given.schema) else {
        return;
    };
    for value in &given.values {
        check(&schema, value);
    }
}

fn check(schema: &Schema, value: &Value) {
    let faults = schema.check(value);
    assert!(faults.len() <= FAULTS_MAX);
    assert_eq!(faults.is_empty(), schema.fits(value) != Some(false), "{faults:?}");
    assert_eq!(schema.is_valid(value), schema.fits(value) == Some(true));
    for fault in &faults {
        let parts = [Some(&fault.expected), fault.got.as_ref()].into_iter().flatten().chain(&fault.nearest);
        for part in parts {
            assert!(part.len() <= PART_BYTES_MAX, "{} bytes: {part}", part.len());
        }
    }
    let recovery = schema.recovery("a tool", value);
    if let Some(call) = recovery.call {
        assert_eq!(schema.fits(&Value::Object(call.args.clone())), Some(true), "{:?}", call.args);
        return;
    }
    let template = recovery.template.expect("there is a call or a template");
    let given = value.as_object().cloned().unwrap_or_default();
    assert!(part_of(&template.args, &given), "{:?} has what was not in {given:?}", template.args);
}

/// Whether all of `part` is in `whole`, with the same values. A list is kept with as many items as it had.
fn part_of(part: &Map<String, Value>, whole: &Map<String, Value>) -> bool {
    part.iter().all(|(name, value)| whole.get(name).is_some_and(|found| within(value, found)))
}

fn within(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part_of(part, whole),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(part, whole)| within(part, whole))
        }
        (part, whole) => part == whole,
    }
}
