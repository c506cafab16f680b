//! Every No is on the record, and has a way on that can be taken as it is written.

use std::thread;

use serde_json::{Value, json};

use crate::order::{ORDER, assert_refused, serve};
use crate::support::{Gateway, Place, eventually};

fn step(gateway: &Gateway, args: Value) -> Value {
    gateway.call("step", &args.to_string()).1
}

fn ordered(gateway: &Gateway, order: &str) -> Value {
    let inputs = json!({ "item": "latte", "order": order });
    let ordered = step(gateway, json!({ "action": "take_order", "inputs": inputs }));
    assert_eq!(ordered["status"], "success", "{ordered}");
    ordered["data"]["session"].clone()
}

fn pay(session: &Value, amount: u32) -> Value {
    json!({ "action": "pay", "inputs": { "amount": amount }, "session": session })
}

/// Does what a recovery says, with what it says is missing, and nothing else.
fn follow(gateway: &Gateway, no: &Value, given: &Value) -> Value {
    let recovery = &no["error"]["recovery"];
    if let Some(call) = recovery["call"].as_object() {
        let tool = call["tool"].as_str().expect("a tool");
        return gateway.call(tool, &call["args"].to_string()).1;
    }
    let template = recovery["template"].as_object().unwrap_or_else(|| panic!("no way on: {no}"));
    let mut args = template["args"].clone();
    for missing in template["missing"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        match missing.strip_prefix("inputs.") {
            Some(input) => args["inputs"][input] = given["inputs"][input].clone(),
            None => args[missing] = given[missing].clone(),
        }
    }
    if args.get("inputs").is_none() {
        // Which action is taken was for the agent to say, and with it what it takes.
        args["inputs"] = given["inputs"].clone();
    }
    gateway.call(template["tool"].as_str().expect("a tool"), &args.to_string()).1
}

#[test]
fn each_no_is_recorded_and_its_recovery_can_be_done() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let order = |order: &str| json!({ "action": "take_order", "inputs": { "item": "latte", "order": order } });
    let begin = ["drop_order", "take_order"];
    let kinds = |session: &Value| -> Vec<Value> {
        let id = session.as_str().unwrap_or_else(|| panic!("{session}"));
        let (_, said) = place.amends(&["walk", id, "history", "--json"]);
        let history: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
        history["moves"].as_array().expect("moves").iter().map(|entry| entry["refused"].clone()).collect()
    };

    for (wish, kind) in [
        (json!({ "action": "pay", "inputs": { "amount": 5 } }), "invalid_transition"),
        (json!({ "action": "tak_order", "inputs": {} }), "unknown_action"),
        (json!({ "action": "take_order", "inputs": { "item": 5, "order": "ord_1" } }), "validation_failed"),
    ] {
        let no = step(&gateway, wish);
        assert_refused(&no, kind, &begin);
        let taken = follow(&gateway, &no, &order("ord_1"));
        assert_eq!((&taken["data"]["state"]["name"], &taken["data"]["seq"]), (&json!("ordered"), &json!(1)), "{taken}");
        assert_eq!(taken["data"]["session"], no["session"], "it goes on in the same walk");
        assert_eq!(kinds(&no["session"]), [json!(kind), Value::Null]);
    }

    let session = ordered(&gateway, "ord_2");
    let mut stale = pay(&session, 5);
    stale["expect_seq"] = json!(7);
    let stale = step(&gateway, stale);
    assert_refused(&stale, "stale_state", &["drop_order", "pay"]);
    assert_eq!(follow(&gateway, &stale, &Value::Null)["data"]["seq"], 1);
    let keyed = |amount| gateway.call_with("step", &[("Idempotency-Key", "one")], &pay(&session, amount).to_string()).1;
    assert_eq!(keyed(5)["status"], "success");
    let duplicate = keyed(6);
    assert_refused(&duplicate, "duplicate", &["hand_over"]);
    assert_eq!(follow(&gateway, &duplicate, &Value::Null)["data"]["state"], "paid");
    step(&gateway, json!({ "action": "hand_over", "session": session }));
    let over = step(&gateway, pay(&session, 5));
    assert_refused(&over, "invalid_transition", &[]);
    assert_eq!(follow(&gateway, &over, &Value::Null)["data"]["state"]["name"], "created");
    let recorded = kinds(&session);
    for kind in ["stale_state", "duplicate", "invalid_transition"] {
        assert!(recorded.contains(&json!(kind)), "{kind}: {recorded:?}");
    }

    let session = ordered(&gateway, "ord_slow");
    thread::scope(|scope| {
        let paying = scope.spawn(|| step(&gateway, pay(&session, 5)));
        eventually("the charge arrived", || place.effects_on("charge_card", "ord_slow") == 1);
        let busy = step(&gateway, json!({ "action": "drop_order", "session": session }));
        assert_refused(&busy, "in_flight", &[]);
        assert_eq!(follow(&gateway, &busy, &Value::Null)["data"]["waits"]["action"], "pay");
        assert_eq!(paying.join().expect("a call")["status"], "success");
    });
    assert!(kinds(&session).contains(&json!("in_flight")));

    for (order, kind) in [("ord_forbidden", "action_error"), ("ord_lost", "action_timeout")] {
        let session = ordered(&gateway, order);
        let no = step(&gateway, pay(&session, 5));
        assert_eq!((&no["status"], &no["error"]["kind"]), (&json!("error"), &json!(kind)), "{no}");
        let seen = follow(&gateway, &no, &Value::Null);
        assert_eq!((&seen["status"], &seen["data"]["state"]), (&json!("success"), &json!("ordered")), "{seen}");
        assert_eq!(place.requests_on("charge_card", order), 1, "no recovery invites to do it again");
    }
    let ended = place.events_named("move_ended");
    assert!(ended.iter().any(|event| event["outcome"] == "exhausted"), "{ended:?}");
    assert!(ended.iter().any(|event| event["certainty"] == "in_doubt"), "{ended:?}");
}

