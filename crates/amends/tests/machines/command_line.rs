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

/// A machine that takes notes, begun with that field.
fn notes(name: &str, n: u32) -> String {
    format!(
        "[machines.{name}]\ninitial = \"a\"\nterminal = [\"z\"]\nfields = {{ n = {n} }}\nlimits = {{ loops = 9 }}\n\
         [machines.{name}.actions.note]\nfrom = [\"a\"]\nto = \"a\"\n\
         input = {{ type = \"object\", properties = {{ v = {{ type = \"string\" }} }}, required = [\"v\"] }}\n\
         writes = {{ v = \"inputs.v\" }}\n\
         [machines.{name}.actions.end]\nfrom = [\"a\"]\nto = \"z\"\n"
    )
}

/// What `amends walk diff` says of two walks: its code, what they share, and their first difference.
fn compared(place: &Place, a: &str, b: &str) -> (i32, Value, Value) {
    let (code, said) = place.amends(&["walk", "diff", a, b, "--json"]);
    let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    (code, said["shared"].clone(), said["first_difference"].clone())
}

#[test]
fn runs_are_compared_whole_wherever_they_were_forked() {
    let place = Place::new();
    let gateway = serve(&place, &notes("m", 1));
    let done = |tool: &str, args: Value| {
        let (_, done) = gateway.call(tool, &args.to_string());
        done["data"]["session"].as_str().unwrap_or_else(|| panic!("{done}")).to_owned()
    };
    let note = |walk: &str, text: &str| {
        done("step", json!({ "action": "note", "inputs": { "v": text }, "session": walk }));
    };
    let fork = |walk: &str, seq: u64| done("fork", json!({ "session": walk, "seq": seq }));
    let first = done("step", json!({ "action": "note", "inputs": { "v": "1" } }));
    ["2", "3", "4"].iter().for_each(|text| note(&first, text));
    let (early, late) = (fork(&first, 2), fork(&first, 4));
    [&early, &late].iter().for_each(|walk| note(walk, "x"));
    let differs = |seq: u64, what: &str| json!({ "move": seq, "what": what });
    assert_eq!(compared(&place, &early, &late), (1, json!(2), differs(3, "inputs")), "one has 3 moves, the other 5");
    let (_, text) = place.amends(&["walk", "diff", &early, &late]);
    assert!(
        text.lines().any(|line| line.starts_with("    5  -")),
        "the last move of the longer one is its fifth: {text}"
    );

    let again = fork(&early, 3);
    assert_eq!(compared(&place, &first, &again), (1, json!(2), differs(3, "inputs")), "its grandparent");
    assert_eq!(compared(&place, &early, &again), (0, json!(3), Value::Null));
    note(&again, "y");
    assert_eq!(compared(&place, &early, &again), (1, json!(3), differs(4, "action")));

    let alone = done("step", json!({ "action": "note", "inputs": { "v": "1" } }));
    note(&alone, "2");
    let copy = fork(&first, 2);
    assert_eq!(compared(&place, &alone, &copy), (0, Value::Null, Value::Null), "one began anew, the other is a fork");
    let (_, text) = place.amends(&["walk", "diff", &alone, &copy]);
    assert!(text.contains("they are the same: 2 moves"), "{text}");
}

#[test]
fn walks_of_two_machines_or_from_other_fields_are_not_the_same() {
    let place = Place::new();
    let mut gateway = serve(&place, &format!("{}{}", notes("m", 1), notes("k", 1)));
    let ended = |gateway: &crate::support::Gateway, machine: &str| {
        let (_, done) = gateway.call("step", &json!({ "action": "end", "machine": machine }).to_string());
        done["data"]["session"].as_str().unwrap_or_else(|| panic!("{done}")).to_owned()
    };
    let (m, k, same) = (ended(&gateway, "m"), ended(&gateway, "k"), ended(&gateway, "m"));
    let begins = |what: &str| (1, Value::Null, json!({ "move": 0, "what": what }));
    assert_eq!(compared(&place, &m, &k), begins("machine"));
    assert_eq!(compared(&place, &m, &same), (0, Value::Null, Value::Null));
    let (_, text) = place.amends(&["walk", "diff", &m, &same]);
    assert!(text.contains("they are the same: 1 move\n"), "{text}");
    gateway.kill();
    let gateway = serve(&place, &format!("{}{}", notes("m", 2), notes("k", 1)));
    let other = ended(&gateway, "m");
    assert_eq!(compared(&place, &m, &other), begins("fields"));
    let (_, text) = place.amends(&["walk", "diff", &m, &other]);
    assert!(text.contains("they begin with other fields") && text.contains("{\"n\":2}"), "{text}");
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
