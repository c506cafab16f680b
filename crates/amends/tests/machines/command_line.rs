//! `amends walk`: what an operator sees of walks.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::bare::Bare;
use crate::order::{ORDER, serve};
use crate::support::{AMENDS, Place};

/// A walk to `ordered`, for that item.
fn ordered(client: &Bare, item: &str) -> String {
    let inputs = json!({ "item": item, "order": "ord_1" });
    let done = client.call("step", json!({ "action": "take_order", "inputs": inputs }));
    done["structuredContent"]["data"]["session"].as_str().unwrap_or_else(|| panic!("{done}")).to_owned()
}

#[test]
fn an_operator_sees_where_a_walk_is_and_what_was_done_in_it() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let client = Bare::stateless(&gateway);
    let walk = ordered(&client, "latte");
    client.call("step", json!({ "action": "hand_over", "session": walk }));
    let said = |arguments: &[&str]| {
        let (code, said) = place.amends(&[&["walk"][..], arguments].concat());
        assert_eq!(code, 0, "{said}");
        said
    };
    let read = |arguments: &[&str]| serde_json::from_str::<Value>(&said(arguments)).expect("JSON");
    let next = read(&[&walk, "--json"]);
    assert_eq!(next["valid_next_actions"], json!(["drop_order", "pay"]), "{next}");
    let state = read(&[&walk, "state", "--json"]);
    assert_eq!((&state["state"]["name"], &state["seq"]), (&json!("ordered"), &json!(1)), "{state}");
    assert_eq!(state["state"]["fields"]["item"], "latte", "{state}");
    let history = read(&[&walk, "history", "--json"]);
    assert_eq!(history["moves"].as_array().map(Vec::len), Some(2), "{history}");
    assert!(said(&[&walk, "history"]).contains("refused: invalid_transition"));
    assert!(said(&[&walk, "graph"]).starts_with("stateDiagram-v2"));
    assert!(said(&[&walk]).contains("pay"));
    let (code, _) = place.amends(&["walk", "ses_unknown"]);
    assert_eq!(code, 2);
}

#[test]
fn two_walks_are_compared_up_to_their_first_difference() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let client = Bare::stateless(&gateway);
    let (a, b, c) = (ordered(&client, "latte"), ordered(&client, "latte"), ordered(&client, "cake"));
    let diff = |a: &str, b: &str| {
        let (code, said) = place.amends(&["walk", "diff", a, b, "--json"]);
        let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        (code, said["first_difference"].clone())
    };
    assert_eq!(diff(&a, &b), (0, Value::Null));
    assert_eq!(diff(&a, &c), (1, json!({ "move": 1, "what": "inputs" })));
    client.call("step", json!({ "action": "drop_order", "session": a }));
    assert_eq!(diff(&a, &b), (1, json!({ "move": 2, "what": "action" })));
    let (_, text) = place.amends(&["walk", "diff", &a, &b]);
    assert!(text.contains("they first differ in the action of move 2"), "{text}");
}

#[test]
fn a_walk_is_followed_as_it_happens() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let client = Bare::stateless(&gateway);
    let walk = ordered(&client, "latte");
    let mut tail = Command::new(AMENDS)
        .args(["walk", "tail", &walk, "--json", "--ledger", &place.ledger()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(tail.stdout.take().expect("its output")).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().expect("a line").expect("text")).expect("JSON");
    assert_eq!(next()["action"], "take_order");
    client.call("step", json!({ "action": "drop_order", "session": walk }));
    assert_eq!(next()["to"], json!(["dropped"]));
    tail.kill().expect("it is ended by its id");
    tail.wait().expect("it ends");
}
