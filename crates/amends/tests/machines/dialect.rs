//! The same answers in the words of agents that were written for another server, field for field.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::bare::Bare;
use crate::order::{Agent, Mode, ORDER, serve};
use crate::support::Place;
use crate::support::client::{Client, Sdk};
use crate::till::{self, SALE};

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
    let invalid = refused(&invalid, "validation_failed", false, &["reason", "details"]);
    assert_eq!((&invalid["details"]["field"], &invalid["details"]["got"]), (&json!("item"), &json!(5)), "{invalid}");
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
    assert_eq!((&nowhere["error"], &nowhere["details"]["field"]), (&json!("validation_failed"), &json!("session")));
    let told = ["reason", "next_hint", "next_action_schemas", "valid_next_actions"];
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

#[test]
fn what_is_looked_at_says_beside_it_what_may_be_done() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let client = Bare::stateless(&gateway);
    for what in ["next", "state", "history", "graph.mmd"] {
        let shown =
            client.result("tools/call", json!({ "name": "walk", "arguments": { "what": what }, "_meta": meta() }));
        let shown = body(&shown, false);
        let told = ["result", "valid_next_actions", "next_action_schemas", "next_hint"];
        assert_eq!(members(&shown), told.into_iter().collect::<BTreeSet<_>>(), "{what}: {shown}");
        assert_eq!(shown["valid_next_actions"], json!(["drop_order", "take_order"]), "{what}: {shown}");
    }
}

#[test]
fn a_call_that_is_not_well_formed_is_answered_in_the_words_it_asks_for() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let client = Bare::stateless(&gateway);
    let drop = json!({ "action": "drop_order" });
    let with = |name: &str, value: Value| {
        let mut meta = meta();
        meta[name] = value;
        meta
    };
    for (arguments, meta) in
        [(&drop, with("amends/key", json!(7))), (&drop, with("amends/deadline", json!("soon"))), (&json!([]), meta())]
    {
        let no = client.result("tools/call", json!({ "name": "step", "arguments": arguments, "_meta": meta }));
        let no = body(&no, false);
        assert_eq!(no["error"], "validation_failed", "{no}");
        assert_eq!(no["valid_next_actions"], json!(["drop_order", "take_order"]), "{no}");
    }
}

/// A step by a client that speaks bare MCP, in these words.
fn flat(client: &Bare, arguments: Value, key: Option<&str>) -> Value {
    let mut meta = meta();
    if let Some(key) = key {
        meta["amends/key"] = json!(key);
    }
    client.result("tools/call", json!({ "name": "step", "arguments": arguments, "_meta": meta }))
}

#[test]
fn what_that_server_has_no_word_for_keeps_its_own_and_its_fields() {
    let place = Place::new();
    let gateway = till::serve(&place, SALE);
    let client = Bare::stateless(&gateway);
    let session = till::named(&gateway, "o1");
    let step = |action: &str| json!({ "action": action, "session": session });
    let timed_out = refused(&flat(&client, step("pay"), None), "action_timeout", true, &["message", "timeout_seconds"]);
    assert_eq!(timed_out["timeout_seconds"], 1.5, "{timed_out}");
    let busy = refused(&flat(&client, step("leave"), None), "in_flight", false, &["message"]);
    assert_eq!(
        (&busy["requested"], &busy["session"], &busy["valid_next_actions"], &busy["next_action_schemas"]),
        (&json!("leave"), &session, &json!([]), &json!({})),
        "{busy}"
    );
    assert!(busy["message"].as_str().is_some_and(|words| words.contains("`pay` may have happened")), "{busy}");
    assert!(busy["next_hint"].as_str().is_some_and(|words| words.contains("Do not take it again")), "{busy}");

    let name = |order: &str| json!({ "action": "name", "inputs": { "order": order } });
    let taken = body(&flat(&client, name("o2"), None), false);
    let mut keyed = json!({ "action": "leave", "session": taken["session"] });
    assert_eq!(body(&flat(&client, keyed.clone(), Some("k")), false)["action"], "leave");
    keyed["action"] = json!("pay");
    let twice = refused(&flat(&client, keyed, Some("k")), "duplicate", false, &["message"]);
    assert_eq!((&twice["requested"], &twice["session"]), (&json!("pay"), &taken["session"]), "{twice}");
    assert!(twice["message"].as_str().is_some_and(|words| words.contains("key")), "{twice}");
}

#[test]
fn what_is_to_be_taken_later_is_told_as_what_failed_and_then_refused() {
    let place = Place::new();
    let later = "timeout = \"20s\"\nresolution = \"retry_later\"\nlater = \"1h\"\n";
    let gateway = till::serve(&place, &SALE.replace("timeout = \"1500ms\"\n", later));
    till::says(&place, "take", "o1", &till::forbidden());
    let client = Bare::stateless(&gateway);
    let session = till::named(&gateway, "o1");
    let pay = json!({ "action": "pay", "session": session });
    let failed =
        refused(&flat(&client, pay.clone(), None), "action_error", true, &["error_type", "error_message", "waits"]);
    assert_eq!(
        (&failed["error_type"], &failed["valid_next_actions"]),
        (&json!("Forbidden"), &json!(["leave"])),
        "{failed}"
    );
    let early = refused(&flat(&client, pay, None), "retry_later", false, &["message", "waits"]);
    assert!(early["waits"]["not_before"].is_u64() && early["waits"] == failed["waits"], "{early}");
    assert_eq!((&early["requested"], &early["valid_next_actions"]), (&json!("pay"), &json!(["leave"])), "{early}");
    assert_eq!(early["next_action_schemas"], json!({ "leave": {} }), "{early}");
    assert!(early["message"].as_str().is_some_and(|words| words.contains("can be taken again later")), "{early}");
}

#[test]
fn that_a_person_is_asked_is_no_failure_of_the_action() {
    let place = Place::new();
    let asks = "[people]\nhold = \"200ms\"\n";
    let gateway = till::serve(
        &place,
        &format!("{asks}{}", SALE.replace("tool = \"take\"", "tool = \"take\"\nqueue = \"finance\"")),
    );
    let client = Bare::stateful(&gateway);
    let session = till::named(&gateway, "o1");
    let pay = json!({ "action": "pay", "session": session });
    let asked = refused(&flat(&client, pay, None), "awaiting_person", false, &["message"]);
    assert_eq!((&asked["requested"], &asked["valid_next_actions"]), (&json!("pay"), &json!([])), "{asked}");
    assert_eq!((&asked["session"], &asked["next_action_schemas"]), (&session, &json!({})), "{asked}");
    assert!(asked["message"].as_str().is_some_and(|words| words.contains("a person is asked")), "{asked}");
    assert!(till::done(&place).is_empty(), "nothing was sent");
}
