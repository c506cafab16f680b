//! Statuses and sentences: what is sent again, and what never is.

use serde_json::{Value, json};

use crate::faults;
use crate::support::Place;
use crate::support::client::{Client, Sdk, envelope};

const ORDER: &str = "ord_1";

#[test]
fn a_read_that_fails_three_times_is_exhausted_and_shows_its_whole_history() {
    let place = Place::new();
    let gateway = place.up(&faults("get_order", ORDER, &["status_500"; 3]));
    let mut client = Client::http(Sdk::Python, Some("legacy"), &gateway.mcp());
    let envelope = envelope(&client.call("get_order", json!({ "order": ORDER })));
    assert_eq!(envelope["outcome"], "exhausted", "{envelope}");
    assert_eq!(envelope["error"]["code"], "Provider5xx");
    assert_eq!(envelope["error"]["verdict"], "server_error_5xx");
    assert_eq!(envelope["error"]["upstream"]["status"], 500, "{envelope}");
    assert_eq!(codes(&envelope), ["Provider5xx"; 3], "{envelope}");
    assert_eq!(place.requests_on("get_order", ORDER), 3);
    place.settled();
}

#[test]
fn a_refund_that_fails_three_times_is_exhausted_and_shows_its_whole_history() {
    let place = Place::new();
    let gateway = place.up(&faults("issue_refund", ORDER, &["status_500"; 3]));
    let mut client = Client::http(Sdk::TypeScriptV1, None, &gateway.mcp());
    let envelope = envelope(&client.call("issue_refund", json!({ "order": ORDER, "amount": 5 })));
    assert_eq!(envelope["outcome"], "exhausted", "{envelope}");
    assert_eq!(envelope["error"]["code"], "Provider5xx");
    assert_eq!(codes(&envelope), ["Provider5xx"; 3], "{envelope}");
    // The upstream's 500 proves nothing, and its status is read at the end.
    assert_eq!(envelope["error"]["certainty"], "in_doubt", "{envelope}");
    assert_eq!(envelope["error"]["safe_to_repeat"], true);
    let keys = place.keys_on("issue_refund", ORDER);
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    assert_eq!(place.effects("issue_refund"), 0);

    // What is in doubt goes on with the key it began with, so the repeat is safe.
    let (_, again) = gateway.call("issue_refund", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(again["status"], "success", "{again}");
    assert_eq!(place.keys_on("issue_refund", ORDER).last(), keys.first());
    assert_eq!(place.effects("issue_refund"), 1);
    place.settled();
}

#[test]
fn a_failure_after_the_effect_does_not_make_a_second_one() {
    let place = Place::new();
    let script =
        [faults("issue_refund", ORDER, &["error_after_effect"]), faults("charge_card", ORDER, &["error_after_effect"])]
            .concat();
    let gateway = place.up(&script);
    let (_, refund) = gateway.call("issue_refund", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(refund["outcome"], "succeeded_after_compensation", "{refund}");
    let (_, charge) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(charge["outcome"], "unresolved", "{charge}");
    assert_eq!(charge["error"]["safe_to_repeat"], false);
    assert_eq!((place.effects("issue_refund"), place.requests("issue_refund")), (1, 2));
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn an_upstream_that_is_closed_for_a_moment_is_asked_again() {
    let place = Place::new();
    let gateway = place.up(&faults("issue_refund", ORDER, &["status_503", "status_503"]));
    let mut client = Client::http(Sdk::TypeScript, Some("modern"), &gateway.mcp());
    let answer = client.call("issue_refund", json!({ "order": ORDER, "amount": 5 }));
    assert_eq!(envelope(&answer)["outcome"], "succeeded_after_compensation", "{answer}");
    assert_eq!((place.effects("issue_refund"), place.requests("issue_refund")), (1, 3));
    place.settled();
}

#[test]
fn what_the_upstream_refuses_is_never_sent_again() {
    let place = Place::new();
    let cases = [
        ("forbidden", "Forbidden", "policy_denied"),
        ("precondition", "EvidenceStale", "evidence_stale"),
        ("unprocessable", "InputInvalid", "input_rejected"),
    ];
    let tools = ["get_order", "issue_refund", "charge_card"];
    let script: String =
        cases.iter().flat_map(|(kind, ..)| tools.map(|tool| faults(tool, &format!("ord_{kind}"), &[kind]))).collect();
    let gateway = place.up(&script);
    for (kind, code, verdict) in cases {
        let order = format!("ord_{kind}");
        for tool in tools {
            let amount = if tool == "get_order" { "" } else { r#","amount":5"# };
            let (_, envelope) = gateway.call(tool, &format!(r#"{{"order":"{order}"{amount}}}"#));
            assert_eq!(envelope["status"], "error", "{tool} {kind}: {envelope}");
            assert_eq!(envelope["error"]["code"], code, "{tool} {kind}: {envelope}");
            assert_eq!(envelope["error"]["verdict"], verdict, "{tool} {kind}: {envelope}");
            assert_eq!(envelope["error"]["certainty"], "not_processed", "{tool} {kind}: {envelope}");
            assert_eq!(place.requests_on(tool, &order), 1, "{tool} {kind}");
            assert_eq!(place.effects_on(tool, &order), 0, "{tool} {kind}");
        }
    }
    place.settled();
}

#[test]
fn a_bare_sentence_about_a_plain_write_is_in_doubt_and_told_to_the_agent() {
    let place = Place::new();
    let gateway = place.up(&faults("charge_card", ORDER, &["plain_error"]));
    let mut client = Client::http(Sdk::TypeScript, Some("legacy"), &gateway.mcp());
    let answer = client.call("charge_card", json!({ "order": ORDER, "amount": 5 }));
    let envelope = envelope(&answer);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(envelope["error"]["code"], "ActionError", "{envelope}");
    assert_eq!(envelope["error"]["certainty"], "in_doubt");
    assert_eq!(envelope["error"]["safe_to_repeat"], false);
    assert_eq!(envelope["error"]["upstream"]["trusted"], false, "{envelope}");
    assert!(envelope["error"]["upstream"]["text"].is_string(), "{envelope}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (0, 1));
    place.settled();
}

/// The codes of the attempts to act, in order.
fn codes(envelope: &Value) -> Vec<&str> {
    let attempts = envelope["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let acts = attempts.iter().filter(|attempt| attempt.get("purpose").is_none());
    acts.map(|attempt| attempt["code"].as_str().unwrap_or("")).collect()
}
