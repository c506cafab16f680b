//! The arguments of the tools that machines are walked with: what is read of them is what was written, or they are refused.

use amends_wire::mcp::steps::{Tool, Wanted, read, read_action};
use serde_json::Value;
use serde_json::value::RawValue;

/// Reads the bytes as the arguments of each tool, and of an action that is a tool of its own.
pub fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    // Some clients write an object as a text.
    let quoted = Value::from(&*text).to_string();
    let within = format!("{{\"action\":\"go\",\"inputs\":{quoted}}}");
    for text in [&*text, &within] {
        let Ok(arguments) = serde_json::from_str::<&RawValue>(text) else { continue };
        for tool in [Tool::Step, Tool::Reset, Tool::Fork, Tool::Cancel, Tool::Walk] {
            check(read(tool, "tool", Some(arguments)));
        }
        check(read_action("tool", "machine", "action", None, Some(arguments)));
    }
}

fn check(wanted: Result<Wanted, Box<amends_core::Refusal>>) {
    match wanted {
        Ok(Wanted::Step { inputs, .. }) => {
            let again: Value = serde_json::from_str(inputs.raw.get()).expect("what was read can be read again");
            assert_eq!(again, Value::Object(inputs.value));
        }
        Ok(_) => {}
        Err(refusal) => assert!(!refusal.details.is_empty() && refusal.recovery.is_some(), "{refusal:?}"),
    }
}
