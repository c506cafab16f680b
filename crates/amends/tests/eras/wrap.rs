//! Questions of a wrapped server.

use serde_json::json;

use crate::asking::{command, done, events};
use crate::support::client::{Client, Sdk};
use crate::support::{AMENDS, Place};

#[test]
fn a_wrapped_server_asks_its_client_and_the_clock_stands_meanwhile() {
    let place = Place::new();
    let mut words = vec![AMENDS.to_owned(), "wrap".into(), "--ledger".into(), place.ledger(), "--".into()];
    words.extend(command(&place, "legacy"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let inputs = json!({ "elicitation/create": { "action": "accept", "content": { "n": 2 } } });
    let mut client = Client::stdio_with_inputs(Sdk::Python, "legacy", &inputs, &words);
    let answer = client.call("book", json!({ "order": 1 }));
    assert_eq!(answer["result"]["structuredContent"]["inputs"][0]["content"]["n"], 2, "{answer}");
    assert_eq!(done(&place).len(), 1);
    drop(client);
    assert_eq!((events(&place, "inquiry_opened"), events(&place, "inputs_given")), (1, 1));
}

/// A client of one era in front of a wrapped server of the other.
fn bridged(client_era: &str, server_era: &str) {
    let place = Place::new();
    let mut words = vec![AMENDS.to_owned(), "wrap".into(), "--ledger".into(), place.ledger(), "--".into()];
    words.extend(command(&place, server_era));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let inputs = json!({
        "elicitation/create": { "action": "accept", "content": { "n": 2 } },
        "roots/list": { "roots": [] },
    });
    let mut client = Client::stdio_with_inputs(Sdk::Python, client_era, &inputs, &words);
    let listed = client.run(json!({ "op": "list" }));
    assert!(listed["tools"].as_array().is_some_and(|tools| tools.contains(&json!("book"))), "{listed}");
    let answer = client.call("twice", json!({ "order": 1 }));
    assert_eq!(answer["result"]["structuredContent"]["inputs"][0]["content"]["n"], 2, "{answer}");
    assert_eq!(done(&place).len(), 1);
}

#[test]
fn a_stateless_client_wraps_a_stateful_server() {
    bridged("modern", "legacy");
}

#[test]
fn a_stateful_client_wraps_a_stateless_server() {
    bridged("legacy", "modern");
}

#[test]
fn a_stateless_client_wraps_a_stateless_server() {
    bridged("modern", "modern");
}
