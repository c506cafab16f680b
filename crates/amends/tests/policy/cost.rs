//! What may be spent, and which tools a principal is limited to.

use std::io::Read;

use serde_json::{Value, json};

use crate::support::http::{post, send};
use crate::support::{Gateway, Place};
use crate::up_plain;

const COST: &str = "[tools.charge_card]\neffect = \"write\"\ncost = \"args.amount\"\n";

fn charge(gateway: &Gateway, key: &str, amount: u32) -> (u16, Value) {
    let body = format!(r#"{{"order":"ord_1","amount":{amount}}}"#);
    gateway.call_with("charge_card", &[("idempotency-key", key)], &body)
}

#[test]
fn a_principal_spends_no_more_in_a_day_than_it_may_and_repeats_are_free() {
    let place = Place::new();
    let gateway = up_plain(&place, &format!("[limits]\ncost = {{ per_principal_day = 12 }}\n{COST}"));
    assert_eq!(charge(&gateway, "a", 6).0, 200);
    let (status, again) = charge(&gateway, "a", 6);
    assert_eq!((status, &again["replayed"]), (200, &json!(true)), "{again}");
    let (status, refused) = charge(&gateway, "b", 7);
    assert_eq!((status, &refused["error"]["kind"]), (403, &json!("cost_cap_exceeded")), "{refused}");
    assert!(refused["error"]["message"].as_str().is_some_and(|said| said.contains("6 is left")), "{refused}");
    assert_eq!(charge(&gateway, "c", 6).0, 200);
    assert_eq!(charge(&gateway, "d", 1).0, 403);
    let (status, again) = charge(&gateway, "c", 6);
    assert_eq!((status, &again["replayed"]), (200, &json!(true)), "a repeat costs nothing: {again}");
    assert_eq!(place.effects("charge_card"), 2);
}

#[test]
fn what_was_spent_today_is_known_after_a_kill() {
    let place = Place::new();
    let rules = format!("[limits]\ncost = {{ per_principal_day = 12 }}\n{COST}");
    let mut gateway = up_plain(&place, &rules);
    assert_eq!(charge(&gateway, "a", 7).0, 200);
    gateway.kill();
    let gateway = up_plain(&place, &rules);
    let (status, refused) = charge(&gateway, "b", 6);
    assert_eq!((status, &refused["error"]["kind"]), (403, &json!("cost_cap_exceeded")), "{refused}");
    assert!(refused["error"]["message"].as_str().is_some_and(|said| said.contains("5 is left")), "{refused}");
    assert_eq!(charge(&gateway, "c", 5).0, 200);
    assert_eq!(place.effects("charge_card"), 2);
}

/// Begins a session over MCP and gives its id.
fn begin(gateway: &Gateway) -> String {
    let body = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } },
    });
    let mut answer = String::new();
    let mut stream = send(&gateway.address, "/mcp", &[], body.to_string().as_bytes());
    stream.read_to_string(&mut answer).expect("an answer");
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
    };
    answer.lines().find_map(header).expect("a session")
}

/// One call of a session over MCP.
fn in_session(gateway: &Gateway, session: &str, n: u32, amount: u32) -> Value {
    let body = json!({
        "jsonrpc": "2.0", "id": n, "method": "tools/call",
        "params": {
            "name": "charge_card", "arguments": { "order": "ord_1", "amount": amount },
            "_meta": { "amends/key": format!("key-{n}") },
        },
    });
    let headers = [("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")];
    post(&gateway.address, "/mcp", &headers, body.to_string().as_bytes()).1
}

#[test]
fn a_session_spends_no_more_than_it_may_and_its_trace_says_what_it_spent() {
    let place = Place::new();
    let gateway = up_plain(&place, &format!("[limits]\ncost = {{ per_session = 10 }}\n{COST}"));
    let begin = || begin(&gateway);
    let session = begin();
    let paid = in_session(&gateway, &session, 1, 6);
    assert!(paid["result"].is_object() && paid["result"]["isError"] != true, "{paid}");
    let refused = in_session(&gateway, &session, 2, 5);
    assert!(refused.to_string().contains("cost_cap_exceeded"), "{refused}");
    assert!(refused.to_string().contains("4 left"), "{refused}");
    assert!(!in_session(&gateway, &session, 3, 4).to_string().contains("cost_cap"));
    assert!(in_session(&gateway, &session, 4, 1).to_string().contains("cost_cap_exceeded"));
    let other = begin();
    assert!(!in_session(&gateway, &other, 5, 10).to_string().contains("cost_cap"));
    assert_eq!(place.effects("charge_card"), 3);
    place.settled();
}

#[test]
fn a_principal_is_kept_to_its_tools() {
    let place = Place::new();
    let gateway = up_plain(&place, "[principals.local]\ntools = [\"get_*\"]\n");
    let (status, refused) = charge(&gateway, "a", 1);
    assert_eq!((status, &refused["error"]["kind"]), (403, &json!("allowlist_violation")), "{refused}");
    assert!(refused["error"]["recovery"]["widening_hint"].is_string(), "{refused}");
    assert_eq!(place.requests("charge_card"), 0);
    assert_eq!(gateway.call("get_order", r#"{"order":"ord_1"}"#).0, 200);
}
