//! Repeats: which equal call is the same wish again, and which is another one.

use std::io::Read;

use serde_json::{Value, json};

use crate::support::client::{Client, Sdk, envelope};
use crate::support::http::{self, Kept};
use crate::support::rmcp::Rmcp;
use crate::support::{Gateway, Place, eventually};
use crate::{faults, more_faults};

const ORDER: &str = "ord_1";
const ARGUMENTS: &str = r#"{"order":"ord_1","amount":5}"#;

#[test]
fn a_repeat_on_another_connection_joins_the_call_in_flight() {
    let place = Place::new();
    let gateway = place.up_patient(&late(&["charge_card"]));
    let mut one = Client::http(Sdk::Python, None, &gateway.mcp());
    let mut two = Client::http(Sdk::TypeScript, Some("modern"), &gateway.mcp());
    // Both are connected before the first call, so that the second call finds it in flight.
    one.run(json!({ "op": "info" }));
    two.run(json!({ "op": "info" }));
    let first = one.begin_call("charge_card", json!({ "order": ORDER, "amount": 5 }));
    eventually("the charge is in flight", || place.effects("charge_card") == 1);
    let second = two.call("charge_card", json!({ "amount": 5, "order": ORDER }));
    let first = one.finish(first);
    assert_eq!(first["result"]["structuredContent"], second["result"]["structuredContent"], "{first} {second}");
    assert!(first["result"]["structuredContent"]["id"].is_string(), "{first}");
    assert_eq!(envelope(&first).get("replayed"), None, "{first}");
    assert_eq!(envelope(&second)["replayed"], true, "{second}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn a_repeat_at_another_gateway_over_the_same_ledger_joins_the_call_in_flight() {
    let place = Place::new();
    let (here, there) = (place.up_patient(&late(&["charge_card"])), place.up_patient(&late(&["charge_card"])));
    let mut first = here.begin("charge_card", ARGUMENTS);
    eventually("the charge is in flight", || place.effects("charge_card") == 1);
    let (_, second) = there.call("charge_card", ARGUMENTS);
    let mut text = Vec::new();
    first.read_to_end(&mut text).expect("the first answer");
    let first: Value = serde_json::from_slice(&http::parse(&text).1).expect("JSON");
    assert_eq!(first["data"], second["data"], "{first} {second}");
    assert_eq!(second["replayed"], true);
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn a_call_that_differs_in_a_late_digit_is_another_one() {
    let place = Place::new();
    let gateway = place.up_patient(&late(&["charge_card"]));
    let charge = |amount: &str| format!(r#"{{"order":"{ORDER}","amount":{amount}}}"#);
    // A double tells neither pair apart, and 64 bits do not hold the second.
    for (n, (one, other)) in (0_u64..)
        .zip([("1731726337000123456", "1731726337000123457"), ("123456789012345678901", "123456789012345678902")])
    {
        let mut first = gateway.begin("charge_card", &charge(one));
        eventually("the charge is in flight", || place.effects("charge_card") == 2 * n + 1);
        let (_, second) = gateway.call("charge_card", &charge(other));
        assert_eq!((&second["status"], second.get("replayed")), (&json!("success"), None), "{second}");
        assert_eq!(place.effects("charge_card"), 2 * n + 2, "both are charged");
        first.read_to_end(&mut Vec::new()).expect("the first answer");
    }
    place.settled();
}

#[test]
fn a_repeat_without_a_key_joins_the_keyed_call_in_flight() {
    let place = Place::new();
    let gateway = place.up_patient(&late(&["charge_card"]));
    let _first = http::send(&gateway.address, "/call/charge_card", &[("idempotency-key", "k1")], ARGUMENTS.as_bytes());
    eventually("the charge is in flight", || place.effects("charge_card") == 1);
    let (_, second) = gateway.call("charge_card", ARGUMENTS);
    assert_replayed(&second);
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
}

#[test]
fn an_agent_that_closed_before_the_answer_finds_it_when_it_asks_again() {
    let place = Place::new();
    let gateway = place.up_patient(&late(&["charge_card", "issue_refund"]));
    for tool in ["charge_card", "issue_refund"] {
        // Asked again while it is in flight.
        let stream = gateway.begin(tool, ARGUMENTS);
        eventually("the effect is there", || place.effects(tool) == 1);
        drop(stream);
        let (_, again) = gateway.call(tool, ARGUMENTS);
        assert_replayed(&again);
        assert_eq!((place.effects(tool), place.requests(tool)), (1, 1));
    }
    place.settled();
}

#[test]
fn an_agent_that_closed_before_the_answer_finds_it_after_the_call_has_ended() {
    let place = Place::new();
    let gateway = place.up_patient(&late(&["charge_card"]));
    let stream = gateway.begin("charge_card", ARGUMENTS);
    eventually("the effect is there", || place.effects("charge_card") == 1);
    drop(stream);
    eventually("the charge has ended", || place.open_calls() == 0);
    let mut client = Client::http(Sdk::TypeScriptV1, None, &gateway.mcp());
    let again = client.call("charge_card", json!({ "order": ORDER, "amount": 5 }));
    assert_eq!(envelope(&again)["replayed"], true, "{again}");
    assert!(again["result"]["structuredContent"]["id"].is_string(), "{again}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn an_answer_that_was_written_and_not_read_on_a_kept_connection_is_given_again() {
    let place = Place::new();
    let gateway = place.up("");
    let mut kept = Kept::open(&gateway.address);
    kept.send("/call/charge_card", &[], ARGUMENTS);
    kept.await_answer();
    // With the answer unread, closing resets the connection.
    drop(kept);
    let (_, again) = gateway.call("charge_card", ARGUMENTS);
    assert_replayed(&again);
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn an_answer_that_was_written_and_not_read_on_a_closing_connection_is_given_again() {
    let place = Place::new();
    let gateway = place.up("");
    let stream = gateway.begin("charge_card", ARGUMENTS);
    stream.peek(&mut [0]).expect("an answer");
    drop(stream);
    let (_, again) = gateway.call("charge_card", ARGUMENTS);
    assert_replayed(&again);
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn an_answer_that_was_streamed_and_not_read_is_given_again() {
    let place = Place::new();
    let gateway = place.up_patient(&late(&["issue_refund"]));
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "issue_refund", "arguments": { "order": ORDER, "amount": 5 }, "_meta": { "progressToken": "p" },
        },
    });
    let mut stream = http::send(&gateway.address, "/mcp", &[], call.to_string().as_bytes());
    // The stream has begun, and breaks in the middle.
    let mut start = [0; 15];
    stream.read_exact(&mut start).expect("the stream begins");
    assert_eq!(&start, b"HTTP/1.1 200 OK");
    eventually("the effect is there", || place.effects("issue_refund") == 1);
    drop(stream);
    let (_, again) = gateway.call("issue_refund", ARGUMENTS);
    assert_replayed(&again);
    assert_eq!((place.effects("issue_refund"), place.requests("issue_refund")), (1, 1));
    place.settled();
}

#[test]
fn the_same_key_after_a_delivered_answer_gets_that_answer() {
    let place = Place::new();
    let gateway = place.up("");
    let mut client = Client::http(Sdk::TypeScript, Some("modern"), &gateway.mcp());
    let call = |key: &str, amount: u64| {
        let args = json!({ "order": ORDER, "amount": amount });
        json!({ "op": "call", "tool": "charge_card", "args": args, "meta": { "amends/key": key }, "timeout_ms": 90_000 })
    };
    let first = client.run(call("k1", 5));
    // Another call on the same connection: the first answer was read.
    client.call("get_order", json!({ "order": ORDER }));
    let second = client.run(call("k1", 5));
    assert_eq!(first["result"]["structuredContent"], second["result"]["structuredContent"], "{first} {second}");
    assert_eq!(envelope(&second)["replayed"], true, "{second}");
    assert_eq!(place.effects("charge_card"), 1);

    let other = client.run(call("k1", 6));
    let refused = envelope(&other);
    assert_eq!(refused["status"], "refused", "{other}");
    assert_eq!(refused["error"]["kind"], "duplicate", "{other}");
    assert_eq!(refused["error"]["certainty"], "not_sent");
    assert_eq!(place.effects("charge_card"), 1);

    let fresh = client.run(call("k2", 5));
    assert_eq!(envelope(&fresh).get("replayed"), None, "{fresh}");
    assert_ne!(first["result"]["structuredContent"], fresh["result"]["structuredContent"]);
    assert_eq!(place.effects("charge_card"), 2);
    place.settled();
}

#[test]
fn a_fresh_key_means_another_charge_even_beside_one_in_doubt() {
    let place = Place::new();
    let gateway = place.up(&faults("charge_card", ORDER, &["lose_response"]));
    let (_, lost) = gateway.call("charge_card", ARGUMENTS);
    assert_eq!(lost["outcome"], "unresolved", "{lost}");
    let (_, fresh) = gateway.call_with("charge_card", &[("idempotency-key", "k1")], ARGUMENTS);
    assert_eq!(fresh["status"], "success", "{fresh}");
    assert_eq!(fresh.get("replayed"), None, "{fresh}");
    let (_, again) = gateway.call_with("charge_card", &[("idempotency-key", "k1")], ARGUMENTS);
    assert_replayed(&again);
    let (_, doubted) = gateway.call("charge_card", ARGUMENTS);
    assert_eq!(doubted["outcome"], "unresolved", "{doubted}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (2, 2));
    place.settled();
}

#[test]
fn equal_calls_that_were_answered_on_one_kept_connection_are_different_calls() {
    let place = Place::new();
    let gateway = place.up("");
    let mut kept = Kept::open(&gateway.address);
    for n in 1..=20 {
        let (_, answer) = kept.call("charge_card", ARGUMENTS);
        assert_eq!(answer.get("replayed"), None, "call {n}: {answer}");
        assert_eq!(place.effects("charge_card"), n);
    }
    place.settled();
}

#[test]
fn behind_a_proxy_the_next_request_on_a_connection_proves_nothing() {
    let place = Place::new();
    let gateway = place.up("");
    let mut kept = Kept::open(&gateway.address);
    let proxied = [("x-forwarded-for", "192.0.2.7")];
    kept.send("/call/charge_card", &proxied, ARGUMENTS);
    let (_, first) = kept.receive();
    assert_eq!(first["status"], "success", "{first}");
    kept.send("/call/charge_card", &proxied, ARGUMENTS);
    let (_, second) = kept.receive();
    assert_replayed(&second);
    assert_eq!(place.effects("charge_card"), 1);
}

#[test]
fn equal_calls_that_were_answered_on_connections_closed_cleanly_are_different_calls() {
    let place = Place::new();
    let gateway = place.up("");
    for n in 1..=20 {
        let (_, answer) = gateway.call("charge_card", ARGUMENTS);
        assert_eq!(answer.get("replayed"), None, "call {n}: {answer}");
        assert_eq!(place.effects("charge_card"), n);
    }
    place.settled();
}

#[test]
fn equal_calls_of_real_clients_are_different_calls_or_say_that_they_are_not() {
    let place = Place::new();
    let gateway = place.up("");
    let clients = [
        (Sdk::Python, None),
        (Sdk::Python, Some("legacy")),
        (Sdk::TypeScript, Some("modern")),
        (Sdk::TypeScript, Some("legacy")),
        (Sdk::TypeScriptV1, None),
    ];
    let mut effects = 0;
    for (sdk, era) in clients {
        let mut client = Client::http(sdk, era, &gateway.mcp());
        for _ in 0..3 {
            let answer = client.call("charge_card", json!({ "order": ORDER, "amount": 5 }));
            let replayed = envelope(&answer)["replayed"] == true;
            // Node keeps several connections: while the one with the first answer idles, nobody knows that it was read.
            assert!(!replayed || sdk != Sdk::Python, "{sdk:?} {era:?} {answer}");
            effects += u64::from(!replayed);
            assert_eq!(place.effects("charge_card"), effects, "{sdk:?} {era:?} {answer}");
        }
    }
    place.settled();
}

#[test]
fn equal_calls_over_standard_output_that_were_answered_are_different_calls() {
    let place = Place::new();
    let command = place.wrap("", None);
    for round in 0..2 {
        let client = Rmcp::stdio(&command);
        for n in 1..=3 {
            let answer = client.call("charge_card", json!({ "order": ORDER, "amount": 5 }));
            assert_eq!(envelope(&answer).get("replayed"), None, "{answer}");
            assert_eq!(place.effects("charge_card"), round * 3 + n);
        }
    }
    place.settled();
}

#[test]
fn a_python_agent_that_gives_up_waiting_and_asks_again_makes_no_second_charge() {
    gives_up_and_asks_again(Sdk::Python, None);
}

#[test]
fn a_typescript_agent_that_gives_up_waiting_and_asks_again_makes_no_second_charge() {
    gives_up_and_asks_again(Sdk::TypeScript, Some("modern"));
}

#[test]
fn an_old_typescript_agent_that_gives_up_waiting_and_asks_again_makes_no_second_charge() {
    gives_up_and_asks_again(Sdk::TypeScriptV1, None);
}

#[test]
fn after_a_restart_an_undelivered_answer_is_still_found() {
    let place = Place::new();
    let script = late(&["charge_card"]);
    let mut gateway = place.up_patient(&script);
    let stream = gateway.begin("charge_card", ARGUMENTS);
    eventually("the effect is there", || place.effects("charge_card") == 1);
    drop(stream);
    eventually("the charge has ended", || place.open_calls() == 0);
    gateway.kill();
    let gateway = place.up_patient(&script);
    let mut client = Client::http(Sdk::Python, None, &gateway.mcp());
    let again = client.call("charge_card", json!({ "order": ORDER, "amount": 5 }));
    assert_eq!(envelope(&again)["replayed"], true, "{again}");
    assert!(again["result"]["structuredContent"]["id"].is_string(), "{again}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn after_a_restart_a_delivered_answer_is_not_given_again_except_by_key() {
    let place = Place::new();
    let mut gateway = place.up("");
    let deliver = |gateway: &Gateway, headers: &[(&str, &str)], deliveries: usize| {
        let (_, answer) = gateway.call_with("charge_card", headers, ARGUMENTS);
        assert_eq!(answer.get("replayed"), None, "{answer}");
        eventually("the delivery is recorded", || place.events_named("answer_delivered").len() == deliveries);
    };
    deliver(&gateway, &[], 1);
    deliver(&gateway, &[("idempotency-key", "k1")], 2);
    gateway.kill();
    let gateway = place.up("");
    deliver(&gateway, &[], 3);
    assert_eq!(place.effects("charge_card"), 3);
    let (_, by_key) = gateway.call_with("charge_card", &[("idempotency-key", "k1")], ARGUMENTS);
    assert_replayed(&by_key);
    assert_eq!(place.effects("charge_card"), 3);
    place.settled();
}

/// The agent's own timeout is shorter than the shop is slow. Some clients break the stream and others send a cancel, which the
/// shop obeys by never answering: the repeat then hears that nobody knows.
fn gives_up_and_asks_again(sdk: Sdk, era: Option<&str>) {
    let place = Place::new();
    let config = "[upstreams.shop]\ncommand = [\"amends\"]\nprefix = \"\"\ntimeout = \"7s\"\n";
    let config = place.write("amends.toml", config).display().to_string();
    let gateway = place.up_with(&late(&["charge_card"]), &["--config", &config]);
    let mut client = Client::http(sdk, era, &gateway.mcp());
    client.run(json!({ "op": "info" }));
    let args = json!({ "order": ORDER, "amount": 5 });
    let gave_up = client.run(json!({ "op": "call", "tool": "charge_card", "args": args, "timeout_ms": 1500 }));
    assert_eq!(gave_up["ok"], false, "{gave_up}");
    let again = client.call("charge_card", args);
    let envelope = envelope(&again);
    assert_eq!(envelope["replayed"], true, "{again}");
    match envelope["status"].as_str() {
        Some("success") => assert!(again["result"]["structuredContent"]["id"].is_string(), "{again}"),
        _ => assert_eq!(envelope["error"]["certainty"], "in_doubt", "{again}"),
    }
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

/// Every answer of those tools comes some seconds after its effect.
fn late(tools: &[&str]) -> String {
    let one = |tool: &&str| more_faults(tool, ORDER, &["late"], "late_ms = 4000");
    tools.iter().map(one).collect()
}

fn assert_replayed(envelope: &Value) {
    assert_eq!(envelope["status"], "success", "{envelope}");
    assert_eq!(envelope["replayed"], true, "{envelope}");
    assert!(envelope["data"]["id"].is_string(), "{envelope}");
}
