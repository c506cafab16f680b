//! Whoever lost the answer of its first step knows no walk, and can only wish for the same again: nothing is done twice by that.

use std::thread;

use serde_json::{Value, json};

use crate::order::{assert_legal, assert_refused};
use crate::support::http::post;
use crate::support::{Gateway, Place, eventually};
use crate::till::{done, says, serve, step};

/// Its first action writes.
const BUY: &str = r#"
[machines.buy]
initial = "new"
terminal = ["paid", "left"]

[machines.buy.actions.pay]
from = ["new"]
to = "paid"
tool = "take"
args = { order = "inputs.order" }
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
timeout = "20s"

[machines.buy.actions.leave]
from = ["new"]
to = "left"
"#;

fn pay(order: &str) -> Value {
    json!({ "action": "pay", "inputs": { "order": order } })
}

fn keyed(gateway: &Gateway, key: &str, order: &str) -> Value {
    gateway.call_with("step", &[("Idempotency-Key", key)], &pay(order).to_string()).1
}

fn let_through(place: &Place, order: &str) {
    says(place, "take", order, &json!({ "result": { "id": "t_1" } }));
}

#[test]
fn a_first_step_is_taken_once_for_its_key() {
    let place = Place::new();
    let mut gateway = serve(&place, BUY);
    let (one, two) = thread::scope(|scope| {
        let one = scope.spawn(|| keyed(&gateway, "k1", "o1"));
        eventually("it arrived", || done(&place).len() == 1);
        let two = scope.spawn(|| keyed(&gateway, "k1", "o1"));
        let other = keyed(&gateway, "k1", "o2");
        assert_refused(&other, "duplicate", &[]);
        let_through(&place, "o1");
        (one.join().expect("a call"), two.join().expect("a call"))
    });
    assert_eq!((&one["status"], &two["status"]), (&json!("success"), &json!("success")), "{one} {two}");
    assert_eq!(one["data"]["session"], two["data"]["session"], "it is one walk");
    assert_eq!(two["replayed"], true, "{two}");
    gateway.kill();
    let gateway = serve(&place, BUY);
    let again = keyed(&gateway, "k1", "o1");
    assert_eq!((&again["replayed"], &again["data"]["session"]), (&json!(true), &one["data"]["session"]), "{again}");
    assert_eq!(done(&place).len(), 1, "it is the same wish");
    let another = keyed(&gateway, "k2", "o1");
    assert_eq!(another["status"], "success", "{another}");
    assert_ne!(another["data"]["session"], one["data"]["session"], "another key is another wish");
    assert_eq!(done(&place).len(), 2);
}

#[test]
fn two_processes_that_begin_with_one_key_at_once_open_one_walk() {
    let place = Place::new();
    let gateways = [serve(&place, BUY), serve(&place, BUY)];
    for round in 1..=8 {
        let (key, order) = (format!("k{round}"), format!("o{round}"));
        let_through(&place, &order);
        let told: Vec<Value> = thread::scope(|scope| {
            let one = |n: usize| keyed(&gateways[n % 2], &key, &order);
            let all: Vec<_> = (0..6).map(|n| scope.spawn(move || one(n))).collect();
            all.into_iter().map(|one| one.join().expect("a call")).collect()
        });
        for answer in &told {
            let is = |status: &str| answer["status"] == status;
            assert!(is("success") || (is("refused") && answer["error"]["kind"] == "in_flight"), "{answer}");
        }
        assert!(told.iter().any(|answer| answer["status"] == "success"), "{told:?}");
        assert_eq!(done(&place).len(), round, "it was done once: {told:?}");
    }
    drop(gateways);
    place.assert_verified();
}

#[test]
fn a_first_step_whose_agent_was_cut_off_is_found_by_its_repeat() {
    let place = Place::new();
    let gateway = serve(&place, BUY);
    let lost = gateway.begin("step", &pay("o1").to_string());
    eventually("it arrived", || done(&place).len() == 1);
    drop(lost);
    let (again, other) = thread::scope(|scope| {
        let again = scope.spawn(|| step(&gateway, pay("o1")));
        let other = scope.spawn(|| step(&gateway, pay("o2")));
        eventually("another is another's", || done(&place).len() == 2);
        let_through(&place, "o1");
        let_through(&place, "o2");
        (again.join().expect("a call"), other.join().expect("a call"))
    });
    assert_eq!((&again["status"], &again["replayed"]), (&json!("success"), &json!(true)), "{again}");
    assert_eq!((&other["status"], other.get("replayed")), (&json!("success"), None), "{other}");
    assert_eq!(done(&place).len(), 2, "it was not sent again");
    let next = step(&gateway, pay("o2"));
    assert_eq!((&next["status"], next.get("replayed")), (&json!("success"), None), "{next}");
    assert_ne!(next["data"]["session"], other["data"]["session"], "whoever had its answer begins another walk");
    assert_eq!(done(&place).len(), 3);
}

