//! Cancellation by the agent: it reaches the upstream, and what was sent is settled and recorded.

use serde_json::{Value, json};

use crate::pipe::Pipe;
use crate::servers::{events, shop, words, wrapped_shop};
use crate::support::client::{Client, Sdk};
use crate::support::{AMENDS, Place, eventually};

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

fn assert_ended_once(place: &Place, tool: &str, calls: usize) {
    let all = place.events();
    let of = |name: &str, event: &Value| event["fact"]["type"] == name || event["type"] == name;
    let received: Vec<String> = all
        .iter()
        .filter(|event| of("call_received", event) && event.to_string().contains(tool))
        .map(|event| event.to_string())
        .collect();
    assert_eq!(received.len(), calls, "{received:?}");
    let ended = all.iter().filter(|event| of("call_ended", event)).map(ToString::to_string);
    let ended: Vec<String> = ended.collect();
    for text in &received {
        let at = text.find("call_").and_then(|_| text.split('"').find(|word| is_call_id(word))).expect("a call's id");
        assert_eq!(ended.iter().filter(|end| end.contains(at)).count(), 1, "{at} in {ended:?}");
    }
}

fn is_call_id(word: &str) -> bool {
    word.strip_prefix("call_").is_some_and(|rest| rest.len() == 24)
}
