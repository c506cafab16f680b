//! What becomes of a move whose agent is gone, or whose gateway was: the same as of any other.

use serde_json::{Value, json};

use crate::order::assert_refused;
use crate::support::{Gateway, Place, eventually};
use crate::till::{SALE, answered, done, forbidden, look, named, queue, says, serve, step, take, tools};

/// Two that can be undone, and a payment that may fail.
const PUTS: &str = r#"
[machines.puts]
initial = "open"
terminal = ["paid"]

[machines.puts.actions.name]
from = ["open"]
to = "named"
tool = "put"
args = { order = "inputs.order" }
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
writes = { order = "inputs.order" }

[machines.puts.actions.more]
from = ["named"]
to = "more"
tool = "put"
args = { order = "state.order" }

[machines.puts.actions.pay]
from = ["more"]
to = "paid"
tool = "take"
args = { order = "state.order" }
timeout = "70s"
resolution = "abort_workflow"
"#;

/// A walk that has come as far as its payment.
fn comes_to_pay(gateway: &Gateway) -> Value {
    let session = named(gateway, "o1");
    let more = take(gateway, &session, "more");
    assert_eq!(more["status"], "success", "{more}");
    session
}

#[test]
fn a_walk_whose_last_action_fails_when_its_agent_is_gone_is_undone_all_the_same() {
    let place = Place::new();
    let gateway = serve(&place, PUTS);
    let session = comes_to_pay(&gateway);
    let connection = gateway.begin("step", &json!({ "action": "pay", "session": session }).to_string());
    eventually("the payment is sent", || tools(&place).last().is_some_and(|tool| tool == "take"));
    drop(connection);
    eventually("its agent is gone", || !place.events_named("cancel_requested").is_empty());
    says(&place, "take", "o1", &forbidden());
    eventually("what was done is undone", || place.events_named("walk_unwound").len() == 1);
    assert_eq!(tools(&place), ["put", "put", "take", "undo", "undo"]);
    let waits = look(&gateway, &session, "next")["waits"].clone();
    assert_eq!(waits, json!({ "for": "given_up", "undone": 2, "not_undone": 0, "left": [] }), "{waits}");
    place.settled();
}

#[test]
fn what_was_undone_before_a_crash_is_counted_and_not_undone_again() {
    let place = Place::new();
    let mut gateway = serve(&place, PUTS);
    says(&place, "take", "o1", &forbidden());
    says(&place, "undo", "", &json!([{ "result": {} }, { "result": {}, "after": "go" }]));
    let session = comes_to_pay(&gateway);
    let failed = take(&gateway, &session, "pay");
    assert_eq!(failed["waits"], json!({ "for": "given_up", "undoing": 2, "not_undone": 0, "left": [] }), "{failed}");
    eventually("the second is being undone", || tools(&place).iter().filter(|tool| *tool == "undo").count() == 2);
    eventually("the first was", || answered(&place, "undo") && place.events_named("reversal_redeemed").len() == 1);
    gateway.kill();
    let gateway = serve(&place, PUTS);
    eventually("the walk is undone", || place.events_named("walk_unwound").len() == 1);
    assert_eq!(place.events_named("walk_unwound")[0]["undone"], 2);
    assert_eq!(
        look(&gateway, &session, "next")["waits"],
        json!({ "for": "given_up", "undone": 2, "not_undone": 0, "left": [] })
    );
    let undone: Vec<Value> =
        done(&place).iter().filter(|call| call["tool"] == "undo").map(|call| call["id"].clone()).collect();
    assert_eq!(undone.iter().filter(|id| **id == json!("put_2")).count(), 1, "{undone:?}");
    place.settled();
}

#[test]
fn an_action_has_the_time_that_it_declares() {
    let place = Place::new();
    let gateway = serve(&place, PUTS);
    let session = comes_to_pay(&gateway);
    let connection = gateway.begin("step", &json!({ "action": "pay", "session": session }).to_string());
    eventually("the payment is sent", || tools(&place).last().is_some_and(|tool| tool == "take"));
    let received = place.events_named("move_received").pop().expect("it was wished for");
    let (at, deadline) = (received["at"].as_u64(), received["deadline"].as_u64());
    let budget_ms = at.zip(deadline).map(|(at, deadline)| deadline - at);
    assert!(budget_ms.is_some_and(|ms| ms >= 70_000), "{received}");
    drop(connection);
}

#[test]
fn what_did_not_happen_so_far_may_be_done_once_it_cannot_happen_any_more() {
    let place = Place::new();
    let gateway = serve(&place, SALE);
    let session = named(&gateway, "o1");
    let late = take(&gateway, &session, "pay");
    assert_eq!(late["error"]["kind"], "action_timeout", "{late}");
    let mut asked = Vec::new();
    eventually("a person is asked", || {
        asked = queue(&place);
        !asked.is_empty()
    });
    let id = asked[0]["id"].as_str().expect("a question has an id");
    let (code, said) = place.amends(&["answer", id, "did_not_happen", "--by", "ada"]);
    assert_eq!(code, 0, "{said}");
    eventually("the walk hears it", || look(&gateway, &session, "next")["waits"]["for"] != "settling");
    let early = take(&gateway, &session, "pay");
    if early["error"]["kind"] == "retry_later" {
        assert_refused(&early, "retry_later", &["leave"]);
        assert!(early["error"]["recovery"]["not_before"].is_u64(), "{early}");
    } else {
        panic!("{early}");
    }
    assert_eq!(tools(&place), ["take"], "it may still be done");
    assert_eq!(look(&gateway, &session, "next")["waits"]["for"], "later");
    let left = step(&gateway, json!({ "action": "leave", "session": session }));
    assert_eq!(left["status"], "success", "{left}");
}
