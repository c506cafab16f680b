//! Plans of calls: what is told of them, done or not.

use serde_json::{Value, json};

use crate::agent::{Agent, envelope, last, outcome, results, statuses};
use crate::support::Place;

const STEP: [&str; 7] = [
    "STEP_STARTED",
    "TOOL_CALL_START",
    "TOOL_CALL_ARGS",
    "TOOL_CALL_END",
    "TOOL_CALL_RESULT",
    "STEP_FINISHED",
    "STATE_DELTA",
];

/// What a run of so many steps is told as, before its last event.
fn steps(n: usize) -> Vec<&'static str> {
    ["RUN_STARTED", "STATE_SNAPSHOT"].into_iter().chain((0..n).flat_map(|_| STEP)).collect()
}

fn types(went: &Value) -> Vec<&str> {
    went["types"].as_array().expect("types").iter().map(|name| name.as_str().expect("a name")).collect()
}

#[test]
fn a_plan_is_run_step_by_step_and_each_result_says_what_was_done() {
    let place = Place::new();
    let gateway = place.up("");
    let mut agent = Agent::of(&gateway);
    let calls = json!([
        { "tool": "get_order", "args": { "order": "ord_1" } },
        { "tool": "charge_card", "args": { "order": "ord_1", "amount": 5 } },
    ]);
    let went = agent.calls("t", calls);
    assert_eq!(types(&went), [steps(2), vec!["RUN_FINISHED"]].concat(), "{went:#}");
    assert_eq!(went["events"][0]["protocolVersion"], "1.0");
    assert_eq!(outcome(&went), "success");
    assert_eq!(statuses(&went), ["done", "done"]);
    let told: Vec<_> = results(&went).into_iter().map(|result| envelope(result)["status"].clone()).collect();
    assert_eq!(told, ["success", "success"]);
    let receipt = &results(&went)[1]["metadata"]["amends/receipt"];
    assert!(receipt["hash"].is_string(), "a write is recorded before it is told: {receipt}");
    // The client makes messages of it, with what we said of the result.
    let messages = went["messages"].as_array().expect("messages");
    let answer = messages.iter().find(|message| message["role"] == "tool").expect("a tool's message");
    assert_eq!(answer["metadata"]["amends/envelope"]["status"], "success", "{answer}");
    assert!(answer["content"].as_str().is_some_and(|text| text.contains("ord_1")), "{answer}");
    assert_eq!(place.effects("charge_card"), 1);
    place.settled();
}

#[test]
fn a_call_with_an_id_of_the_clients_is_made_once_and_its_repeat_finds_the_answer() {
    let place = Place::new();
    let gateway = place.up("");
    let mut agent = Agent::of(&gateway);
    let calls = json!([{ "tool": "charge_card", "args": { "order": "ord_1", "amount": 5 }, "id": "the-charge" }]);
    assert_eq!(statuses(&agent.calls("t", calls.clone())), ["done"]);
    let again = agent.run(json!({ "thread": "t", "fresh": true, "amends": { "calls": calls } }));
    assert_eq!(envelope(results(&again)[0])["replayed"], true, "{again:#}");
    assert_eq!(place.effects("charge_card"), 1);
    // In another thread it is another wish.
    assert_eq!(statuses(&agent.calls("u", calls)), ["done"]);
    assert_eq!(place.effects("charge_card"), 2);
    place.settled();
}

#[test]
fn a_tools_error_and_a_refusal_are_results_and_the_plan_stops_there() {
    let place = Place::new();
    let gateway = place.up("[[fault]]\ntool = \"charge_card\"\nattempts = [\"unprocessable\"]\nrepeat = true\n");
    let mut agent = Agent::of(&gateway);
    let charge = json!({ "tool": "charge_card", "args": { "order": "ord_1", "amount": 5 } });
    let wrong = json!({ "tool": "charge_card", "args": { "ordr": "ord_1" } });
    let unknown = json!({ "tool": "charge_crad", "args": {} });
    let email = json!({ "tool": "send_email", "args": { "to": "a@b.example", "subject": "s", "body": "b" } });
    for (call, status, kind) in [
        (charge, "error", "input_invalid"),
        (wrong, "refused", "invalid_argument"),
        (unknown, "refused", "unknown_name"),
    ] {
        let went = agent.calls(kind, json!([call, email]));
        assert_eq!(types(&went), [steps(1), vec!["RUN_FINISHED"]].concat(), "{went:#}");
        assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["failed", "pending"]), "{went:#}");
        let said = envelope(results(&went)[0]);
        assert_eq!((&said["status"], &said["error"]["kind"]), (&json!(status), &json!(kind)), "{said:#}");
        assert_eq!(said["data"], Value::Null);
        assert_eq!(last(&went)["result"]["steps"][1]["status"], "pending");
    }
    assert_eq!(place.requests("send_email"), 0);
    place.settled();
}

#[test]
fn an_error_of_the_infrastructure_ends_the_run_with_its_code() {
    let place = Place::new();
    let gateway = place.up("[[fault]]\ntool = \"charge_card\"\nattempts = [\"lose_response\"]\nrepeat = true\n");
    let mut agent = Agent::of(&gateway);
    let charge = json!([{ "tool": "charge_card", "args": { "order": "ord_1", "amount": 5 } }]);
    let went = agent.calls("t", charge);
    assert_eq!(types(&went), [steps(1), vec!["RUN_ERROR"]].concat(), "{went:#}");
    assert_eq!(last(&went)["code"], "NetworkTimeout", "{went:#}");
    let said = envelope(results(&went)[0]);
    assert_eq!((&said["error"]["certainty"], &said["error"]["safe_to_repeat"]), (&json!("in_doubt"), &json!(false)));
    assert_eq!((place.requests("charge_card"), place.effects("charge_card")), (1, 1));
}

#[test]
fn what_a_client_carries_beside_ours_stays_its_own() {
    let place = Place::new();
    let gateway = place.up("");
    let mut agent = Agent::of(&gateway);
    let calls = json!({ "calls": [{ "tool": "get_order", "args": { "order": "ord_1" } }] });
    let went = agent.run(json!({ "thread": "t", "state": { "theme": "dark", "n": [1, 2] }, "amends": calls }));
    assert_eq!((&went["state"]["theme"], &went["state"]["n"]), (&json!("dark"), &json!([1, 2])));
    assert_eq!(statuses(&went), ["done"]);
}
