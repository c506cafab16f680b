//! Lost answers and lost requests: what each kind of tool makes of them.

use serde_json::{Value, json};

use crate::faults;
use crate::support::Place;
use crate::support::client::{Client, Sdk, envelope};
use crate::support::rmcp::Rmcp;

const ORDER: &str = "ord_1";

#[test]
fn a_lost_answer_of_a_plain_write_is_in_doubt_and_never_sent_again() {
    let place = Place::new();
    let gateway = place.up(&faults("charge_card", ORDER, &["lose_response"]));
    let mut client = Client::http(Sdk::Python, None, &gateway.mcp());
    let answer = client.call("charge_card", json!({ "order": ORDER, "amount": 5 }));
    assert_in_doubt(&envelope(&answer), "person");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));

    // Neither the same agent nor another one gets a second send out of us.
    let again = envelope(&client.call("charge_card", json!({ "amount": 5, "order": ORDER })));
    assert_in_doubt(&again, "person");
    assert_eq!(again["replayed"], true);
    let mut other = Client::http(Sdk::TypeScript, Some("modern"), &gateway.mcp());
    let again = envelope(&other.call("charge_card", json!({ "order": ORDER, "amount": 5 })));
    assert_in_doubt(&again, "person");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn a_lost_answer_of_a_declared_write_behind_wrap_is_for_a_person() {
    let place = Place::new();
    let config = "[upstreams.wrapped]\ntimeout = \"2s\"\n\n[tools.charge_card]\neffect = \"write\"\n";
    let command = place.wrap(&faults("charge_card", ORDER, &["lose_response"]), Some(config));
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut client = Client::stdio(Sdk::TypeScriptV1, None, &command);
    let answer = client.call("charge_card", json!({ "order": ORDER, "amount": 5 }));
    // This client checks structured content even on errors, so it finds the envelope beside it.
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_in_doubt(&envelope(&answer), "person");
    client.call("charge_card", json!({ "order": ORDER, "amount": 5 }));
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    drop(client);
    place.settled();
}

#[test]
fn a_lost_answer_behind_a_bare_wrap_is_for_the_agent_and_never_sent_again() {
    let place = Place::new();
    // The shop dies with its answer, so that nobody has to wait for it.
    let command = place.wrap(&faults("charge_card", ORDER, &["crash_after"]), None);
    let client = Rmcp::stdio(&command);
    let answer = client.call("charge_card", json!({ "order": ORDER, "amount": 5 }));
    assert_in_doubt(&envelope(&answer), "agent");
    let again = envelope(&client.call("charge_card", json!({ "order": ORDER, "amount": 5 })));
    assert_in_doubt(&again, "agent");
    assert_eq!(again["replayed"], true, "{again}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    drop(client);
    place.settled();
}

#[test]
fn a_lost_answer_of_a_refund_is_asked_for_again_with_the_same_key() {
    let place = Place::new();
    let gateway = place.up(&faults("issue_refund", ORDER, &["lose_response"]));
    let mut client = Client::http(Sdk::Python, Some("legacy"), &gateway.mcp());
    let answer = client.call("issue_refund", json!({ "order": ORDER, "amount": 5 }));
    assert_eq!(answer["result"]["structuredContent"]["order"], ORDER, "{answer}");
    assert_eq!(envelope(&answer)["outcome"], "succeeded_after_compensation", "{answer}");
    assert_same_key_twice(&place);
    place.settled();
}

#[test]
fn a_lost_answer_of_a_refund_behind_wrap_is_asked_for_again_with_the_same_key() {
    let place = Place::new();
    let config = "[upstreams.wrapped]\ntimeout = \"2s\"\n\n[tools.issue_refund]\neffect = \"keyed\"\n\
                  key = { argument = \"idempotency_key\", window = \"24h\" }\n";
    let command = place.wrap(&faults("issue_refund", ORDER, &["lose_response"]), Some(config));
    let client = Rmcp::stdio(&command);
    let answer = client.call("issue_refund", json!({ "order": ORDER, "amount": 5 }));
    assert_eq!(answer["result"]["structuredContent"]["order"], ORDER, "{answer}");
    assert_same_key_twice(&place);
    drop(client);
    place.settled();
}

#[test]
fn a_lost_answer_of_a_read_is_asked_for_again() {
    let place = Place::new();
    let gateway = place.up(&faults("get_order", ORDER, &["lose_response"]));
    let mut client = Client::http(Sdk::TypeScript, Some("legacy"), &gateway.mcp());
    let answer = client.call("get_order", json!({ "order": ORDER }));
    assert_eq!(answer["result"]["structuredContent"]["state"], "paid", "{answer}");
    assert_eq!(place.requests_on("get_order", ORDER), 2);
    place.settled();
}

#[test]
fn a_lost_request_of_a_plain_write_is_in_doubt_although_nothing_happened() {
    let place = Place::new();
    let gateway = place.up(&faults("charge_card", ORDER, &["lose_request"]));
    let mut client = Client::http(Sdk::TypeScriptV1, None, &gateway.mcp());
    let answer = client.call("charge_card", json!({ "order": ORDER, "amount": 5 }));
    assert_in_doubt(&envelope(&answer), "person");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (0, 1));
    place.settled();
}