#[test]
fn what_is_to_be_taken_later_is_not_taken_earlier_after_a_crash() {
    let later = "timeout = \"3s\"\nresolution = \"retry_later\"\nlater = \"1h\"\n";
    let machine = ORDER.replace("timeout = \"3s\"\n", later);
    let place = Place::new();
    let mut gateway = serve(&place, &machine);
    let session = ordered(&gateway, "ord_forbidden");
    let failed = step(&gateway, pay(&session, 5));
    assert_eq!((&failed["status"], &failed["error"]["kind"]), (&json!("error"), &json!("retry_later")), "{failed}");
    let until = failed["error"]["recovery"]["not_before"].as_u64().unwrap_or_else(|| panic!("{failed}"));
    gateway.kill();
    let gateway = serve(&place, &machine);
    let early = step(&gateway, pay(&session, 5));
    assert_refused(&early, "retry_later", &["drop_order"]);
    assert_eq!(early["error"]["recovery"]["not_before"], until, "{early}");
    let seen = follow(&gateway, &early, &Value::Null);
    assert_eq!(seen["data"]["waits"], json!({ "for": "later", "action": "pay", "not_before": until }), "{seen}");
    assert_eq!(place.requests_on("charge_card", "ord_forbidden"), 1);
}

#[test]
fn a_move_that_is_stopped_stays_where_it_was_and_what_was_sent_is_not_sent_again() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let session = ordered(&gateway, "ord_slow");
    thread::scope(|scope| {
        let paying = scope.spawn(|| step(&gateway, pay(&session, 5)));
        eventually("the charge arrived", || place.effects_on("charge_card", "ord_slow") == 1);
        let (_, stopped) = gateway.call("cancel", &json!({ "session": session }).to_string());
        assert_eq!(
            (&stopped["status"], &stopped["data"]["action"]),
            (&json!("success"), &json!("cancel")),
            "{stopped}"
        );
        let told = paying.join().expect("a call");
        assert_eq!((&told["status"], &told["error"]["certainty"]), (&json!("error"), &json!("in_doubt")), "{told}");
        assert_eq!((&told["state"]["name"], &told["seq"]), (&json!("ordered"), &json!(1)), "{told}");
        assert_eq!(follow(&gateway, &told, &Value::Null)["data"]["waits"]["action"], "pay", "{told}");
    });
    let idle = ordered(&gateway, "ord_idle");
    let (_, nothing) = gateway.call("cancel", &json!({ "session": idle }).to_string());
    assert_eq!(nothing["data"]["valid_next_actions"], json!(["drop_order", "pay"]), "{nothing}");
    assert_eq!(place.requests_on("charge_card", "ord_slow"), 1);
}