#[test]
fn a_first_step_that_a_crash_left_in_doubt_is_found_by_its_repeat() {
    let place = Place::new();
    let mut gateway = serve(&place, BUY);
    // Those before it had their answers.
    let_through(&place, "o1");
    for n in 1..=3 {
        assert_eq!(step(&gateway, pay("o1"))["status"], "success");
        eventually("it is done", || done(&place).len() == n);
    }
    std::fs::remove_file(place.path("take-o1.json")).expect("it was there");
    let lost = gateway.begin("step", &pay("o1").to_string());
    eventually("it arrived", || done(&place).len() == 4);
    gateway.kill();
    drop(lost);
    let gateway = serve(&place, BUY);
    let again = step(&gateway, pay("o1"));
    assert_refused(&again, "in_flight", &[]);
    let way = json!({ "tool": "walk", "args": { "session": again["session"], "what": "next" } });
    assert_eq!(again["error"]["recovery"]["call"], way, "{again}");
    assert_eq!(done(&place).len(), 4, "it was not sent again");
}

#[test]
fn moves_that_follow_each_other_quickly_are_each_made() {
    let machine = "[machines.m]\ninitial = \"a\"\nterminal = [\"z\"]\nlimits = { loops = 500 }\n\
                   [machines.m.actions.note]\nfrom = [\"a\"]\nto = \"a\"\n\
                   [machines.m.actions.end]\nfrom = [\"a\"]\nto = \"z\"\n";
    let place = Place::new();
    let gateway = serve(&place, machine);
    let client = crate::bare::Bare::stateful(&gateway);
    for seq in 1..=200 {
        let noted = client.call("step", json!({ "action": "note" }))["structuredContent"].clone();
        assert_eq!((&noted["data"]["seq"], noted.get("replayed")), (&json!(seq), None), "{noted}");
    }
}

#[test]
fn whoever_begins_again_twice_for_one_key_is_told_where_the_walk_is() {
    let place = Place::new();
    let gateway = serve(&place, BUY);
    let session = step(&gateway, json!({ "action": "leave" }))["data"]["session"].clone();
    let args = json!({ "session": session }).to_string();
    let reset = || gateway.call_with("reset", &[("Idempotency-Key", "r1")], &args).1;
    let (one, two) = (reset(), reset());
    assert_eq!((&one["data"]["seq"], one.get("replayed")), (&json!(2), None), "{one}");
    assert_eq!((&two["status"], &two["data"]["seq"], &two["replayed"]), (&json!("success"), &json!(2), &json!(true)));
    assert_eq!(two["data"]["state"]["name"], "new", "{two}");
    assert_legal(&two["data"], &["leave", "pay"]);
}

#[test]
fn a_walk_is_forked_once_for_its_key() {
    let place = Place::new();
    let mut gateway = serve(&place, BUY);
    let session = step(&gateway, json!({ "action": "leave" }))["data"]["session"].clone();
    let fork = |gateway: &Gateway, key: &str, args: Value| {
        let mut named = json!({ "session": session });
        named.as_object_mut().expect("an object").extend(args.as_object().expect("an object").clone());
        gateway.call_with("fork", &[("Idempotency-Key", key)], &named.to_string()).1
    };
    let one = fork(&gateway, "f1", json!({ "seq": 0 }));
    assert_eq!((&one["status"], one.get("replayed")), (&json!("success"), None), "{one}");
    let forked = one["data"]["session"].clone();
    assert_ne!(forked, session);
    let at_once: Vec<Value> = thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| fork(&gateway, "f2", json!({})))).collect();
        all.into_iter().map(|one| one.join().expect("a call")).collect()
    });
    assert!(at_once.iter().all(|two| two["data"]["session"] == at_once[0]["data"]["session"]), "{at_once:?}");
    assert_ne!(at_once[0]["data"]["session"], forked, "another key is another fork");

    // What was done in it since is not lost, and a crash changes nothing.
    let left = step(&gateway, json!({ "action": "leave", "session": forked }));
    assert_eq!(left["data"]["state"]["name"], "left", "{left}");
    gateway.kill();
    let gateway = serve(&place, BUY);
    for args in [json!({ "seq": 0 }), json!({})] {
        let again = fork(&gateway, "f1", args);
        assert_eq!((&again["data"]["session"], &again["replayed"]), (&forked, &json!(true)), "{again}");
        assert_eq!(again["data"]["state"]["name"], "left", "{again}");
        assert_eq!(again["data"]["result"]["seq"], 0, "{again}");
    }
    let other = fork(&gateway, "f1", json!({ "seq": 1 }));
    assert_refused(&other, "duplicate", &[]);

    let (_, one) = sent(&gateway, "m1", "fork", json!({ "session": session, "seq": 0 }));
    let (_, two) = sent(&gateway, "m1", "fork", json!({ "session": session, "seq": 0 }));
    assert!(one["data"]["session"].is_string(), "{one}");
    assert_eq!((&two["data"]["session"], &two["replayed"]), (&one["data"]["session"], &json!(true)), "{two}");
}

