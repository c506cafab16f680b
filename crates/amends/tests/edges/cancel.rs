//! Cancellation by the agent: it reaches the upstream, and what was sent is settled and recorded.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::pipe::Pipe;
use crate::servers::{events, shop, words, wrapped_shop};
use crate::support::client::{Client, Sdk};
use crate::support::http::{post, send};
use crate::support::{AMENDS, Gateway, Place, eventually};

const HTTP_CLIENTS: [(Sdk, Option<&str>); 5] = [
    (Sdk::Python, Some("legacy")),
    (Sdk::Python, Some("modern")),
    (Sdk::TypeScript, Some("legacy")),
    (Sdk::TypeScript, Some("modern")),
    (Sdk::TypeScriptV1, None),
];

/// Cancels a long report in its middle, once with progress and once without.
fn cancels_a_report(place: &Place, client: &mut Client, who: &str) {
    for progress in [true, false] {
        let (asked, stopped) = (place.requests("slow_report"), place.cancelled("slow_report"));
        let args = json!({ "steps": 1000, "step_ms": 60 });
        let n = client.begin(json!({ "op": "call", "tool": "slow_report", "args": args, "progress": progress }));
        eventually("the report is asked for", || place.requests("slow_report") == asked + 1);
        assert_eq!(client.run(json!({ "op": "cancel", "call": n }))["ok"], true);
        let ended = client.finish(n);
        assert_eq!(ended["error"]["type"], "cancelled", "{who}: {ended}");
        eventually("the shop hears of the cancel", || place.cancelled("slow_report") == stopped + 1);
    }
    let order = client.call("get_order", json!({ "order": "ord_1" }));
    assert_eq!(order["result"]["structuredContent"]["order"], "ord_1", "{who}: {order}");
}

#[test]
fn a_cancel_over_http_reaches_the_upstream_whatever_the_client() {
    let place = Place::new();
    let gateway = place.up("");
    for (sdk, era) in HTTP_CLIENTS {
        let mut client = Client::http(sdk, era, &gateway.mcp());
        cancels_a_report(&place, &mut client, &format!("{sdk:?} {era:?}"));
    }
    eventually("every cancel is recorded", || events(&place, "cancel_requested") == 10);
    place.settled();
}

#[test]
fn a_cancel_over_stdio_reaches_the_wrapped_server_whatever_the_client() {
    let place = Place::new();
    let (ledger, config, server) = (place.ledger(), wrapped_shop(&place), shop(&place, &[]));
    let mut command = vec![AMENDS, "wrap", "--ledger", &ledger, "--config", &config, "--"];
    command.extend(words(&server));
    for (sdk, era) in [(Sdk::Python, Some("legacy")), (Sdk::Python, Some("modern")), (Sdk::TypeScript, None)] {
        let mut client = Client::stdio(sdk, era, &command);
        cancels_a_report(&place, &mut client, &format!("{sdk:?} {era:?}"));
    }
    eventually("every cancel is recorded", || events(&place, "cancel_requested") == 6);
    place.settled();
}

#[test]
fn a_cancel_of_a_write_in_flight_is_forwarded_settled_and_recorded() {
    let place = Place::new();
    let gateway =
        place.up("[[fault]]\ntool = \"charge_card\"\nattempts = [\"late\", \"late\", \"late\"]\nlate_ms = 1500\n");
    for (k, (sdk, era)) in [(Sdk::Python, Some("legacy")), (Sdk::TypeScript, Some("legacy"))].into_iter().enumerate() {
        let k = k as u64 + 1;
        let mut client = Client::http(sdk, era, &gateway.mcp());
        let n = client.begin_call("charge_card", json!({ "order": format!("ord_{k}"), "amount": 5 }));
        eventually("the charge arrives", || place.effects("charge_card") == k);
        client.run(json!({ "op": "cancel", "call": n }));
        assert_eq!(client.finish(n)["error"]["type"], "cancelled");
        eventually("the shop hears of the cancel", || place.cancelled("charge_card") == k);
        eventually("the cancel is recorded", || events(&place, "cancel_requested") == k);
        place.settled();
        assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (k, k));
    }
    assert_ended_once(&place, "charge_card", 2);
}

