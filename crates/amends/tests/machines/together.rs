//! Two processes that walk on one file.

use std::collections::BTreeSet;
use std::thread;

use serde_json::{Value, json};

use crate::order::{ORDER, serve};
use crate::support::{Gateway, Place};

const NOTE: &str = r#"
[machines.order.actions.note]
from = ["ordered"]
to = "ordered"
times = 1000
input = { type = "object", properties = { note = { type = "string" } }, required = ["note"] }
writes = { note = "inputs.note" }
"#;

const WALKS: usize = 3;
const NOTES: usize = 6;
/// How often a wish is handed in that finds the walk busy.
const TRIES_MAX: usize = 500;

/// Takes an action as an agent does that waits where it is told to.
fn takes(gateway: &Gateway, args: &Value) -> Value {
    for _ in 0..TRIES_MAX {
        let (_, said) = gateway.call("step", &args.to_string());
        if said["error"]["kind"] != "in_flight" {
            return said;
        }
        thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("it never was free: {args}");
}

#[test]
fn two_processes_walk_on_one_file_and_what_they_record_holds() {
    let place = Place::new();
    let machine = format!("{ORDER}{NOTE}");
    let (a, b) = (serve(&place, &machine), serve(&place, &machine));
    let began: Vec<Value> = (0..WALKS)
        .map(|n| {
            let inputs = json!({ "item": "latte", "order": format!("ord_{n}") });
            let gateway = if n % 2 == 0 { &a } else { &b };
            takes(gateway, &json!({ "action": "take_order", "inputs": inputs }))["data"]["session"].clone()
        })
        .collect();
    thread::scope(|scope| {
        for session in &began {
            for (name, gateway) in [("a", &a), ("b", &b)] {
                scope.spawn(move || {
                    for n in 0..NOTES {
                        let note = format!("{name}{n}");
                        let inputs = json!({ "note": note });
                        let noted = takes(gateway, &json!({ "action": "note", "inputs": inputs, "session": session }));
                        assert_eq!(noted["data"]["state"]["fields"]["note"], note, "{noted}");
                    }
                });
            }
        }
    });
    thread::scope(|scope| {
        for session in &began {
            for gateway in [&a, &b] {
                let pay = json!({ "action": "pay", "inputs": { "amount": 5 }, "session": session });
                scope.spawn(move || {
                    let paid = takes(gateway, &pay);
                    // Whoever comes second repeats it, or finds it paid.
                    let late = paid["error"]["kind"] == "invalid_transition";
                    assert!(paid["status"] == "success" || late, "{paid}");
                });
            }
        }
    });
    for (n, session) in began.iter().enumerate() {
        for gateway in [&a, &b] {
            let (_, seen) = gateway.call("walk", &json!({ "session": session, "what": "history" }).to_string());
            let moves = seen["data"]["moves"].as_array().unwrap_or_else(|| panic!("{seen}"));
            let made: Vec<u64> = moves.iter().filter_map(|entry| entry["seq"].as_u64()).collect();
            assert_eq!(made, (1..=2 + 2 * NOTES as u64).collect::<Vec<_>>(), "one after the other: {seen}");
            let notes: BTreeSet<&str> = moves
                .iter()
                .filter(|entry| entry["action"] == "note" && entry["seq"].is_u64())
                .filter_map(|entry| entry["inputs"].as_str())
                .collect();
            assert_eq!(notes.len(), 2 * NOTES, "each once: {notes:?}");
        }
        assert_eq!(place.effects_on("charge_card", &format!("ord_{n}")), 1, "paid once");
    }
    place.settled();
    drop((a, b));
    place.assert_verified();
}
