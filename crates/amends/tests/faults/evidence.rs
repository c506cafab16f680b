//! Evidence: what a call is based on is read again before it is sent.

use serde_json::json;

use crate::faults;
use crate::support::Place;
use crate::support::client::{Client, Sdk, envelope};

const CONFIG: &str = r#"
[tools.charge_card]
effect = "write"
evidence = [{ tool = "get_refund", args = { order = "args.order" } }]
"#;

#[test]
fn a_charge_based_on_what_has_changed_is_not_sent() {
    let place = Place::new();
    let config = place.write("evidence.toml", CONFIG).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let mut client = Client::http(Sdk::Python, Some("legacy"), &gateway.mcp());
    let read = client.call("get_refund", json!({ "order": "ord_1" }));
    assert_ne!(read["result"]["isError"], true, "{read}");
    // Somebody else refunds the order in the meantime.
    let (_, refund) = gateway.call("issue_refund", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(refund["status"], "success", "{refund}");
    let answer = client.call("charge_card", json!({ "order": "ord_1", "amount": 5 }));
    let told = envelope(&answer);
    assert_eq!(told["outcome"], "deprecated", "{told}");
    assert_eq!(told["error"]["verdict"], "evidence_stale", "{told}");
    assert_eq!(told["error"]["certainty"], "not_sent", "{told}");
    assert_eq!(told["error"]["changed"][0]["reference"], "get_refund", "{told}");
    assert_eq!(place.requests("charge_card"), 0);
    // It reads again, and plans anew.
    client.call("get_refund", json!({ "order": "ord_1" }));
    let answer = client.call("charge_card", json!({ "order": "ord_1", "amount": 5 }));
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(place.effects("charge_card"), 1);
    place.settled();
}

#[test]
fn a_charge_the_upstream_calls_stale_is_sent_once_more_only_if_nothing_changed() {
    let place = Place::new();
    let config = place.write("evidence.toml", CONFIG).display().to_string();
    let script = [
        faults("charge_card", "ord_1", &["precondition"]),
        faults("charge_card", "ord_2", &["precondition", "precondition"]),
    ]
    .concat();
    let gateway = place.up_with(&script, &["--config", &config]);
    let (_, once) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(once["outcome"], "succeeded_after_compensation", "{once}");
    assert_eq!((place.requests_on("charge_card", "ord_1"), place.effects_on("charge_card", "ord_1")), (2, 1));
    let (_, twice) = gateway.call("charge_card", r#"{"order":"ord_2","amount":5}"#);
    assert_eq!(twice["outcome"], "deprecated", "{twice}");
    assert_eq!((place.requests_on("charge_card", "ord_2"), place.effects_on("charge_card", "ord_2")), (2, 0));
    place.settled();
}

#[test]
fn evidence_that_the_call_names_itself_is_held_against_what_is_there() {
    let place = Place::new();
    let gateway = place.up("");
    let mut client = Client::http(Sdk::Python, Some("legacy"), &gateway.mcp());
    let named = |hash: &str| json!([{ "tool": "get_refund", "args": { "order": "ord_1" }, "hash": hash }]);
    let stale = client.run(json!({
        "op": "call", "tool": "charge_card", "args": { "order": "ord_1", "amount": 5 },
        "meta": { "amends/evidence": named("0000") },
    }));
    assert_eq!(envelope(&stale)["error"]["verdict"], "evidence_stale", "{stale}");
    let odd = client.run(json!({
        "op": "call", "tool": "charge_card", "args": { "order": "ord_1", "amount": 5 },
        "meta": { "amends/evidence": [{ "tool": "charge_card", "args": {}, "hash": "x" }] },
    }));
    assert_eq!(envelope(&odd)["error"]["kind"], "invalid_argument", "{odd}");
    assert_eq!(place.requests("charge_card"), 0);
    place.settled();
}
