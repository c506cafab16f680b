//! What was done of an action is not done again, whatever an agent does before it takes the action again.

use std::thread;

use serde_json::{Value, json};

use crate::order::assert_refused;
use crate::support::{Place, eventually};
use crate::till::{done, forbidden, holds, lets_go, look, named, queue, says, serve, take, tools};

/// Two writes at the same time, a look around in between, and a payment with a life of its own.
const SHOP: &str = r#"
[machines.shop]
initial = "open"
terminal = ["shut"]
limits = { loops = 20 }

[machines.shop.actions.name]
from = ["open"]
to = "named"
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
writes = { order = "inputs.order" }

[machines.shop.actions.glance]
from = ["named"]
to = "named"

[machines.shop.actions.both]
from = ["named"]
to = "named"
parallel = { a = { tool = "put", args = { order = "state.order" } }, b = { tool = "burn", args = { order = "state.order" } } }

[machines.shop.actions.pay]
from = ["named"]
to = "named"
setup = [{ tool = "look", args = { order = "state.order" }, as = "before" }]
tool = "take"
args = { order = "state.order" }
timeout = "1500ms"
exit = [{ tool = "burn", args = { order = "'exit'" } }]
writes = { charge = "result == null ? 'unknown' : result.id", seen = "setup.before.id" }

[machines.shop.actions.ask]
from = ["named"]
to = "named"
queue = "ops"
timeout = "1s"

[machines.shop.actions.close]
from = ["named"]
to = "shut"
"#;

#[test]
fn the_half_that_was_done_is_not_done_again_after_another_move() {
    let place = Place::new();
    let gateway = serve(&place, SHOP);
    let session = named(&gateway, "o1");
    says(&place, "burn", "o1", &forbidden());
    let half = take(&gateway, &session, "both");
    assert_eq!(half["error"]["kind"], "action_error", "{half}");
    assert!(half["error"]["message"].as_str().is_some_and(|words| words.contains("`a` was done")), "{half}");
    for _ in 0..2 {
        assert_eq!(take(&gateway, &session, "glance")["status"], "success");
    }
    says(&place, "burn", "o1", &json!({ "result": { "id": "b_1" } }));
    let whole = take(&gateway, &session, "both");
    assert_eq!(whole["status"], "success", "{whole}");
    let called = tools(&place);
    let count = |tool: &str| called.iter().filter(|called| *called == tool).count();
    assert_eq!((count("put"), count("burn")), (1, 2), "{called:?}");
    assert_eq!(take(&gateway, &session, "glance")["status"], "success");
    let again = take(&gateway, &session, "both");
    assert_eq!(again["status"], "success", "{again}");
    assert_eq!(tools(&place).iter().filter(|tool| *tool == "put").count(), 2, "it was made, and is wanted once more");
    place.settled();
}

#[test]
fn what_an_upstream_refuses_beside_another_call_is_told_as_its_no() {
    let place = Place::new();
    let gateway = serve(&place, SHOP);
    let session = named(&gateway, "o1");
    says(&place, "burn", "o1", &forbidden());
    holds(&place, "put");
    let half = thread::scope(|scope| {
        let half = scope.spawn(|| take(&gateway, &session, "both"));
        eventually("the one is over", || place.events_named("failure_judged").len() == 1);
        lets_go(&place, "put");
        half.join().expect("a call")
    });
    let message = half["error"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("`both` failed in `b`: The upstream refused it;"), "{half}");
    assert_eq!(half["error"]["code"], "Forbidden", "{half}");
}

#[test]
fn whoever_goes_on_with_a_late_result_looks_at_nothing_again_and_clears_up_nothing_again() {
    for crash in [false, true] {
        let place = Place::new();
        let mut gateway = serve(&place, SHOP);
        let session = named(&gateway, "o1");
        says(&place, "look", "o1", &json!({ "result": { "id": "as it was" } }));
        let late = take(&gateway, &session, "pay");
        assert_eq!(late["error"]["kind"], "action_timeout", "{late}");
        assert_eq!(tools(&place), ["take", "burn"], "it was cleared up after");
        says(&place, "look", "o1", &json!({ "result": { "id": "as it is now" } }));
        says(&place, "take", "o1", &json!({ "result": { "id": "t_7" } }));
        eventually("its result is recorded", || place.events_named("late_result").len() == 1);
        eventually("it is settled", || look(&gateway, &session, "next")["waits"]["done"] == true);
        if crash {
            gateway.kill();
            gateway = serve(&place, SHOP);
        }
        let paid = take(&gateway, &session, "pay");
        let fields = &paid["data"]["state"]["fields"];
        assert_eq!((&fields["charge"], &fields["seen"]), (&json!("t_7"), &json!("as it was")), "{paid}");
        assert_eq!(done(&place).len(), 2, "{:?}", tools(&place));
        place.settled();
    }
}

#[test]
fn a_no_that_comes_after_the_agent_was_told_to_wait_is_what_it_hears() {
    let place = Place::new();
    let gateway = serve(&place, SHOP);
    let session = named(&gateway, "o1");
    let waits = take(&gateway, &session, "ask");
    assert_eq!(waits["error"]["kind"], "awaiting_person", "{waits}");
    let id = queue(&place)[0]["id"].as_str().expect("a question has an id").to_owned();
    assert_eq!(place.amends(&["answer", &id, "deny", "--by", "ada"]).0, 0);
    eventually("the walk hears it", || look(&gateway, &session, "next")["waits"].is_null());
    for _ in 0..2 {
        let no = take(&gateway, &session, "ask");
        assert_refused(&no, "approval_denied", &["ask", "both", "close", "glance", "pay"]);
    }
    assert_eq!(queue(&place), Vec::<Value>::new(), "nobody is asked again");
    assert_eq!(take(&gateway, &session, "glance")["status"], "success");
    assert_eq!(take(&gateway, &session, "ask")["error"]["kind"], "awaiting_person", "the walk has gone on since");
}

#[test]
fn what_undoes_the_work_of_a_machine_is_not_served_beside_it() {
    let place = Place::new();
    let gateway = serve(&place, SHOP);
    let session = named(&gateway, "o1");
    let (_, no) = gateway.call("undo", r#"{"id":"put_1"}"#);
    assert_eq!(no["error"]["kind"], "invalid_transition", "{no}");
    let template = &no["error"]["recovery"]["template"];
    assert_eq!((&template["tool"], &template["missing"]), (&json!("amends_reverse"), &json!(["token"])), "{no}");
    assert!(done(&place).is_empty());
    assert_eq!(take(&gateway, &session, "both")["status"], "success");
}
