//! Answers nobody can use: a write that gave one was processed, and is not sent again.

use serde_json::json;

use crate::faults;
use crate::support::Place;
use crate::support::client::{Client, Sdk};

const ORDER: &str = "ord_1";

#[test]
fn a_refund_with_a_malformed_result_was_processed_and_keeps_it() {
    let place = Place::new();
    let gateway = place.up(&faults("issue_refund", ORDER, &["malformed"]));
    let mut client = Client::http(Sdk::TypeScriptV1, None, &gateway.mcp());
    let answer = client.call("issue_refund", json!({ "order": ORDER, "amount": 5 }));
    // This client checks structured content even on errors, so the envelope is a text of its own.
    let text = answer["result"]["content"][1]["text"].as_str().unwrap_or_default();
    assert_kept(&serde_json::from_str(text).expect("an envelope"));
    assert_eq!((place.effects("issue_refund"), place.requests("issue_refund")), (1, 1));
    place.settled();
}

#[test]
fn a_charge_with_a_malformed_result_was_processed_and_keeps_it() {
    let place = Place::new();
    let gateway = place.up(&faults("charge_card", ORDER, &["malformed"]));
    let mut client = Client::http(Sdk::Python, None, &gateway.mcp());
    let answer = client.call("charge_card", json!({ "order": ORDER, "amount": 5 }));
    assert_kept(&answer["result"]["structuredContent"]);
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn a_read_with_a_malformed_result_is_no_success() {
    let place = Place::new();
    let gateway = place.up(&faults("get_order", ORDER, &["malformed"]));
    let (_, envelope) = gateway.call("get_order", r#"{"order":"ord_1"}"#);
    assert_eq!(envelope["outcome"], "deprecated", "{envelope}");
    assert_eq!(envelope["error"]["code"], "OutputMalformed");
    assert_eq!(place.requests_on("get_order", ORDER), 1);
    place.settled();
}

#[test]
fn a_web_page_instead_of_an_answer_never_makes_a_second_effect() {
    let place = Place::new();
    let script = ["issue_refund", "charge_card"].map(|tool| faults(tool, ORDER, &["garbage"])).concat();
    let gateway = place.up(&script);
    let (_, refund) = gateway.call("issue_refund", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(refund["status"], "success", "{refund}");
    assert_eq!(place.effects("issue_refund"), 1);
    let (_, charge) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(charge["status"], "error", "{charge}");
    assert_eq!(charge["error"]["safe_to_repeat"], false, "{charge}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

fn assert_kept(envelope: &serde_json::Value) {
    let error = &envelope["error"];
    assert_eq!(envelope["status"], "error", "{envelope}");
    assert_eq!(error["code"], "OutputMalformed", "{envelope}");
    assert_eq!(error["verdict"], "schema_mismatch");
    assert_eq!(error["certainty"], "processed");
    assert_eq!(error["safe_to_repeat"], false);
    assert_eq!(error["upstream_result"], json!({ "id": 7 }), "{envelope}");
}
