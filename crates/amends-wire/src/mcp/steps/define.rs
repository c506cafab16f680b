//! How the tools of machines stand in a list.

use amends_core::machine::{Action, Machine};
use serde_json::{Map, Value, json};

use super::names::Tool;
use super::read::extras;
use super::resource::What;

const SESSION_WORDS: &str =
    "The walk, as an earlier answer named it in `session`. Without it: the walk of this connection, or a new one.";
const EXPECT_WORDS: &str =
    "How many moves you think the walk has made (`seq`). If it has made others, nothing is done and you are told.";

/// How far alternatives within alternatives are followed.
const ALTERNATIVES_DEPTH_MAX: usize = 8;

/// One of our tools, served under that name, for those machines.
pub fn definition(tool: Tool, name: &str, machines: &[&Machine]) -> String {
    let session = json!({ "type": "string", "description": SESSION_WORDS });
    let (title, description, properties, required, hints) = match tool {
        Tool::Step => {
            let mut properties = json!({
                "action": { "type": "string", "description": "The action to take: one of `valid_next_actions`." },
                "inputs": {
                    "type": "object",
                    "description": "Its inputs, by the action's schema in `next_action_schemas`.",
                },
                "session": session,
                "expect_seq": { "type": "integer", "minimum": 0, "description": EXPECT_WORDS },
            });
            if machines.len() > 1 {
                let known: Vec<&str> = machines.iter().map(|machine| machine.name().as_str()).collect();
                let words = "The machine to walk, for a walk that begins; with `session`, the one that walk is in.";
                properties["machine"] = json!({ "type": "string", "enum": known, "description": words });
            }
            let hints = json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false });
            ("Take an action", step_words(machines), properties, json!(["action"]), hints)
        }
        Tool::Reset => (
            "Begin again",
            "Begins a walk again from its first state. What was done stays done.".to_owned(),
            json!({ "session": session }),
            json!([]),
            json!({ "readOnlyHint": false, "destructiveHint": false, "idempotentHint": true }),
        ),
        Tool::Fork => (
            "Go back, as another walk",
            "Begins another walk at a past point of one: give the `session` of the answer to go on with it. Nothing that was \
             done is undone, and nothing is done again."
                .to_owned(),
            json!({
                "session": session,
                "seq": {
                    "type": "integer", "minimum": 0,
                    "description": "After how many of its moves; without it, where it is now.",
                },
            }),
            json!([]),
            json!({ "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false }),
        ),
        Tool::Cancel => (
            "Stop a move",
            "Stops the move that is being made. What was already sent is settled first: the answer says how it ended."
                .to_owned(),
            json!({ "session": session }),
            json!([]),
            json!({ "readOnlyHint": false, "destructiveHint": false, "idempotentHint": true }),
        ),
        Tool::Walk => {
            let what: Vec<&str> = What::ALL.iter().map(|what| what.as_str()).collect();
            (
                "Look at a walk",
                "Shows a walk, as the resources `amends://…` do: what may be done next, what was done, the state and \
                 its fields, a picture, or every recorded event. It changes nothing."
                    .to_owned(),
                json!({
                    "session": session,
                    "what": { "type": "string", "enum": what, "description": "What to show; without it, `next`." },
                }),
                json!([]),
                json!({ "readOnlyHint": true }),
            )
        }
    };
    let input = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    json!({ "name": name, "title": title, "description": description, "inputSchema": input, "annotations": hints })
        .to_string()
}

/// The tool of one action, served under that name, with the schema of its inputs.
pub fn action_tool(
    name: &str,
    machine: &Machine,
    action_name: &str,
    action: &Action,
    schema: Option<&Value>,
) -> String {
    let input = with_ours(schema);
    let from: Vec<String> = action.from.iter().map(|state| format!("`{state}`")).collect();
    let mut words = action.description.clone().unwrap_or_else(|| format!("Takes the action `{action_name}`."));
    words.push_str(&format!(
        " Only from {} of `{}`; elsewhere it says what to do instead.",
        from.join(", "),
        machine.name()
    ));
    json!({
        "name": name, "description": words, "inputSchema": input,
        "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false },
    })
    .to_string()
}

/// The schema of an action's inputs, with our own two members beside them: whatever says which members there can be lets them be.
fn with_ours(schema: Option<&Value>) -> Value {
    let mut input = match schema {
        Some(Value::Object(schema)) => schema.clone(),
        _ => Map::new(),
    };
    input.insert("type".into(), json!("object"));
    input.entry("properties").or_insert_with(|| json!({}));
    let (session, expect) = extras(schema);
    let ours = Map::from_iter([
        (session.to_owned(), json!({ "type": "string", "description": SESSION_WORDS })),
        (expect.to_owned(), json!({ "type": "integer", "minimum": 0, "description": EXPECT_WORDS })),
    ]);
    let mut input = Value::Object(input);
    let root = input.clone();
    admit(&mut input, &root, &ours, ALTERNATIVES_DEPTH_MAX);
    if let Some(properties) = input["properties"].as_object_mut() {
        properties.extend(ours);
    }
    input
}