#[test]
fn a_lost_request_of_a_refund_is_sent_again_and_happens_once() {
    let place = Place::new();
    let gateway = place.up(&faults("issue_refund", ORDER, &["lose_request"]));
    let mut client = Client::http(Sdk::TypeScript, Some("modern"), &gateway.mcp());
    let answer = client.call("issue_refund", json!({ "order": ORDER, "amount": 5 }));
    assert_eq!(answer["result"]["structuredContent"]["order"], ORDER, "{answer}");
    assert_same_key_twice(&place);
    place.settled();
}

#[test]
fn a_lost_request_of_a_read_is_sent_again() {
    let place = Place::new();
    let gateway = place.up(&faults("get_order", ORDER, &["lose_request"]));
    let mut client = Client::http(Sdk::Python, None, &gateway.mcp());
    let answer = client.call("get_order", json!({ "order": ORDER }));
    assert_eq!(answer["result"]["structuredContent"]["state"], "paid", "{answer}");
    assert_eq!(place.requests_on("get_order", ORDER), 2);
    place.settled();
}

#[test]
fn an_effect_that_comes_late_happens_once() {
    let place = Place::new();
    // The effect of the first request comes after the second request was sent.
    let script = crate::more_faults("issue_refund", ORDER, &["late_effect"], "late_ms = 2500");
    let gateway = place.up(&script);
    let (_, envelope) = gateway.call("issue_refund", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(envelope["status"], "success", "{envelope}");
    assert_same_key_twice(&place);
    place.settled();
}

fn assert_in_doubt(envelope: &Value, who: &str) {
    assert_eq!(envelope["outcome"], "unresolved", "{envelope}");
    assert_eq!(envelope["status"], "error");
    assert_eq!(envelope["error"]["verdict"], "in_doubt");
    assert_eq!(envelope["error"]["certainty"], "in_doubt");
    assert_eq!(envelope["error"]["who_must_act"], who, "{envelope}");
    assert_eq!(envelope["error"]["safe_to_repeat"], false);
    assert_eq!(envelope["error"]["retryable"], false);
    assert_eq!(envelope["error"]["recovery"].get("call"), None, "{envelope}");
    assert_eq!(envelope["attempts"].as_array().map(Vec::len), Some(1), "{envelope}");
}

fn assert_same_key_twice(place: &Place) {
    assert_eq!(place.effects("issue_refund"), 1);
    let keys = place.keys_on("issue_refund", ORDER);
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert!(!keys[0].is_empty());
    assert_eq!(keys[0], keys[1]);
}
