//! Walks that are given up, and walks whose machine is declared otherwise by now.

use serde_json::{Value, json};

use crate::order::{ORDER, assert_legal, assert_refused, serve};
use crate::support::{Gateway, Place, eventually};

/// A refund that is taken back where the card cannot be charged.
const EXCHANGE: &str = r#"
[tools.get_order]
effect = "read"

[tools.get_refund]
effect = "read"

[tools.issue_refund]
effect = "keyed"
key = { argument = "idempotency_key", window = "24h", durable = true }
status = { tool = "get_refund", args = { key = "key" }, happened = "result.found" }
settles_within = "10s"
reverse = { tool = "cancel_refund", args = { id = "result.id" }, within = "24h" }

[tools.cancel_refund]
effect = "idempotent"

[tools.charge_card]
effect = "write"

[machines.exchange]
initial = "asked"
terminal = ["done"]

[machines.exchange.actions.pay_back]
from = ["asked"]
to = "paid_back"
tool = "issue_refund"
args = { order = "inputs.order", amount = "5" }
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }

[machines.exchange.actions.charge]
from = ["paid_back"]
to = "done"
tool = "charge_card"
args = { order = "'ord_forbidden'", amount = "5" }
resolution = "abort_workflow"
"#;

/// Two refunds, and then a charge that cannot be made.
const TWICE: &str = r#"
[machines.exchange.actions.pay_more]
from = ["paid_back"]
to = "paid_back"
times = 1
tool = "issue_refund"
args = { order = "inputs.order", amount = "7" }
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
"#;

fn step(gateway: &Gateway, args: Value) -> Value {
    gateway.call("step", &args.to_string()).1
}

#[test]
fn a_walk_that_is_given_up_is_undone_and_can_begin_again() {
    let place = Place::new();
    let gateway = serve(&place, EXCHANGE);
    let paid = step(&gateway, json!({ "action": "pay_back", "inputs": { "order": "ord_1" } }));
    assert_eq!(paid["status"], "success", "{paid}");
    let session = paid["data"]["session"].clone();
    let failed = step(&gateway, json!({ "action": "charge", "session": session }));
    assert_eq!((&failed["error"]["kind"], &failed["error"]["code"]), (&json!("action_error"), &json!("Forbidden")));
    eventually("what was done is undone", || place.events_named("walk_unwound").len() == 1);
    let unwound = &place.events_named("walk_unwound")[0];
    assert_eq!(unwound["undone"], 1, "{unwound}");
    assert_eq!((place.effects("issue_refund"), place.effects("cancel_refund")), (1, 1));
    let over = step(&gateway, json!({ "action": "charge", "session": session }));
    assert_refused(&over, "invalid_transition", &[]);
    let (_, reset) = gateway.call("reset", &json!({ "session": session }).to_string());
    assert_eq!(reset["data"]["state"]["name"], "asked", "{reset}");
    assert_legal(&reset["data"], &["pay_back"]);
    place.settled();
}

#[test]
fn a_walk_is_undone_newest_first_and_a_person_hears_of_what_could_not_be() {
    let place = Place::new();
    let gateway = serve(&place, &format!("{EXCHANGE}{TWICE}"));
    // The shop does not let the second refund be cancelled.
    let paid = step(&gateway, json!({ "action": "pay_back", "inputs": { "order": "ord_1" } }));
    let session = paid["data"]["session"].clone();
    let more = step(&gateway, json!({ "action": "pay_more", "inputs": { "order": "ord_2" }, "session": session }));
    assert_eq!(more["data"]["seq"], 2, "{more}");
    step(&gateway, json!({ "action": "charge", "session": session }));
    eventually("what could be undone is", || place.events_named("walk_unwound").len() == 1);
    let unwound = &place.events_named("walk_unwound")[0];
    assert_eq!((&unwound["undone"], unwound["failed"].as_array().map(Vec::len)), (&json!(1), Some(1)), "{unwound}");
    let undone: Vec<Value> = place
        .events_named("call_received")
        .iter()
        .filter(|event| event["tool"] == "cancel_refund")
        .map(|event| event["view"].clone())
        .collect();
    let at = |id: &str| undone.iter().position(|view| view.to_string().contains(id));
    assert!(at("re_000002") < at("re_000001") && at("re_000002").is_some(), "{undone:?}");
    let (_, queue) = place.amends(&["queue", "--json"]);
    assert!(queue.contains("could not be undone"), "{queue}");
    let (_, reset) = gateway.call("reset", &json!({ "session": session }).to_string());
    assert_eq!(reset["data"]["state"]["name"], "asked", "{reset}");
}

#[test]
fn what_a_walk_that_followed_its_machine_is_given_is_checked_as_declared_now() {
    let place = Place::new();
    let mut gateway = serve(&place, ORDER);
    let inputs = json!({ "item": "latte", "order": "ord_1" });
    let session = step(&gateway, json!({ "action": "take_order", "inputs": inputs }))["data"]["session"].clone();
    gateway.kill();
    let changed = ORDER
        .replace("initial = \"created\"", "initial = \"created\"\ndrift = \"migrate\"")
        .replace("exclusiveMinimum = 0", "exclusiveMinimum = 100");
    let gateway = serve(&place, &changed);
    let little = step(&gateway, json!({ "action": "pay", "inputs": { "amount": 5 }, "session": session }));
    assert_refused(&little, "validation_failed", &["drop_order", "pay"]);
    let paid = step(&gateway, json!({ "action": "pay", "inputs": { "amount": 500 }, "session": session }));
    assert_eq!(paid["data"]["state"]["name"], "paid", "{paid}");
}

#[test]
fn a_walk_whose_machine_changed_keeps_it_or_follows_or_is_refused_as_declared() {
    for drift in ["keep", "migrate", "refuse"] {
        let place = Place::new();
        let mut gateway = serve(&place, ORDER);
        let inputs = json!({ "item": "latte", "order": "ord_1" });
        let ordered = step(&gateway, json!({ "action": "take_order", "inputs": inputs }));
        let session = ordered["data"]["session"].clone();
        gateway.kill();
        let changed = ORDER
            .replace("initial = \"created\"", &format!("initial = \"created\"\ndrift = \"{drift}\""))
            .replace("[machines.order.actions.drop_order]", "[machines.order.actions.forget]");
        let gateway = serve(&place, &changed);
        let seen = step(&gateway, json!({ "action": "forget", "session": session }));
        match drift {
            "keep" => {
                assert_refused(&seen, "unknown_action", &["drop_order", "pay"]);
                let dropped = step(&gateway, json!({ "action": "drop_order", "session": session }));
                assert_eq!(dropped["status"], "success", "{dropped}");
            }
            "migrate" => assert_eq!(seen["data"]["state"]["name"], "dropped", "{seen}"),
            _ => {
                assert_eq!(seen["error"]["kind"], "schema_drift", "{seen}");
                assert_eq!(seen["error"]["code"], "ManifestDrift", "{seen}");
                let pay = json!({ "action": "pay", "inputs": { "amount": 5 }, "session": session });
                assert_eq!(step(&gateway, pay)["error"]["code"], "ManifestDrift");
            }
        }
        assert_eq!(place.requests("charge_card"), 0);
    }
}
