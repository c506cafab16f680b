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
fn a_fork_is_compared_with_its_walk_from_where_it_begins_and_by_its_fields_too() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let client = Bare::stateless(&gateway);
    let walk = ordered(&client, "latte");
    let fork = client.call("fork", json!({ "session": walk }))["structuredContent"]["data"]["session"].clone();
    let fork = fork.as_str().expect("a handle");
    let diff = || {
        let (code, said) = place.amends(&["walk", "diff", &walk, fork, "--json"]);
        let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        assert_eq!(said["shared"], 1, "{said}");
        (code, said["first_difference"].clone())
    };
    assert_eq!(diff(), (0, Value::Null), "nothing was done in either since");
    for session in [walk.as_str(), fork] {
        client.call("step", json!({ "action": "pay", "inputs": { "amount": 5 }, "session": session }));
    }
    assert_eq!(diff(), (1, json!({ "move": 2, "what": "fields" })), "each has a charge of its own");
    let (_, text) = place.amends(&["walk", "diff", &walk, fork]);
    assert!(text.contains("until move 1 they are one walk") && text.contains("ch_"), "{text}");
}

#[test]
fn every_machine_is_drawn_where_none_is_named() {
    let place = Place::new();
    let other = "[machines.other]\ninitial = \"new\"\nterminal = [\"old\"]\n[machines.other.actions.age]\nfrom = [\"new\"]\nto = \"old\"\n";
    let config = place.write("two.toml", &format!("{ORDER}\n{other}"));
    let config = config.display().to_string();
    let drawn = |how: &[&str]| {
        let output =
            Command::new(AMENDS).args(["machine", "graph", "--config", &config]).args(how).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = drawn(&[]);
    assert!(text.contains("order:\n") && text.contains("other:\n"), "{text}");
    let svg = drawn(&["--svg"]);
    assert_eq!((svg.matches("<svg").count(), svg.matches("</svg>").count()), (3, 3), "{svg}");
    assert_eq!(drawn(&["--dot"]).matches("digraph").count(), 2);
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
