//! The same answers in the words of agents that were written for another server, field for field.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::order::{Agent, Mode, ORDER, serve};
use crate::support::Place;
use crate::support::client::{Client, Sdk};

fn meta() -> Value {
    json!({ "amends/dialect": "theodosia" })
}

fn members(body: &Value) -> BTreeSet<&str> {
    body.as_object().unwrap_or_else(|| panic!("{body}")).keys().map(String::as_str).collect()
}

/// A headline, the body as text, and the body: what every answer has.
fn body(result: &Value, is_error: bool) -> Value {
    assert_eq!(result["isError"], is_error, "{result}");
    let content = result["content"].as_array().expect("content");
    assert_eq!(content.len(), 2, "{result}");
    let text: Value = serde_json::from_str(content[1]["text"].as_str().expect("a text")).expect("JSON");
    assert_eq!(text, result["structuredContent"], "{result}");
    text
}

const ALWAYS: [&str; 6] = ["error", "requested", "valid_next_actions", "next_action_schemas", "session", "next_hint"];

fn refused(result: &Value, kind: &str, is_error: bool, more: &[&str]) -> Value {
    let body = body(result, is_error);
    assert_eq!(body["error"], kind, "{body}");
    assert_eq!(members(&body), ALWAYS.into_iter().chain(more.iter().copied()).collect::<BTreeSet<_>>(), "{body}");
    body
}

#[test]
fn each_kind_of_answer_has_its_fields_and_no_others() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let client = Client::http(Sdk::Python, Some("modern"), &gateway.mcp());
    let mut agent = Agent::new(client, Mode::Step, true);
    let mut take = |action: &str, inputs: Value| agent.takes_with(action, inputs, json!({}), meta());
    refused(&take("pay", json!({ "amount": 5 })), "invalid_transition", false, &["message"]);
    let unknown = refused(&take("pya", json!({})), "unknown_action", false, &["message", "known_actions"]);
    assert_eq!(unknown["known_actions"], json!(["drop_order", "hand_over", "pay", "take_order"]));
    let invalid = take("take_order", json!({ "item": 5, "order": "ord_lost" }));
    refused(&invalid, "validation_failed", false, &["reason", "details"]);
    let taken = body(&take("take_order", json!({ "item": "latte", "order": "ord_lost" })), false);
    let fields = ["action", "result", "state", "valid_next_actions", "session", "next_hint", "next_action_schemas"];
    assert_eq!(members(&taken), fields.into_iter().collect::<BTreeSet<_>>(), "{taken}");
    assert_eq!((&taken["action"], &taken["result"]), (&json!("take_order"), &Value::Null), "{taken}");
    assert_eq!(taken["state"], json!({ "item": "latte", "order": "ord_lost" }), "{taken}");
    assert_eq!(taken["next_action_schemas"]["pay"]["amount"]["type"], "number", "{taken}");
    assert_eq!(taken["next_action_schemas"]["drop_order"], json!({}), "{taken}");
    let stale = agent.takes_with("pay", json!({ "amount": 5 }), json!({ "expect_seq": 7 }), meta());
    refused(&stale, "stale_state", false, &["message"]);
    let nowhere = agent.client.run(json!({
        "op": "call", "tool": "step", "args": { "action": "pay", "session": "ses_unknown" }, "meta": meta(),
    }));
    let nowhere = body(&nowhere["result"], false);
    assert_eq!(nowhere["error"], "unknown_action", "{nowhere}");
    let told = ["known_actions", "next_hint", "next_action_schemas", "valid_next_actions"];
    assert!(told.iter().all(|member| nowhere.get(*member).is_some()), "{nowhere}");
    let mut take = |action: &str, inputs: Value| agent.takes_with(action, inputs, json!({}), meta());
    let timed_out = take("pay", json!({ "amount": 5 }));
    let timed_out = refused(&timed_out, "action_timeout", true, &["message", "timeout_seconds"]);
    assert_eq!(timed_out["timeout_seconds"], 3.0, "{timed_out}");

    let client = Client::http(Sdk::Python, Some("legacy"), &gateway.mcp());
    let mut agent = Agent::new(client, Mode::Step, false);
    let mut take = |action: &str, inputs: Value| agent.takes_with(action, inputs, json!({}), meta());
    take("take_order", json!({ "item": "latte", "order": "ord_forbidden" }));
    let failed = take("pay", json!({ "amount": 5 }));
    refused(&failed, "action_error", true, &["error_type", "error_message"]);
}
