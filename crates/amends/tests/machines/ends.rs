//! Walks that are given up.

use serde_json::{Value, json};

use crate::order::{assert_legal, assert_refused, serve};
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

/// A way to the end without a charge.
const WAIVED: &str = r#"
[machines.exchange.actions.waive]
from = ["paid_back"]
to = "done"
"#;

#[test]
fn what_was_done_before_a_walk_began_again_stays_when_it_is_given_up_later() {
    let place = Place::new();
    let gateway = serve(&place, &format!("{EXCHANGE}{WAIVED}"));
    let mut walk = json!({});
    let mut pays = |order: &str| {
        walk["action"] = json!("pay_back");
        walk["inputs"] = json!({ "order": order });
        let paid = step(&gateway, walk.clone());
        assert_eq!(paid["status"], "success", "{paid}");
        walk["session"] = paid["data"]["session"].clone();
        walk["session"].clone()
    };
    for order in ["ord_1", "ord_2"] {
        let session = pays(order);
        let over = step(&gateway, json!({ "action": "waive", "session": session }));
        assert_eq!(over["data"]["state"]["name"], "done", "{over}");
        gateway.call("reset", &json!({ "session": session }).to_string());
    }
    let session = pays("ord_3");
    step(&gateway, json!({ "action": "charge", "session": session }));
    eventually("what was done is undone", || place.events_named("walk_unwound").len() == 1);
    let unwound = &place.events_named("walk_unwound")[0];
    assert_eq!((&unwound["undone"], &unwound["failed"]), (&json!(1), &Value::Null), "{unwound}");
    assert_eq!((place.effects("issue_refund"), place.effects("cancel_refund")), (3, 1));
    let undone: Vec<Value> =
        place.events_named("call_received").into_iter().filter(|event| event["tool"] == "cancel_refund").collect();
    assert!(undone.len() == 1 && undone[0]["view"].to_string().contains("re_000003"), "{undone:?}");
    place.settled();
}

/// A charge that nothing undoes, after the refund.
const CHARGED: &str = r#"
[machines.exchange.actions.charge_some]
from = ["paid_back"]
to = "paid_back"
times = 1
tool = "charge_card"
args = { order = "inputs.order", amount = "3" }
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
"#;

#[test]
fn what_stays_of_a_walk_that_is_given_up_is_told_to_its_agent_and_to_a_person() {
    let place = Place::new();
    let gateway = serve(&place, &format!("{EXCHANGE}{CHARGED}"));
    let paid = step(&gateway, json!({ "action": "pay_back", "inputs": { "order": "ord_1" } }));
    let session = paid["data"]["session"].clone();
    let charged =
        step(&gateway, json!({ "action": "charge_some", "inputs": { "order": "ord_1" }, "session": session }));
    assert_eq!(charged["data"]["seq"], 2, "{charged}");
    let failed = step(&gateway, json!({ "action": "charge", "session": session }));
    let message = failed["error"]["message"].as_str().unwrap_or_default();
    let words = "the walk is given up: 1 being undone, 1 cannot be undone (`charge_card`)";
    assert!(message.ends_with(words), "{failed}");
    assert!(failed["next_hint"].as_str().is_some_and(|hint| hint.contains("1 cannot be undone")), "{failed}");
    assert_legal(&failed, &[]);

    eventually("what can be undone is", || place.events_named("walk_unwound").len() == 1);
    let unwound = &place.events_named("walk_unwound")[0];
    let left = &unwound["left"];
    assert_eq!((&unwound["undone"], &left[0]["tool"], &left[1]), (&json!(1), &json!("charge_card"), &Value::Null));
    let (_, queue) = place.amends(&["queue", "--json"]);
    assert!(queue.contains("1 undone, and 1 could not be undone: `charge_card`"), "{queue}");
    let (_, trace) = place.amends(&["trace", session.as_str().expect("a handle")]);
    assert!(trace.contains("1 undone, 1 not: `charge_card`"), "{trace}");

    let seen = gateway.call("walk", &failed["error"]["recovery"]["call"]["args"].to_string()).1;
    let waits = json!({ "for": "given_up", "undone": 1, "not_undone": 1, "left": ["charge_card"] });
    assert_eq!(seen["data"]["waits"], waits, "{seen}");
    let hint = seen["data"]["next_hint"].as_str().unwrap_or_default();
    assert!(hint.contains("given up: 1 undone, 1 cannot be undone (`charge_card`)"), "{seen}");
    let over = step(&gateway, json!({ "action": "charge", "session": session }));
    assert_refused(&over, "invalid_transition", &[]);
    let message = over["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("given up: 1 undone, 1 cannot be undone (`charge_card`)"), "{over}");
    let call = &over["error"]["recovery"]["call"];
    assert_eq!(call["tool"], "reset", "{over}");
    let (_, reset) = gateway.call("reset", &call["args"].to_string());
    assert_legal(&reset["data"], &["pay_back"]);
    assert_eq!(reset["data"]["waits"], Value::Null, "{reset}");
    assert_eq!((place.effects("charge_card"), place.effects("cancel_refund")), (1, 1));
    place.settled();
}