/// What a message through A2A is answered.
fn asked(gateway: &Gateway, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    post(&gateway.address, "/a2a", &[("a2a-version", "1.0")], body.to_string().as_bytes()).1
}

/// The state of the task that a message begins, and the envelope.
fn sent(gateway: &Gateway, id: &str, tool: &str, args: Value) -> (Value, Value) {
    let (task, envelope) = sent_as_task(gateway, id, tool, args);
    (task["status"]["state"].clone(), envelope)
}

/// The same with all of the task.
fn sent_as_task(gateway: &Gateway, id: &str, tool: &str, args: Value) -> (Value, Value) {
    let message =
        json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "data": { "tool": tool, "args": args } }] });
    let answer = asked(gateway, "SendMessage", json!({ "message": message }));
    (answer["result"]["task"].clone(), envelope_in(&answer["result"]["task"], &answer))
}

fn envelope_in(task: &Value, answer: &Value) -> Value {
    let said = [&task["status"]["message"], &answer["result"]["message"]];
    let parts = said.into_iter().filter_map(|message| message["parts"].as_array()).flatten();
    let given = task["artifacts"].as_array().into_iter().flatten().flat_map(|one| one["parts"].as_array()).flatten();
    let envelope = parts.chain(given).find(|part| part["data"].is_object()).map(|part| part["data"].clone());
    envelope.unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn a_message_that_begins_a_walk_is_taken_once_and_each_no_to_one_says_what_may_be_done() {
    let place = Place::new();
    let gateway = serve(&place, BUY);
    let_through(&place, "o1");
    let (_, one) = sent(&gateway, "m1", "step", pay("o1"));
    let (_, two) = sent(&gateway, "m1", "step", pay("o1"));
    assert_eq!(one["data"]["session"], two["data"]["session"], "{one} {two}");
    assert_eq!(done(&place).len(), 1);

    let (_, begun) = sent(&gateway, "m2", "step", json!({ "action": "pay", "inputs": {} }));
    let session = begun["session"].clone();
    let cut = json!({ "action": 5, "session": session });
    for (n, (tool, args, kind)) in [
        ("step", json!({ "action": 5 }), "validation_failed"),
        ("step", cut, "validation_failed"),
        ("step", json!([]), "invalid_argument"),
        ("step", json!({ "action": "pay", "session": "../../x" }), "unknown_name"),
        ("reset", json!({}), "validation_failed"),
        ("take", json!({ "order": "o9" }), "invalid_transition"),
        ("stpe", json!({ "action": "pay" }), "unknown_name"),
    ]
    .into_iter()
    .enumerate()
    {
        let (task, no) = sent_as_task(&gateway, &format!("no{n}"), tool, args.clone());
        assert_eq!(task["status"]["state"], "TASK_STATE_REJECTED", "{tool} {args}: {no}");
        let later = asked(&gateway, "GetTask", json!({ "id": task["id"] }))["result"].clone();
        let later = envelope_in(&later, &later);
        assert_refused(&later, kind, &["leave", "pay"]);
        assert_eq!(later["session"], no["session"], "{tool} {args}: {later}");
        assert_refused(&no, kind, &["leave", "pay"]);
        assert_eq!(no["session"] == session, args["session"] == session, "{tool} {args}: {no}");
        let recovery = &no["error"]["recovery"];
        assert!(recovery["call"].is_object() || recovery["template"].is_object(), "no way on: {no}");
        assert_legal(&no, &["leave", "pay"]);
    }
    assert_eq!(done(&place).len(), 1);
}