#[test]
fn a_cancel_of_a_write_over_stdio_gets_no_answer_and_one_end() {
    let place = Place::new();
    let config = wrapped_shop(&place);
    let server = shop(&place, &["--fault", "charge_card=late"]);
    let mut pipe = Pipe::wrap(&place, &["--config", &config], &words(&server));
    pipe.greet();
    let id = pipe.begin("charge_card", r#"{"order":"ord_1","amount":5}"#);
    eventually("the charge arrives", || place.effects("charge_card") == 1);
    pipe.line(format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#));
    eventually("the shop hears of the cancel", || place.cancelled("charge_card") == 1);
    place.settled();
    let order = pipe.call("get_order", r#"{"order":"ord_1"}"#);
    assert_eq!(order["result"]["structuredContent"]["order"], "ord_1");
    assert!(pipe.others.is_empty(), "a cancelled request is not answered: {:?}", pipe.others);
    assert_ended_once(&place, "charge_card", 1);
}

#[test]
fn closing_the_stream_of_a_write_leaves_its_answer_for_the_repeat() {
    let place = Place::new();
    let gateway = place.up("[[fault]]\ntool = \"charge_card\"\nattempts = [\"late\"]\nlate_ms = 1000\n");
    let mut client = Client::http(Sdk::Python, Some("modern"), &gateway.mcp());
    let args = json!({ "order": "ord_1", "amount": 5 });
    let n = client.begin_call("charge_card", args.clone());
    eventually("the charge arrives", || place.effects("charge_card") == 1);
    client.run(json!({ "op": "cancel", "call": n }));
    assert_eq!(client.finish(n)["error"]["type"], "cancelled");
    let again = client.call("charge_card", args);
    assert_eq!(again["result"]["_meta"]["amends/envelope"]["replayed"], true, "{again}");
    assert_eq!(again["result"]["structuredContent"]["order"], "ord_1");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn a_cancelled_stream_ends_without_an_answer() {
    let place = Place::new();
    let gateway = place.up("");
    let session = stateful(&gateway);
    let session = [("mcp-session-id", session.as_str())];
    for (k, meta) in [(1, json!({ "progressToken": "p" })), (2, json!({}))] {
        let params = json!({ "name": "slow_report", "arguments": { "steps": 1000, "step_ms": 60 }, "_meta": meta });
        let call = json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params });
        let mut stream = send(&gateway.address, "/mcp", &session, call.to_string().as_bytes());
        eventually("the report is asked for", || place.requests("slow_report") == k);
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "c", "reason": "?" } });
        assert_eq!(post(&gateway.address, "/mcp", &session, cancel.to_string().as_bytes()).0, 202);
        let mut rest = String::new();
        stream.read_to_string(&mut rest).expect("the stream ends by itself");
        assert!(!rest.contains("\"result\"") && !rest.contains("\"error\""), "{rest}");
        eventually("the shop hears of the cancel", || place.cancelled("slow_report") == k);
    }
    place.settled();
}

#[test]
fn ending_a_session_stops_what_runs_in_it() {
    let place = Place::new();
    let gateway = place.up("");
    let session = stateful(&gateway);
    let params = json!({ "name": "slow_report", "arguments": { "steps": 1000, "step_ms": 60 } });
    let call = json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params });
    let mut stream = send(&gateway.address, "/mcp", &[("mcp-session-id", &session)], call.to_string().as_bytes());
    eventually("the report is asked for", || place.requests("slow_report") == 1);
    let mut end = TcpStream::connect(&gateway.address).expect("a connection");
    let address = &gateway.address;
    write!(end, "DELETE /mcp HTTP/1.1\r\nhost: {address}\r\nmcp-session-id: {session}\r\nconnection: close\r\n\r\n")
        .expect("it is asked for");
    let mut ended = String::new();
    end.read_to_string(&mut ended).expect("an answer");
    assert!(ended.starts_with("HTTP/1.1 200"), "{ended}");
    eventually("the shop hears of it", || place.cancelled("slow_report") == 1);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("the stream ends by itself");
    let asked = place.events_named("cancel_requested");
    assert_eq!((asked.len(), &asked[0]["reason"]), (1, &json!("session_ended")), "{asked:?}");
    place.settled();
}

#[test]
fn a_cancel_of_what_is_unknown_or_malformed_changes_nothing() {
    let place = Place::new();
    let server = shop(&place, &[]);
    let mut pipe = Pipe::wrap(&place, &[], &words(&server));
    pipe.greet();
    for params in [r#"{"requestId":999}"#, r#"{"requestId":{"a":1}}"#, "{}", "[]", r#"{"requestId":null}"#] {
        pipe.line(format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#));
    }
    pipe.line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#);
    let order = pipe.call("get_order", r#"{"order":"ord_1"}"#);
    assert_eq!(order["result"]["structuredContent"]["order"], "ord_1");
    assert_eq!(events(&place, "cancel_requested"), 0);
}

/// The id of a new session of the older era.
fn stateful(gateway: &Gateway) -> String {
    let greet =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25" } });
    let mut greeting = String::new();
    let _ = send(&gateway.address, "/mcp", &[], greet.to_string().as_bytes()).read_to_string(&mut greeting);
    let id = greeting.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session");
    id.to_owned()
}

/// Every call of that tool that was received ended, and ended once.
fn assert_ended_once(place: &Place, tool: &str, calls: usize) {
    let all = place.events();
    let named = |name: &str| all.iter().filter(move |event| event["event"] == *name).collect::<Vec<&Value>>();
    let received: Vec<&Value> = named("call_received").into_iter().filter(|event| event["tool"] == tool).collect();
    assert_eq!(received.len(), calls, "{received:?}");
    for event in received {
        let ends = named("call_ended").into_iter().filter(|end| end["call"] == event["call"]);
        assert_eq!(ends.count(), 1, "{}", event["call"]);
    }
}