/// Lets those members be, wherever a schema or one of its alternatives says which there can be.
fn admit(schema: &mut Value, root: &Value, ours: &Map<String, Value>, depth: usize) {
    let Some(fields) = schema.as_object_mut().filter(|_| depth > 0) else { return };
    let closed = |keyword: &str| fields.get(keyword).is_some_and(|rest| *rest != json!(true));
    if closed("additionalProperties") || closed("unevaluatedProperties") {
        let properties = fields.entry("properties").or_insert_with(|| json!({}));
        // What they are is said once, beside the other inputs.
        if let Some(known) = properties.as_object_mut() {
            for name in ours.keys() {
                known.entry(name).or_insert_with(|| json!({}));
            }
        }
    }
    if let Some(names) = fields.get_mut("propertyNames") {
        let known: Vec<&String> = ours.keys().collect();
        *names = json!({ "anyOf": [names.take(), { "enum": known }] });
    }
    if let Some(most) = fields.get("maxProperties").and_then(Value::as_u64) {
        fields.insert("maxProperties".to_owned(), json!(most.saturating_add(ours.len() as u64)));
    }
    // What is referred to may be used elsewhere as it is: here it stands in its own place.
    let target = fields.get("$ref").and_then(Value::as_str).and_then(|target| root.pointer(target.strip_prefix('#')?));
    if let Some(target) = target.cloned() {
        fields.remove("$ref");
        let all = fields.entry("allOf").or_insert_with(|| json!([]));
        all.as_array_mut().into_iter().for_each(|all| all.push(target.clone()));
    }
    for keyword in ["oneOf", "anyOf", "allOf"] {
        let parts = fields.get_mut(keyword).and_then(Value::as_array_mut);
        parts.into_iter().flatten().for_each(|part| admit(part, root, ours, depth - 1));
    }
    for keyword in ["if", "then", "else"] {
        fields.get_mut(keyword).into_iter().for_each(|part| admit(part, root, ours, depth - 1));
    }
    let dependent = fields.get_mut("dependentSchemas").and_then(Value::as_object_mut);
    dependent.into_iter().flatten().for_each(|(_, part)| admit(part, root, ours, depth - 1));
}

fn step_words(machines: &[&Machine]) -> String {
    let mut words = "Takes one action of a declared order of work. Every answer, and every refusal, has \
                     `valid_next_actions` and their input schemas in `next_action_schemas`: take one of those next. \
                     Give `session` from the answer to go on with the same walk."
        .to_owned();
    for machine in machines {
        let first: Vec<String> = machine
            .actions()
            .filter(|(_, action)| action.from.contains(machine.initial()))
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        let about = machine.description().map(|about| format!(" ({about})")).unwrap_or_default();
        words.push_str(&format!("\nMachine `{}`{about} begins with {}.", machine.name(), first.join(" or ")));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;

    #[test]
    fn whatever_closes_the_inputs_of_an_action_lets_its_walk_be_named() {
        let (text, closed) =
            (json!({ "type": "string" }), json!({ "properties": { "a": {} }, "additionalProperties": false }));
        let fits = json!({ "a": "x" });
        for schema in [
            closed.clone(),
            json!({ "oneOf": [closed, { "properties": { "b": {} }, "required": ["b"], "additionalProperties": false }] }),
            json!({ "allOf": [{ "anyOf": [closed] }] }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": closed } }),
            json!({ "oneOf": [{ "$ref": "#/$defs/a" }], "$defs": { "a": closed } }),
            json!({ "properties": { "a": {} }, "unevaluatedProperties": false }),
            json!({ "additionalProperties": text, "maxProperties": 1 }),
            json!({ "propertyNames": { "maxLength": 1 } }),
            json!({ "if": { "required": ["a"] }, "then": closed }),
        ] {
            let ours = Schema::from_value(with_ours(Some(&schema))).unwrap();
            let named = |mut inputs: Value| {
                (inputs["session"], inputs["expect_seq"]) = (json!("ses_1"), json!(3));
                inputs
            };
            assert!(ours.is_valid(&named(fits.clone())), "{schema}: {:?}", ours.check(&named(fits.clone())));
            assert!(ours.is_valid(&fits), "{schema}");
            let more = json!({ "a": 1, "too_much": 2 });
            assert!(!ours.is_valid(&named(more)), "it is as closed as it was: {schema}");
        }
        let wrong = Schema::from_value(with_ours(None)).unwrap();
        assert!(!wrong.is_valid(&json!({ "session": 5 })), "a walk is named by text");
    }
}
