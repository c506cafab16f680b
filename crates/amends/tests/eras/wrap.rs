//! Questions of a wrapped server.

use serde_json::json;

use crate::asking::{command, done};
use crate::support::client::{Client, Sdk};
use crate::support::{AMENDS, Place};

#[test]
fn a_wrapped_server_asks_its_client() {
    let place = Place::new();
    let mut words = vec![AMENDS.to_owned(), "wrap".into(), "--ledger".into(), place.ledger(), "--".into()];
    words.extend(command(&place, "legacy"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let inputs = json!({ "elicitation/create": { "action": "accept", "content": { "n": 2 } } });
    let mut client = Client::stdio_with_inputs(Sdk::Python, "legacy", &inputs, &words);
    let answer = client.call("book", json!({ "order": 1 }));
    assert_eq!(answer["result"]["structuredContent"]["inputs"][0]["content"]["n"], 2, "{answer}");
    assert_eq!(done(&place).len(), 1);
}

#[test]
fn the_time_an_agent_takes_for_an_answer_is_not_the_tools() {
    let place = Place::new();
    let config = "[tools.book]\neffect = \"write\"\ntimeout = \"2s\"\ndeadline = \"3s\"\n";
    let config = place.write("wrap.toml", config).display().to_string();
    let mut words = vec![AMENDS.to_owned(), "wrap".into(), "--ledger".into(), place.ledger()];
    words.extend(["--config".into(), config, "--".into()]);
    words.extend(command(&place, "legacy"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let inputs = json!({ "elicitation/create": { "after_ms": 5000, "action": "accept", "content": { "n": 2 } } });
    let mut client = Client::stdio_with_inputs(Sdk::Python, "legacy", &inputs, &words);
    let answer = client.call("book", json!({ "order": 1 }));
    assert_eq!(answer["result"]["structuredContent"]["inputs"][0]["content"]["n"], 2, "{answer}");
    assert_eq!(done(&place).len(), 1);
    assert_eq!(place.events_named("inputs_given").len(), 1, "it is on the record");
    assert!(place.events_named("attempt_timed_out").is_empty());
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
