//! The upstream says that it knows the key already.

use serde_json::{Value, json};

use crate::faults;
use crate::support::Place;
use crate::support::client::{Client, Sdk, envelope};

const ORDER: &str = "ord_1";

#[test]
fn a_timeout_and_then_a_conflict_that_says_done_is_a_conflict() {
    let place = Place::new();
    let gateway = place.up(&faults("issue_refund", ORDER, &["lose_response", "conflict_done"]));
    let mut client = Client::http(Sdk::TypeScript, Some("modern"), &gateway.mcp());
    let answer = client.call("issue_refund", json!({ "order": ORDER, "amount": 5 }));
    let envelope = envelope(&answer);
    // It happened, and its status gives what the lost answer would have given.
    assert_eq!(envelope["status"], "success", "{answer}");
    assert_eq!(envelope["outcome"], "succeeded_after_compensation");
    assert_eq!(judged(&place), [(1, "transient_timeout".into()), (2, "idempotency_conflict".into())]);
    assert_eq!((place.effects("issue_refund"), place.requests("issue_refund")), (1, 2));
    assert_eq!(place.keys_on("issue_refund", ORDER).first(), place.keys_on("issue_refund", ORDER).last());
    place.settled();
}

#[test]
fn a_conflict_that_says_in_flight_is_waited_for_and_read() {
    let place = Place::new();
    let gateway = place.up(&faults("issue_refund", ORDER, &["lose_response", "conflict_in_flight"]));
    let mut client = Client::http(Sdk::Python, None, &gateway.mcp());
    let answer = client.call("issue_refund", json!({ "order": ORDER, "amount": 5 }));
    let envelope = envelope(&answer);
    assert_eq!(envelope["status"], "success", "{answer}");
    assert_eq!(judged(&place), [(1, "transient_timeout".into()), (2, "idempotency_conflict".into())]);
    assert_eq!((place.effects("issue_refund"), place.requests("issue_refund")), (1, 2));
    place.settled();
}

#[test]
fn a_conflict_that_says_done_of_what_no_status_shows_is_not_called_a_success() {
    let place = Place::new();
    let gateway = place.up(&faults("issue_refund", ORDER, &["lose_request", "conflict_done"]));
    let (_, envelope) = gateway.call("issue_refund", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(envelope["status"], "error", "{envelope}");
    assert_eq!(envelope["error"]["code"], "AlreadyProcessed", "{envelope}");
    assert_eq!(envelope["error"]["verdict"], "idempotency_conflict");
    assert_eq!(envelope["error"]["certainty"], "processed");
    assert_eq!(envelope["error"]["safe_to_repeat"], false);
    assert_eq!((place.effects("issue_refund"), place.requests("issue_refund")), (0, 2));
    place.settled();
}

#[test]
fn a_conflict_on_a_plain_write_is_surfaced_and_not_sent_again() {
    let place = Place::new();
    let gateway = place.up(&faults("charge_card", ORDER, &["conflict_done"]));
    let mut client = Client::http(Sdk::TypeScriptV1, None, &gateway.mcp());
    let answer = client.call("charge_card", json!({ "order": ORDER, "amount": 5 }));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(envelope(&answer)["error"]["safe_to_repeat"], false, "{answer}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (0, 1));
    place.settled();
}

/// The verdicts of the attempts, in order.
fn judged(place: &Place) -> Vec<(u64, String)> {
    let line = |event: &Value| {
        let verdict = event["verdict"].as_str().unwrap_or("").to_owned();
        (event["attempt"]["n"].as_u64().unwrap_or(0), verdict)
    };
    place.events_named("failure_judged").iter().map(line).collect()
}
