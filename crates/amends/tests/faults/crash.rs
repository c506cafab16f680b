//! The gateway dies at every point of a write's life, is started again over the same ledger, and is asked again.

use serde_json::{Value, json};

use crate::more_faults;
use crate::support::client::{Client, Sdk, envelope};
use crate::support::{Gateway, Place, eventually};

const ORDER: &str = "ord_1";
const ARGUMENTS: &str = r#"{"order":"ord_1","amount":5}"#;

/// What the repeat gets after the crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Nothing was recorded: it is a call like any other.
    Fresh,
    /// The answer of the call that the crash interrupted.
    Replayed,
    /// The truth: nobody knows.
    InDoubt,
}

#[test]
fn a_refund_whose_intent_was_not_recorded_is_sent_when_it_is_asked_for_again() {
    let place = crashed("issue_refund", "before_intent");
    assert_eq!(place.requests("issue_refund"), 0);
    ask_again(&place, "issue_refund", Sdk::Python, Then::Fresh);
    assert_eq!((place.effects("issue_refund"), place.requests("issue_refund")), (1, 1));
}

#[test]
fn a_refund_whose_intent_was_recorded_happens_once() {
    let place = crashed("issue_refund", "after_intent");
    assert_eq!(place.requests("issue_refund"), 0);
    ask_again(&place, "issue_refund", Sdk::TypeScript, Then::Replayed);
    assert_eq!((place.effects("issue_refund"), place.requests("issue_refund")), (1, 1));
}

#[test]
fn a_refund_that_was_sent_happens_once() {
    let place = killed_in_flight("issue_refund");
    ask_again(&place, "issue_refund", Sdk::TypeScriptV1, Then::Replayed);
    assert_one_key(&place);
}

#[test]
fn a_refund_whose_result_was_not_recorded_happens_once() {
    let place = crashed("issue_refund", "after_result");
    assert_eq!(place.effects("issue_refund"), 1);
    ask_again(&place, "issue_refund", Sdk::Python, Then::Replayed);
    assert_one_key(&place);
}

#[test]
fn a_refund_whose_answer_did_not_leave_gives_it_to_the_repeat() {
    let place = crashed("issue_refund", "before_reply");
    ask_again(&place, "issue_refund", Sdk::TypeScript, Then::Replayed);
    assert_eq!((place.effects("issue_refund"), place.requests("issue_refund")), (1, 1));
}

#[test]
fn a_charge_whose_intent_was_not_recorded_is_sent_when_it_is_asked_for_again() {
    let place = crashed("charge_card", "before_intent");
    assert_eq!(place.requests("charge_card"), 0);
    ask_again(&place, "charge_card", Sdk::TypeScriptV1, Then::Fresh);
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
}

#[test]
fn a_charge_whose_intent_was_recorded_is_in_doubt_and_not_sent_again() {
    let place = crashed("charge_card", "after_intent");
    ask_again(&place, "charge_card", Sdk::Python, Then::InDoubt);
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (0, 0));
}

#[test]
fn a_charge_that_was_sent_is_in_doubt_and_not_sent_again() {
    let place = killed_in_flight("charge_card");
    ask_again(&place, "charge_card", Sdk::TypeScript, Then::InDoubt);
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
}

#[test]
fn a_charge_whose_result_was_not_recorded_is_in_doubt_and_not_sent_again() {
    let place = crashed("charge_card", "after_result");
    ask_again(&place, "charge_card", Sdk::TypeScriptV1, Then::InDoubt);
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
}

#[test]
fn a_charge_whose_answer_did_not_leave_gives_it_to_the_repeat() {
    let place = crashed("charge_card", "before_reply");
    ask_again(&place, "charge_card", Sdk::Python, Then::Replayed);
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
}

#[test]
fn a_refund_that_crashes_again_while_it_is_settled_happens_once() {
    let place = crashed("issue_refund", "after_result");
    // Nobody asks: the gateway takes the orphan up by itself, and dies of it.
    for point in ["before_intent", "after_intent", "after_result", "before_reply"] {
        place.crash("", point);
    }
    ask_again(&place, "issue_refund", Sdk::TypeScript, Then::Replayed);
    assert_eq!(place.effects("issue_refund"), 1);
    let keys = place.keys_on("issue_refund", ORDER);
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

#[test]
fn a_session_with_a_past_is_taken_up_with_only_what_was_open_in_it() {
    let place = Place::new();
    let script = held("charge_card");
    let mut gateway = place.up_patient(&script);
    let mut client = Client::http(Sdk::TypeScriptV1, None, &gateway.mcp());
    for order in ["ord_2", "ord_3"] {
        let answer = client.call("charge_card", json!({ "order": order, "amount": 5 }));
        assert_eq!(answer["result"]["structuredContent"]["order"], order, "{answer}");
        client.call("get_order", json!({ "order": order }));
    }
    client.begin_call("charge_card", json!({ "order": ORDER, "amount": 5 }));
    eventually("the effect is there", || place.effects("charge_card") == 3);
    gateway.kill();
    drop(client);
    ask_again(&place, "charge_card", Sdk::Python, Then::InDoubt);
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (3, 3));
}

