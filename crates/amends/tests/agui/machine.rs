//! Runs through a machine: the walk is the thread's, and goes on in its next run.

use std::process::Command;

use serde_json::{Value, json};

use crate::agent::{Agent, asked, envelope, last, outcome, results, statuses};
use crate::support::{AMENDS, Gateway, Place, eventually};

/// An order whose payment needs a yes, of the move itself or of the call it makes.
fn order(of_the_move: bool) -> String {
    order_asking(of_the_move, true)
}

/// The same, with whether whoever calls may say it.
fn order_asking(of_the_move: bool, requester: bool) -> String {
    let (action, tool) = match of_the_move {
        true => ("queue = \"money\"", ""),
        false => ("", "approval = \"money\""),
    };
    format!(
        r#"
[queues.money]
requester = {requester}

[tools.charge_card]
effect = "write"
{tool}

[machines.order]
initial = "created"
terminal = ["paid"]

[machines.order.actions.take_order]
from = ["created"]
to = "ordered"
input = {{ type = "object", properties = {{ order = {{ type = "string" }} }}, required = ["order"] }}
writes = {{ order = "inputs.order" }}

[machines.order.actions.pay]
from = ["ordered"]
to = "paid"
tool = "charge_card"
args = {{ order = "state.order", amount = "inputs.amount" }}
{action}
"#
    )
}

fn serve(place: &Place, machine: &str) -> Gateway {
    let book = place.path("book.db").display().to_string();
    let faults = place.write("faults.toml", "").display().to_string();
    let command = [AMENDS, "shop", "--book", &book, "--faults", &faults];
    let text = format!(
        "[ledger]\nurl = \"{}\"\n[listen]\nhttp = \"127.0.0.1:0\"\n\
         [upstreams.shop]\ncommand = {command:?}\nprefix = \"\"\n{machine}",
        place.ledger()
    );
    let config = place.write("serve.toml", &text);
    let mut serve = Command::new(AMENDS);
    serve.arg("serve").arg("--config").arg(config);
    let gateway = Gateway::listening(serve);
    eventually("the shop's tools are served", || {
        gateway.call("get_order", r#"{"order":"ord_ready"}"#).1["status"] == "success"
    });
    gateway
}

fn walk(went: &Value) -> &Value {
    &went["state"]["amends"]["walk"]
}

fn take(order: &str) -> Value {
    json!({ "action": "take_order", "inputs": { "order": order } })
}

fn pay() -> Value {
    json!({ "action": "pay", "inputs": { "amount": 5 } })
}

#[test]
fn a_walk_is_the_threads_own_and_goes_on_in_its_next_run() {
    let place = Place::new();
    let gateway = serve(&place, &order(true));
    let mut agent = Agent::of(&gateway);
    // A run without moves shows where the walk would begin.
    let went = agent.moves("t", "order", json!([]));
    assert_eq!((outcome(&went), &walk(&went)["valid_next_actions"]), ("success", &json!(["take_order"])), "{went:#}");
    let went = agent.moves("t", "order", json!([take("ord_1")]));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done"]), "{went:#}");
    assert_eq!(walk(&went)["state"]["name"], "ordered", "{went:#}");
    let session = walk(&went)["session"].clone();
    assert!(session.is_string(), "{went:#}");
    // Another thread, another walk; and a move that is not legal there is a result with those that are.
    let went = agent.moves("u", "order", json!([pay(), take("ord_2")]));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["failed", "pending"]), "{went:#}");
    let said = envelope(results(&went)[0]);
    assert_eq!(
        (&said["error"]["kind"], &said["valid_next_actions"]),
        (&json!("invalid_transition"), &json!(["take_order"]))
    );
    let went = agent.moves("t", "order", json!([]));
    assert_eq!((&walk(&went)["session"], &walk(&went)["state"]["fields"]), (&session, &json!({ "order": "ord_1" })));
    assert_eq!(went["status"], 200);
    let unknown = agent.moves("t", "ordr", json!([]));
    assert_eq!(
        (&unknown["status"], &unknown["refused"]["error"]["kind"]),
        (&json!(422), &json!("validation_failed")),
        "{unknown:#}"
    );
}

#[test]
fn a_move_that_needs_a_yes_ends_the_run_and_is_made_once_after_it() {
    for of_the_move in [true, false] {
        let place = Place::new();
        let gateway = serve(&place, &order(of_the_move));
        let mut agent = Agent::of(&gateway);
        let went = agent.moves("t", "order", json!([take("ord_1"), pay()]));
        assert_eq!(statuses(&went), ["done", "waiting"], "{of_the_move}: {went:#}");
        assert_eq!(place.requests("charge_card"), 0);
        let went = agent.resume("t", &asked(&went), json!({ "approved": true }));
        assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done", "done"]), "{of_the_move}: {went:#}");
        assert_eq!((&walk(&went)["state"]["name"], &walk(&went)["over"]), (&json!("paid"), &json!(true)), "{went:#}");
        assert_eq!((place.requests("charge_card"), place.effects("charge_card")), (1, 1), "{of_the_move}");
        // A no leaves the walk where it is.
        let went = agent.moves("u", "order", json!([take("ord_2"), pay()]));
        let went = agent.resume("u", &asked(&went), json!({ "choice": "deny" }));
        assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done", "failed"]), "{of_the_move}: {went:#}");
        assert_eq!(walk(&went)["state"]["name"], "ordered", "{of_the_move}: {went:#}");
        assert_eq!(place.effects("charge_card"), 1);
        place.settled();
    }
}

#[test]
fn a_move_that_waits_goes_on_after_the_gateway_was_killed() {
    for of_the_move in [true, false] {
        let place = Place::new();
        let mut gateway = serve(&place, &order(of_the_move));
        let mut agent = Agent::of(&gateway);
        let went = agent.moves("t", "order", json!([take("ord_1"), pay()]));
        let id = asked(&went);
        gateway.kill();
        drop(agent);
        let gateway = serve(&place, &order(of_the_move));
        let mut agent = Agent::of(&gateway);
        let resume = json!([{ "interruptId": id, "status": "resolved", "payload": { "approved": true } }]);
        let went = agent.run(json!({ "thread": "t", "state": went["state"], "resume": resume }));
        assert_eq!(last(&went)["type"], "RUN_FINISHED", "{of_the_move}: {went:#}");
        assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done", "done"]), "{of_the_move}: {went:#}");
        assert_eq!((place.requests("charge_card"), place.effects("charge_card")), (1, 1), "{of_the_move}");
        place.settled();
    }
}

#[test]
fn a_yes_of_whoever_moves_does_not_count_where_others_are_asked() {
    for of_the_move in [true, false] {
        let place = Place::new();
        let gateway = serve(&place, &order_asking(of_the_move, false));
        let mut agent = Agent::of(&gateway);
        let id = asked(&agent.moves("t", "order", json!([take("ord_1"), pay()])));
        let went = agent.resume("t", &id, json!({ "approved": true }));
        assert_eq!(asked(&went), id, "{of_the_move}: {went:#}");
        assert_eq!(place.requests("charge_card"), 0, "{of_the_move}");
        let (code, said) = place.amends(&["answer", &id, "approve", "--by", "ada"]);
        assert_eq!(code, 0, "{said}");
        let went = agent.resume("t", &id, Value::Null);
        assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done", "done"]), "{of_the_move}: {went:#}");
        assert_eq!((place.requests("charge_card"), place.effects("charge_card")), (1, 1), "{of_the_move}");
        place.settled();
    }
}