#[test]
fn a_fork_tells_what_was_done_after_its_point_and_what_a_crash_left_in_doubt() {
    let place = Place::new();
    let mut gateway = serve(&place, ORDER);
    let fork = |gateway: &Gateway, session: &Value, seq: u64| {
        let forked = gateway.call("fork", &json!({ "session": session, "seq": seq }).to_string()).1;
        assert_eq!(forked["status"], "success", "{forked}");
        forked["data"].clone()
    };
    let paid = ordered(&gateway, "ord_1");
    let harmless = fork(&gateway, &paid, 0);
    assert_eq!(harmless["result"], json!({ "forked_from": paid, "seq": 0 }), "{harmless}");
    assert_eq!((&harmless["state"]["name"], &harmless["state"]["fields"]), (&json!("created"), &json!({})));
    assert_eq!(step(&gateway, pay(&paid, 5))["status"], "success");
    let done = fork(&gateway, &paid, 1);
    assert_eq!(done["result"]["since_then"], json!([{ "action": "pay", "seq": 2, "became": "done" }]), "{done}");
    assert_eq!(done["state"]["fields"], json!({ "item": "latte", "order": "ord_1" }), "exactly as it was: {done}");

    let lost = ordered(&gateway, "ord_slow");
    let waits = gateway.begin("step", &pay(&lost, 5).to_string());
    eventually("the charge arrived", || place.effects_on("charge_card", "ord_slow") == 1);
    gateway.kill();
    drop(waits);
    let gateway = serve(&place, ORDER);
    eventually("the walk is taken up", || !place.events_named("resumed").is_empty());
    let forked = fork(&gateway, &lost, 1);
    assert_eq!(forked["result"]["since_then"], json!([{ "action": "pay", "became": "in_doubt" }]), "{forked}");
    assert!(forked["result"]["warning"].as_str().is_some_and(|words| words.contains("does it again")), "{forked}");
    assert_eq!(place.requests_on("charge_card", "ord_slow"), 1, "a fork does nothing");
    let other = step(&gateway, json!({ "action": "drop_order", "session": lost }));
    assert_eq!(other["error"]["kind"], "in_flight", "{other}");
}

#[test]
fn a_read_of_a_machine_is_recorded_before_it_is_sent() {
    let look = "[machines.order.actions.look]\nfrom = [\"ordered\"]\nto = \"ordered\"\ntimes = 3\ntool = \"get_order\"\nargs = { order = \"state.order\" }\n";
    let place = Place::new();
    let gateway = serve(&place, &format!("{ORDER}\n{look}"));
    let session = ordered(&gateway, "ord_1");
    let id = session.as_str().expect("a handle").to_owned();
    let recorded = || {
        let ledger = rusqlite::Connection::open(place.path("amends.db")).expect("the ledger is there");
        let query = "SELECT count(*) FROM events WHERE session = ?1 AND kind = 'attempt_started'";
        ledger.query_row(query, [&id], |row| row.get::<_, i64>(0)).expect("a number")
    };
    place.write("slow", "1500");
    thread::scope(|scope| {
        let looking = scope.spawn(|| step(&gateway, json!({ "action": "look", "session": session })));
        eventually("it arrived", || place.requests_on("get_order", "ord_1") == 1);
        assert_eq!(recorded(), 1, "what a machine does is on the ledger first");
        assert_eq!(looking.join().expect("a call")["status"], "success");
    });
    place.write("slow", "0");
}

#[test]
fn a_large_state_is_told_once_in_an_answer() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let session = ordered(&gateway, &"x".repeat(900 << 10));
    let no = step(&gateway, json!({ "action": "hand_over", "session": session }));
    assert_refused(&no, "invalid_transition", &["drop_order", "pay"]);
    let client = crate::bare::Bare::stateless(&gateway);
    let dropped = client.call("step", json!({ "action": "drop_order", "session": session }));
    assert_eq!(dropped["structuredContent"]["data"]["state"]["name"], "dropped");
    let (whole, state) = (dropped.to_string().len(), 900 << 10);
    assert!(whole < state + (16 << 10), "{whole} bytes for a state of {state}");
}
