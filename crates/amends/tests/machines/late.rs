//! Results that come when the time of their move, or of their call, is over.

use serde_json::{Value, json};

use crate::order::{assert_legal, assert_refused};
use crate::support::{Gateway, Place, eventually};
use crate::till::{
    SALE, answered, done, forbidden, holds, lets_go, look, named, queue, says, serve, serve_with, signal, take,
};

/// Has a payment taken that nobody answers in time.
fn doubted(gateway: &Gateway, order: &str) -> (Value, Value) {
    let session = named(gateway, order);
    let late = take(gateway, &session, "pay");
    let told = (&late["error"]["kind"], &late["error"]["certainty"], &late["timeout_ms"]);
    assert_eq!(told, (&json!("action_timeout"), &json!("in_doubt"), &json!(1_500)), "{late}");
    assert_legal(&late, &[]);
    (session, late)
}

#[test]
fn a_result_that_comes_late_is_recorded_and_settles_its_move_and_the_agent_makes_it() {
    for crash in [false, true] {
        let place = Place::new();
        let mut gateway = serve(&place, SALE);
        let (session, late) = doubted(&gateway, "o1");
        assert_eq!(
            late["waits"],
            json!({ "for": "unsettled", "action": "pay", "done": false, "asked": true }),
            "{late}"
        );
        assert_eq!(queue(&place).len(), 1, "a person is asked, as the contract of `take` has it");
        for action in ["leave", "pay"] {
            let held = take(&gateway, &session, action);
            assert_refused(&held, "in_flight", &[]);
            assert!(
                held["error"]["message"].as_str().is_some_and(|words| words.contains("a person is asked")),
                "{held}"
            );
        }

        says(&place, "take", "o1", &json!({ "result": { "id": "t_7" } }));
        eventually("its result is recorded", || place.events_named("late_result").len() == 1);
        let event = &place.events_named("late_result")[0];
        assert_eq!(
            (&event["report"]["certainty"], &event["attempt"]["n"]),
            (&json!("processed"), &json!(1)),
            "{event}"
        );
        eventually("nobody is asked any more", || queue(&place).is_empty());
        assert_eq!(place.events_named("doubt_resolved").len(), 1);
        if crash {
            gateway.kill();
            gateway = serve(&place, SALE);
        }
        let seen = look(&gateway, &session, "state");
        assert_eq!(
            (&seen["state"]["name"], &seen["seq"]),
            (&json!("named"), &json!(1)),
            "it moves with its agent: {seen}"
        );
        assert_eq!(seen["waits"], json!({ "for": "unsettled", "action": "pay", "done": true }), "{seen}");
        assert_eq!(place.events_named("move_made").len(), 1, "the name of the order, and nothing else");
        let other = take(&gateway, &session, "leave");
        assert_refused(&other, "in_flight", &["pay"]);
        let words = other["error"]["message"].as_str().unwrap_or_default();
        assert!(words.contains("take it again with the same inputs"), "{words}");

        let paid = take(&gateway, &session, "pay");
        assert_eq!((&paid["status"], &paid["data"]["state"]["name"]), (&json!("success"), &json!("paid")), "{paid}");
        assert_eq!(paid["data"]["state"]["fields"]["charge"], "t_7", "what it gave late is what is written: {paid}");
        assert_eq!((&paid["data"]["result"]["id"], &paid["data"]["seq"]), (&json!("t_7"), &json!(2)), "{paid}");
        assert_eq!(done(&place).len(), 1, "it was taken once");
        place.settled();
    }
}

#[test]
fn a_no_that_comes_late_shows_that_nothing_was_done_and_the_walk_is_free() {
    let place = Place::new();
    let gateway = serve(&place, SALE);
    let (session, _) = doubted(&gateway, "o1");
    says(&place, "take", "o1", &forbidden());
    eventually("nobody is asked any more", || queue(&place).is_empty());
    let resolved = &place.events_named("doubt_resolved")[0];
    assert_eq!(resolved["certainty"], "not_processed", "{resolved}");
    let next = look(&gateway, &session, "next");
    assert_eq!((&next["waits"], &next["state"]), (&Value::Null, &json!("named")), "{next}");
    assert_legal(&next, &["leave", "pay"]);
    says(&place, "take", "o1", &json!({ "result": { "id": "t_8" } }));
    let paid = take(&gateway, &session, "pay");
    assert_eq!(paid["data"]["state"]["fields"]["charge"], "t_8", "{paid}");
    assert_eq!(done(&place).len(), 2, "it was sent anew, since nothing was done before");
    place.settled();
}