#[test]
fn a_gateway_that_is_asked_to_stop_leaves_a_call_that_is_settled_after_its_restart() {
    for tool in ["issue_refund", "charge_card"] {
        let place = Place::new();
        let mut gateway = place.up_patient(&held(tool));
        let _stream = gateway.begin(tool, ARGUMENTS);
        eventually("the effect is there", || place.effects(tool) == 1);
        let asked = std::process::Command::new("kill").arg(gateway.id().to_string()).status();
        assert!(asked.is_ok_and(|status| status.success()));
        gateway.ended();
        let gateway = place.up("");
        let (_, again) = gateway.call(tool, ARGUMENTS);
        assert_eq!(again["replayed"], true, "{again}");
        assert_eq!(place.effects(tool), 1);
        place.settled();
    }
}

#[test]
fn a_wrapped_server_whose_gateway_was_killed_is_not_asked_twice() {
    let place = Place::new();
    let config = "[upstreams.wrapped]\ntimeout = \"40s\"\n\n[tools.charge_card]\neffect = \"write\"\n\
                  \n[tools.issue_refund]\neffect = \"keyed\"\n\
                  key = { argument = \"idempotency_key\", window = \"24h\", durable = true }\n";
    let script = [held("charge_card"), held("issue_refund")].concat();
    let command = place.wrap(&script, Some(config));
    for tool in ["charge_card", "issue_refund"] {
        let mut wrap = Wrapped::start(&command);
        wrap.call(tool);
        eventually("the effect is there", || place.effects(tool) == 1);
        wrap.kill();
    }
    let client = crate::support::rmcp::Rmcp::stdio(&command);
    let charge = client.call("charge_card", json!({ "order": ORDER, "amount": 5 }));
    assert_eq!(envelope(&charge)["outcome"], "unresolved", "{charge}");
    let refund = client.call("issue_refund", json!({ "order": ORDER, "amount": 5 }));
    assert_eq!(refund["result"]["structuredContent"]["order"], ORDER, "{refund}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));
    assert_eq!(place.effects("issue_refund"), 1);
    place.settled();
}

/// A place whose gateway died at that point of a call of that tool.
fn crashed(tool: &str, point: &str) -> Place {
    let place = Place::new();
    let mut gateway = place.up_crashing("", point);
    let _stream = gateway.begin(tool, ARGUMENTS);
    gateway.ended();
    place
}

/// A place whose gateway was killed after the effect of a call and before its answer.
fn killed_in_flight(tool: &str) -> Place {
    let place = Place::new();
    let mut gateway = place.up_patient(&held(tool));
    let _stream = gateway.begin(tool, ARGUMENTS);
    eventually("the effect is there", || place.effects(tool) == 1);
    gateway.kill();
    place
}

/// The first answer of that tool is held back for longer than a test lasts.
fn held(tool: &str) -> String {
    more_faults(tool, ORDER, &["late"], "late_ms = 30000")
}

/// Starts the gateway again, asks again through a new connection, and asks once more.
fn ask_again(place: &Place, tool: &str, sdk: Sdk, then: Then) {
    let gateway: Gateway = place.up("");
    let mut client = Client::http(sdk, None, &gateway.mcp());
    let answer = client.call(tool, json!({ "order": ORDER, "amount": 5 }));
    let told = envelope(&answer);
    match then {
        Then::Fresh => {
            assert_eq!(told.get("replayed"), None, "{answer}");
            assert_done(&answer);
        }
        Then::Replayed => {
            assert_eq!(told["replayed"], true, "{answer}");
            assert_done(&answer);
            // It was replayed, so it is still the first call's: the agent that never got it may ask again.
            let (_, again) = gateway.call(tool, ARGUMENTS);
            assert_eq!(again["replayed"], true, "{again}");
            assert_eq!(again["data"], answer["result"]["structuredContent"]);
        }
        Then::InDoubt => {
            assert_eq!(told["outcome"], "unresolved", "{answer}");
            assert_eq!(told["error"]["certainty"], "in_doubt");
            assert_eq!(told["error"]["who_must_act"], "person");
            assert_eq!(told["error"]["safe_to_repeat"], false);
            let (_, again) = gateway.call(tool, ARGUMENTS);
            assert_eq!(again["outcome"], "unresolved", "{again}");
        }
    }
    place.settled();
}

fn assert_done(answer: &Value) {
    assert_eq!(answer["result"]["structuredContent"]["order"], ORDER, "{answer}");
    assert!(answer["result"]["structuredContent"]["id"].is_string(), "{answer}");
}

fn assert_one_key(place: &Place) {
    assert_eq!(place.effects("issue_refund"), 1);
    let keys = place.keys_on("issue_refund", ORDER);
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert_eq!(keys[0], keys[1]);
}

/// `amends wrap` held by its pipes, without a client, so that it can be killed.
struct Wrapped {
    child: std::process::Child,
}

impl Wrapped {
    fn start(command: &[String]) -> Self {
        let (program, arguments) = command.split_first().expect("a command");
        let child = std::process::Command::new(program)
            .args(arguments)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            // Its server outlives it for a moment, and would hold ours open.
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("it starts");
        Self { child }
    }

    fn call(&mut self, tool: &str) {
        use std::io::Write;
        let hello = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "amends-test", "version": "0" },
            },
        });
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let arguments = json!({ "order": ORDER, "amount": 5 });
        let call = json!({
            "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": tool, "arguments": arguments },
        });
        let input = self.child.stdin.as_mut().expect("its input");
        write!(input, "{hello}\n{ready}\n{call}\n").and_then(|()| input.flush()).expect("it reads");
    }

    /// `kill -9`, by its id.
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Wrapped {
    fn drop(&mut self) {
        self.kill();
    }
}
