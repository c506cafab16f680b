//! Several questions at once: they reach the agent in the order in which they were asked.

use serde_json::{Value, json};

use crate::asking::{Server, by_command, by_url, command, done, serve};
use crate::support::{Gateway, Place, http};
use crate::withdrawn::{greeted, messages};

const MANY: u64 = 8;

fn asked_in_order(place: &Place, gateway: &Gateway) {
    let session = greeted(gateway);
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    // What comes in the right order by chance does not do so every time.
    for round in 0..5 {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "many", "arguments": { "round": round } } });
        let mut said = messages(http::send(&gateway.address, "/mcp", &headers, call.to_string().as_bytes()));
        let asked: Vec<Value> = (0..MANY).map(|_| said.next().expect("a question")).collect();
        let order: Vec<&str> = asked.iter().filter_map(|asked| asked["params"]["message"].as_str()).collect();
        assert_eq!(order, (0..MANY).map(|n| n.to_string()).collect::<Vec<_>>(), "{asked:?}");
        // The answers may come in any order.
        for asked in asked.iter().rev() {
            let n: u64 = asked["params"]["message"].as_str().and_then(|n| n.parse().ok()).expect("a number");
            let answer = json!({ "jsonrpc": "2.0", "id": asked["id"],
                "result": { "action": "accept", "content": { "n": n } } });
            http::post(&gateway.address, "/mcp", &headers, answer.to_string().as_bytes());
        }
        let answer = said.next().expect("an answer");
        let given: Vec<u64> = answer["result"]["structuredContent"]["inputs"]
            .as_array()
            .unwrap_or_else(|| panic!("{answer}"))
            .iter()
            .filter_map(|input| input["content"]["n"].as_u64())
            .collect();
        assert_eq!(given, (0..MANY).collect::<Vec<_>>(), "{answer}");
    }
    assert_eq!(done(place).len(), 5);
}

#[test]
fn what_a_stateless_server_asks_at_once_is_asked_in_its_order() {
    let place = Place::new();
    let server = Server::http(&place, "modern");
    asked_in_order(&place, &serve(&place, &by_url(&server), ""));
}

#[test]
fn what_a_stateful_server_asks_at_once_is_asked_in_its_order() {
    let place = Place::new();
    let server = Server::http(&place, "legacy");
    asked_in_order(&place, &serve(&place, &by_url(&server), ""));
}

#[test]
fn what_a_child_asks_at_once_is_asked_in_its_order() {
    let place = Place::new();
    asked_in_order(&place, &serve(&place, &by_command(&command(&place, "legacy")), ""));
}