#[test]
fn a_result_that_says_nothing_about_what_was_done_settles_nothing() {
    let place = Place::new();
    let gateway = serve(&place, SALE);
    let (session, _) = doubted(&gateway, "o1");
    says(&place, "take", "o1", &json!({ "error": { "status": 500, "title": "something broke" } }));
    eventually("its result is recorded", || place.events_named("late_result").len() == 1);
    let held = take(&gateway, &session, "leave");
    assert_refused(&held, "in_flight", &[]);
    let asked = queue(&place);
    assert_eq!((asked.len(), place.events_named("doubt_resolved").len()), (1, 0), "{asked:?}");
    let id = asked[0]["id"].as_str().expect("a question has an id");
    assert_eq!(place.amends(&["answer", id, "did_not_happen", "--by", "ada"]).0, 0);
    eventually("the walk is free", || look(&gateway, &session, "next")["waits"].is_null());
    assert_eq!(take(&gateway, &session, "leave")["data"]["state"]["name"], "left");
    place.settled();
}

#[test]
fn a_person_and_a_late_result_that_cross_settle_a_move_once() {
    let place = Place::new();
    let gateway = serve(&place, SALE);
    let (session, late) = doubted(&gateway, "o1");
    let asked = late["error"]["interaction"].as_str().map(str::to_owned);
    let asked = asked.or_else(|| queue(&place)[0]["id"].as_str().map(str::to_owned)).expect("a question");
    // Both are there before the gateway hears of either.
    signal(&gateway, "-STOP");
    says(&place, "take", "o1", &json!({ "result": { "id": "t_7" } }));
    eventually("its result is on the way", || answered(&place, "take"));
    let (code, said) = place.amends(&["answer", &asked, "happened", "--by", "ada"]);
    signal(&gateway, "-CONT");
    assert_eq!(code, 0, "{said}");
    eventually("it is settled", || look(&gateway, &session, "next")["waits"]["done"] == true);
    eventually("the result is recorded too", || place.events_named("late_result").len() == 1);
    assert_eq!(place.events_named("doubt_resolved").len(), 1);
    let paid = take(&gateway, &session, "pay");
    assert_eq!((&paid["data"]["state"]["name"], &paid["data"]["seq"]), (&json!("paid"), &json!(2)), "{paid}");
    let charge = &paid["data"]["state"]["fields"]["charge"];
    assert!(*charge == "t_7" || *charge == "unknown", "what the result gave, or that a person did not say it: {paid}");
    assert_eq!(done(&place).len(), 1, "nothing is sent again");
    place.settled();
}

/// A till whose answers are waited for only that long.
const HASTY: &str = "timeout = \"1500ms\"\ndeadline = \"4s\"";

