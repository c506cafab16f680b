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
                properties["machine"] = json!({
                    "type": "string", "enum": known, "description": "The machine to walk, for a walk that begins.",
                });
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
    let mut input = match schema {
        Some(Value::Object(schema)) => schema.clone(),
        _ => Map::new(),
    };
    input.insert("type".into(), json!("object"));
    let (session, expect) = extras(schema);
    let properties = input.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert(session.into(), json!({ "type": "string", "description": SESSION_WORDS }));
        properties.insert(expect.into(), json!({ "type": "integer", "minimum": 0, "description": EXPECT_WORDS }));
    }
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