#[test]
fn the_repeat_of_a_call_whose_result_came_late_gets_that_result() {
    for crash in [false, true] {
        let place = Place::new();
        let mut gateway = serve_with(&place, HASTY, "");
        let call = |gateway: &Gateway| gateway.call("take", r#"{"order":"o1"}"#).1;
        let lost = call(&gateway);
        assert_eq!((&lost["status"], &lost["error"]["certainty"]), (&json!("error"), &json!("in_doubt")), "{lost}");
        eventually("a person is asked", || queue(&place).len() == 1);
        says(&place, "take", "o1", &json!({ "result": { "id": "t_7" } }));
        eventually("its result settles it", || place.events_named("doubt_resolved").len() == 1);
        assert_eq!(place.events_named("late_result").len(), 1);
        assert!(queue(&place).is_empty(), "nobody is asked any more");
        if crash {
            gateway.kill();
            gateway = serve_with(&place, HASTY, "");
        }
        let again = call(&gateway);
        assert_eq!((&again["status"], &again["replayed"]), (&json!("success"), &json!(true)), "{again}");
        assert_eq!(again["data"]["id"], "t_7", "{again}");
        assert_eq!(done(&place).len(), 1, "it is sent once");
        place.settled();
    }
}

#[test]
fn a_call_whose_result_came_late_can_be_undone() {
    let place = Place::new();
    let gateway = serve_with(&place, HASTY, "");
    holds(&place, "put");
    let lost = gateway.call("put", r#"{"order":"o1"}"#).1;
    assert_eq!(lost["error"]["certainty"], "in_doubt", "{lost}");
    lets_go(&place, "put");
    eventually("its result settles it", || place.events_named("doubt_resolved").len() == 1);
    assert_eq!(place.events_named("reversal_armed").len(), 1);
    let (_, sessions) = place.amends(&["sessions", "--json", "--limit", "1000"]);
    let sessions: Value = serde_json::from_str(&sessions).expect("JSON");
    for _ in 0..2 {
        for row in sessions["sessions"].as_array().expect("a list") {
            // In most of them there is nothing to undo.
            place.amends(&["unwind", row["session"].as_str().expect("an id"), "--json"]);
        }
    }
    let done = done(&place);
    let told: Vec<_> = done.iter().map(|call| (&call["tool"], &call["id"])).collect();
    assert_eq!(told, [(&json!("put"), &Value::Null), (&json!("undo"), &json!("put_1"))], "once, by what it gave late");
    place.settled();
}

#[test]
fn the_repeat_of_a_call_that_a_person_and_its_result_settled_at_once_gets_one_answer() {
    for crash in [false, true] {
        let place = Place::new();
        let mut gateway = serve_with(&place, HASTY, "");
        let call = |gateway: &Gateway| gateway.call("take", r#"{"order":"o1"}"#).1;
        assert_eq!(call(&gateway)["error"]["certainty"], "in_doubt");
        eventually("a person is asked", || queue(&place).len() == 1);
        let asked = queue(&place)[0]["id"].as_str().expect("a question has an id").to_owned();
        signal(&gateway, "-STOP");
        says(&place, "take", "o1", &json!({ "result": { "id": "t_7" } }));
        eventually("its result is on the way", || answered(&place, "take"));
        let (code, said) = place.amends(&["answer", &asked, "happened", "--by", "ada", "--content", r#"{"id":"t_7"}"#]);
        signal(&gateway, "-CONT");
        assert_eq!(code, 0, "{said}");
        eventually("the result is recorded", || place.events_named("late_result").len() == 1);
        eventually("it is settled once", || place.events_named("doubt_resolved").len() == 1);
        if crash {
            gateway.kill();
            gateway = serve_with(&place, HASTY, "");
        }
        let again = call(&gateway);
        // Whichever of the two came first.
        let by_person = again["degradation_reason"] == "settled_by_person";
        assert_eq!(again["status"], if by_person { "degraded" } else { "success" }, "{again}");
        assert_eq!((&again["data"]["id"], &again["replayed"]), (&json!("t_7"), &json!(true)), "{again}");
        assert_eq!((done(&place).len(), place.events_named("doubt_resolved").len()), (1, 1));
        place.settled();
    }
}

/// Something is given that arrives within some seconds, if it does.
const GIFT: &str = r#"
[tools.give]
effect = "write"
settles_within = "5s"

[machines.gift]
initial = "open"
terminal = ["given"]

[machines.gift.actions.give]
from = ["open"]
to = "given"
tool = "give"
timeout = "1s"
writes = { id = "result.id" }
"#;

#[test]
fn what_a_person_said_did_not_happen_and_did_is_not_done_again() {
    let place = Place::new();
    let gateway = serve(&place, GIFT);
    holds(&place, "give");
    let (_, late) = gateway.call("step", r#"{"action":"give"}"#);
    assert_eq!(late["error"]["certainty"], "in_doubt", "{late}");
    let session = late["session"].clone();
    let asked = queue(&place)[0]["id"].as_str().expect("a person is asked").to_owned();
    assert_eq!(place.amends(&["answer", &asked, "did_not_happen", "--by", "ada"]).0, 0);
    eventually("it may still arrive", || look(&gateway, &session, "next")["waits"]["for"] == "later");
    lets_go(&place, "give");
    eventually("it does", || place.events_named("late_result").len() == 1);
    let told =
        |asked: &Value| asked["question"].as_str().is_some_and(|words| words.contains("`give` happened after all"));
    eventually("a person hears of it", || queue(&place).iter().any(told));
    eventually("the walk goes on from it", || take(&gateway, &session, "give")["data"]["state"]["name"] == "given");
    assert_eq!(look(&gateway, &session, "state")["state"]["fields"]["id"], "give_1");
    assert_eq!(done(&place).len(), 1, "it is given once");
    place.settled();
}

/// Something is put into the till, which is locked again however that went.
const LOCKED: &str = r#"
[machines.deposit]
initial = "open"
terminal = ["full"]

[machines.deposit.actions.put]
from = ["open"]
to = "full"
tool = "put"
timeout = "1s"
exit = [{ tool = "burn", as = "lock" }]
"#;

#[test]
fn what_comes_while_its_move_is_cleared_up_after_does_not_make_it() {
    let place = Place::new();
    let gateway = serve(&place, LOCKED);
    holds(&place, "put");
    holds(&place, "burn");
    let late = std::thread::scope(|scope| {
        let late = scope.spawn(|| gateway.call("step", r#"{"action":"put"}"#).1);
        eventually("its time is over", || done(&place).len() == 2);
        lets_go(&place, "put");
        eventually("it was done", || answered(&place, "put"));
        eventually("that is known", || place.events_named("doubt_resolved").len() == 1);
        lets_go(&place, "burn");
        late.join().expect("an answer")
    });
    assert_eq!((&late["status"], &late["error"]["kind"]), (&json!("error"), &json!("action_timeout")), "{late}");
    assert_eq!(late["error"]["certainty"], "processed", "{late}");
    assert_eq!(late["waits"], json!({ "for": "unsettled", "action": "put", "done": true }), "{late}");
    let session = late["session"].clone();
    assert_eq!(look(&gateway, &session, "state")["state"]["name"], "open", "nothing moves behind the agent's back");
    assert_eq!(take(&gateway, &session, "put")["data"]["state"]["name"], "full");
    let tools: Vec<_> = done(&place).iter().map(|call| call["tool"].clone()).collect();
    assert_eq!(tools, ["put", "burn"]);
    place.settled();
}
