//! Moves: taken and refused, in both ways of serving a machine, with real clients of both eras.

use std::io::Read;

use serde_json::{Value, json};

use crate::order::{Agent, Mode, ORDER, assert_legal, assert_refused, in_tools, serve};
use crate::support::client::{Client, Sdk};
use crate::support::{Gateway, Place, eventually, http};

const BEGIN: [&str; 2] = ["drop_order", "take_order"];
const ORDERED: [&str; 2] = ["drop_order", "pay"];

fn machine(mode: Mode) -> String {
    match mode {
        Mode::Step => ORDER.to_owned(),
        Mode::Tools => in_tools(),
    }
}

/// An agent that names its walk where its connection has none.
fn agent(gateway: &Gateway, sdk: Sdk, era: &str, mode: Mode) -> Agent {
    Agent::new(Client::http(sdk, Some(era), &gateway.mcp()), mode, era == "modern")
}

fn latte(order: &str) -> Value {
    json!({ "item": "latte", "order": order })
}

/// The whole way, with every No on it that needs no fault.
fn story(mut agent: Agent, place: &Place) {
    let mode = agent.mode;
    let early = agent.takes("pay", json!({ "amount": 5 }));
    assert_refused(&early, "invalid_transition", &BEGIN);
    assert_eq!((&early["error"]["requested"], &early["seq"]), (&json!("pay"), &json!(0)), "{early}");
    assert!(early["session"].as_str().is_some_and(|session| session.starts_with("ses_")), "{early}");
    assert_eq!(early["state"]["name"], "created");
    if mode == Mode::Step {
        let unknown = agent.takes("take_ordr", json!({}));
        assert_refused(&unknown, "unknown_action", &BEGIN);
        let known = json!(["drop_order", "hand_over", "pay", "take_order"]);
        assert_eq!(unknown["known_actions"], known, "{unknown}");
        assert_eq!(unknown["error"]["recovery"]["fuzzy_matches"][0], "take_order", "{unknown}");
        let cut = agent.calls("step", {
            let (_, mut args) = agent.asks("take_order", json!({}), json!({}));
            args["inputs"] = json!("{\"item\": \"lat");
            args
        });
        assert_refused(&cut, "validation_failed", &BEGIN);
        assert_eq!(cut["error"]["details"][0]["field"], "inputs", "{cut}");
    }
    let wrong = agent.takes("take_order", json!({ "item": 5, "order": "ord_1" }));
    assert_refused(&wrong, "validation_failed", &BEGIN);
    let fault = &wrong["error"]["details"][0];
    assert!(fault["field"].as_str().is_some_and(|field| field.ends_with("item")), "{wrong}");
    assert_eq!((&fault["expected"], &fault["got"]), (&json!("text"), &json!("5")), "{wrong}");
    let tea = agent.takes("take_order", json!({ "item": "tea", "order": "ord_1" }));
    assert_refused(&tea, "invalid_transition", &BEGIN);
    assert!(tea["error"]["message"].as_str().is_some_and(|said| said.contains("inputs.item != 'tea'")), "{tea}");

    let ordered = agent.takes("take_order", latte("ord_1"));
    assert_eq!(ordered["status"], "success", "{ordered}");
    let data = &ordered["data"];
    assert_eq!((&data["action"], &data["seq"]), (&json!("take_order"), &json!(1)), "{ordered}");
    assert_eq!(data["state"], json!({ "machine": "order", "name": "ordered", "fields": latte("ord_1") }), "{ordered}");
    assert_legal(data, &ORDERED);
    assert_eq!(data["next_action_schemas"]["pay"]["required"], json!(["amount"]), "{ordered}");

    let stale = agent.takes_with("pay", json!({ "amount": 5 }), json!({ "expect_seq": 0 }), Value::Null);
    assert_refused(&stale["structuredContent"], "stale_state", &ORDERED);
    let look = &stale["structuredContent"]["error"]["recovery"]["call"];
    assert_eq!(look["tool"], "walk", "{stale}");
    let seen = agent.calls("walk", look["args"].clone());
    assert_eq!(seen["data"]["seq"], 1, "{seen}");

    let meta = json!({ "amends/key": "the-payment" });
    let pay = |agent: &mut Agent, amount: u32, meta: &Value| {
        agent.takes_with("pay", json!({ "amount": amount }), json!({}), meta.clone())["structuredContent"].clone()
    };
    let paid = pay(&mut agent, 5, &meta);
    assert_eq!(paid["status"], "success", "{paid}");
    assert_eq!((&paid["data"]["state"]["name"], &paid["data"]["seq"]), (&json!("paid"), &json!(2)), "{paid}");
    assert!(paid["data"]["result"].to_string().contains("ch_"), "{paid}");
    assert!(paid["data"]["state"]["fields"]["charge"].as_str().is_some_and(|id| id.starts_with("ch_")), "{paid}");
    let again = pay(&mut agent, 5, &meta);
    assert_eq!((&again["status"], &again["replayed"]), (&json!("success"), &json!(true)), "{again}");
    assert_eq!(again["data"]["result"], paid["data"]["result"], "{again}");
    let other = pay(&mut agent, 6, &meta);
    assert_refused(&other, "duplicate", &["hand_over"]);

    let ended = agent.takes("hand_over", json!({}));
    assert_legal(&ended["data"], &[]);
    let hint = ended["data"]["next_hint"].as_str().unwrap_or_default();
    assert!(hint.contains("over") && hint.contains("`reset`"), "{ended}");
    let over = agent.takes("pay", json!({ "amount": 5 }));
    assert_refused(&over, "invalid_transition", &[]);
    let reset = &over["error"]["recovery"]["call"];
    assert_eq!(reset["tool"], "reset", "{over}");
    let fresh = agent.calls("reset", reset["args"].clone());
    assert_eq!(fresh["status"], "success", "{fresh}");
    assert_eq!(fresh["data"]["state"]["name"], "created", "{fresh}");
    assert_legal(&fresh["data"], &BEGIN);
    assert_eq!(place.effects_on("charge_card", "ord_1"), 1, "charged once");
    drop(agent);
    place.settled();
}

#[test]
fn a_move_that_differs_in_a_late_digit_is_another_one() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let mut agent = agent(&gateway, Sdk::Python, "legacy", Mode::Step);
    assert_eq!(agent.takes("take_order", latte("ord_1"))["status"], "success");
    let mut pay = |amount: u64| {
        let meta = json!({ "amends/key": "the-payment" });
        agent.takes_with("pay", json!({ "amount": amount }), json!({}), meta)["structuredContent"].clone()
    };
    let paid = pay(9_007_199_254_740_992);
    assert_eq!(paid["status"], "success", "{paid}");
    assert_refused(&pay(9_007_199_254_740_993), "duplicate", &["hand_over"]);
    assert_eq!(pay(9_007_199_254_740_992)["replayed"], true);
}

#[test]
fn a_walk_with_the_python_sdk_and_a_session() {
    for mode in [Mode::Step, Mode::Tools] {
        let place = Place::new();
        let gateway = serve(&place, &machine(mode));
        story(agent(&gateway, Sdk::Python, "legacy", mode), &place);
    }
}

#[test]
fn a_walk_with_the_python_sdk_and_without_one() {
    for mode in [Mode::Step, Mode::Tools] {
        let place = Place::new();
        let gateway = serve(&place, &machine(mode));
        story(agent(&gateway, Sdk::Python, "modern", mode), &place);
    }
}

#[test]
fn a_walk_with_the_typescript_sdk_and_a_session() {
    for mode in [Mode::Step, Mode::Tools] {
        let place = Place::new();
        let gateway = serve(&place, &machine(mode));
        story(agent(&gateway, Sdk::TypeScript, "legacy", mode), &place);
    }
}

#[test]
fn a_walk_with_the_typescript_sdk_and_without_one() {
    for mode in [Mode::Step, Mode::Tools] {
        let place = Place::new();
        let gateway = serve(&place, &machine(mode));
        story(agent(&gateway, Sdk::TypeScript, "modern", mode), &place);
    }
}

#[test]
fn a_tool_that_says_no_leaves_the_walk_where_it_was() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let mut agent = agent(&gateway, Sdk::Python, "modern", Mode::Step);
    agent.takes("take_order", latte("ord_forbidden"));
    let no = agent.takes_with("pay", json!({ "amount": 5 }), json!({}), Value::Null);
    assert_eq!(no["isError"], true);
    let no = &no["structuredContent"];
    assert_eq!((&no["status"], &no["error"]["kind"]), (&json!("error"), &json!("action_error")), "{no}");
    assert_eq!(no["error"]["code"], "Forbidden", "what failed below keeps its code: {no}");
    assert_legal(no, &ORDERED);
    assert_eq!(no["state"]["name"], "ordered");
    assert_eq!(place.effects("charge_card"), 0);
}

#[test]
fn a_move_in_doubt_stands_in_the_way_of_others_and_is_not_made_again() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let mut agent = agent(&gateway, Sdk::Python, "modern", Mode::Step);
    agent.takes("take_order", latte("ord_lost"));
    let (tool, args) = agent.asks("pay", json!({ "amount": 5 }), json!({}));
    let paying = agent.client.begin_call(&tool, args.clone());
    eventually("the charge arrived at the shop", || place.effects_on("charge_card", "ord_lost") == 1);
    let other = agent.takes("drop_order", json!({}));
    assert_refused(&other, "in_flight", &[]);
    assert_eq!(other["waits"]["action"], "pay", "{other}");
    let lost = agent.client.finish(paying)["result"]["structuredContent"].clone();
    assert_eq!((&lost["status"], &lost["error"]["kind"]), (&json!("error"), &json!("action_timeout")), "{lost}");
    assert_eq!((&lost["error"]["certainty"], &lost["error"]["safe_to_repeat"]), (&json!("in_doubt"), &json!(false)));
    assert_eq!(lost["state"]["name"], "ordered", "{lost}");
    assert_legal(&lost, &[]);
    let other = agent.takes("drop_order", json!({}));
    assert_refused(&other, "in_flight", &[]);
    let again = agent.takes("pay", json!({ "amount": 5 }));
    assert_ne!(again["status"], "success", "{again}");
    assert_eq!(place.effects_on("charge_card", "ord_lost"), 1, "charged once");
    assert_eq!(place.requests_on("charge_card", "ord_lost"), 1, "and asked once");
}

#[test]
fn a_walk_is_anothers_where_its_handle_is_not_one() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let mut agent = agent(&gateway, Sdk::Python, "legacy", Mode::Step);
    let begun = agent.takes_with("take_order", latte("ord_1"), json!({}), Value::Null);
    let walk = begun["_meta"]["amends/receipt"]["trace"].as_str().expect("a receipt").to_owned();
    assert_eq!(Some(&walk), agent.session.as_ref(), "the walk has a trace of its own");
    let read = agent.calls_with("get_order", json!({ "order": "ord_1" }), Value::Null);
    let connection = read["_meta"]["amends/receipt"]["trace"].as_str().expect("a receipt").to_owned();
    assert_ne!(walk, connection);
    for stranger in [connection.as_str(), "ses_00000000000000000000000000", "../../x", "ses_x\u{202e}"] {
        for (tool, args) in [
            ("step", json!({ "action": "pay", "inputs": { "amount": 5 }, "session": stranger })),
            ("walk", json!({ "session": stranger, "what": "state" })),
            ("fork", json!({ "session": stranger })),
            ("reset", json!({ "session": stranger })),
            ("cancel", json!({ "session": stranger })),
        ] {
            let unknown = agent.calls(tool, args);
            let kind = unknown["error"]["kind"].as_str().unwrap_or_default();
            assert!(kind == "unknown_name" || kind == "validation_failed", "{tool} {stranger}: {unknown}");
            assert!(!unknown.to_string().contains("latte"), "{unknown}");
        }
    }
    assert_eq!(place.requests("charge_card"), 0);
}

#[test]
fn another_connection_goes_on_with_a_walk_and_a_fork_goes_back_in_it() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let mut first = agent(&gateway, Sdk::Python, "legacy", Mode::Step);
    first.takes("take_order", latte("ord_1"));
    let mut second = agent(&gateway, Sdk::TypeScript, "modern", Mode::Step);
    second.session = first.session.clone();
    let paid = second.takes("pay", json!({ "amount": 5 }));
    assert_eq!(paid["data"]["seq"], 2, "{paid}");
    let stale = first.takes_with("drop_order", json!({}), json!({ "expect_seq": 1 }), Value::Null);
    assert_refused(&stale["structuredContent"], "stale_state", &["hand_over"]);
    let fork = second.calls("fork", json!({ "session": first.handle(), "seq": 1 }));
    assert_eq!(fork["data"]["state"]["name"], "ordered", "{fork}");
    assert_eq!(fork["data"]["state"]["fields"], latte("ord_1"), "{fork}");
    assert_ne!(fork["data"]["session"], json!(first.handle()));
    let where_it_was = second.calls("walk", json!({ "session": first.handle(), "what": "state" }));
    assert_eq!(where_it_was["data"]["state"]["name"], "paid", "{where_it_was}");
    assert_eq!(place.effects_on("charge_card", "ord_1"), 1, "a fork does nothing again");
}

#[test]
fn a_walk_goes_on_after_the_gateway_was_killed() {
    let place = Place::new();
    let mut gateway = serve(&place, ORDER);
    let mut before = agent(&gateway, Sdk::Python, "modern", Mode::Step);
    before.takes("take_order", latte("ord_1"));
    let walk = before.handle();
    gateway.kill();
    drop(before);
    let gateway = serve(&place, ORDER);
    let mut after = agent(&gateway, Sdk::Python, "modern", Mode::Step);
    after.session = Some(walk);
    let paid = after.takes("pay", json!({ "amount": 5 }));
    assert_eq!((&paid["status"], &paid["data"]["seq"]), (&json!("success"), &json!(2)), "{paid}");
    drop(after);
    place.settled();
}

#[test]
fn a_connection_goes_on_in_its_own_walk_after_the_gateway_was_killed() {
    let place = Place::new();
    let mut gateway = serve(&place, ORDER);
    let greeting = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bare", "version": "1" } } });
    let mut answer = Vec::new();
    let mut greeted = http::send(&gateway.address, "/mcp", &[], greeting.to_string().as_bytes());
    greeted.read_to_end(&mut answer).expect("an answer");
    let head = String::from_utf8_lossy(&answer).to_lowercase();
    let connection = head.split("mcp-session-id: ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let connection = connection.expect("a session").to_owned();
    let step = |gateway: &Gateway, arguments: Value| {
        let params = json!({ "name": "step", "arguments": arguments });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let (_, answer) =
            http::post(&gateway.address, "/mcp", &[("mcp-session-id", connection.as_str())], body.as_bytes());
        answer["result"]["structuredContent"]["data"].clone()
    };
    let ordered = step(&gateway, json!({ "action": "take_order", "inputs": latte("ord_1") }));
    gateway.kill();
    let gateway = serve(&place, ORDER);
    let paid = step(&gateway, json!({ "action": "pay", "inputs": { "amount": 5 } }));
    assert_eq!((&paid["seq"], &paid["session"]), (&json!(2), &ordered["session"]), "{ordered} {paid}");
}

#[test]
fn the_plain_http_door_takes_the_same_moves() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let step = |args: Value| gateway.call("step", &args.to_string());
    let (status, ordered) = step(json!({ "action": "take_order", "inputs": latte("ord_1") }));
    assert_eq!((status, &ordered["data"]["state"]["name"]), (200, &json!("ordered")), "{ordered}");
    let session = ordered["data"]["session"].clone();
    let (status, refused) = step(json!({ "action": "hand_over", "session": session }));
    assert_eq!(status, 422, "{refused}");
    assert_refused(&refused, "invalid_transition", &ORDERED);
    let (_, paid) = step(json!({ "action": "pay", "inputs": { "amount": 5 }, "session": session }));
    assert_eq!(paid["data"]["state"]["name"], "paid", "{paid}");
    let (_, seen) = gateway.call("walk", &json!({ "session": session, "what": "state" }).to_string());
    assert_eq!(seen["data"]["state"]["name"], "paid", "{seen}");
    let (_, alone) = step(json!({ "action": "take_order", "inputs": latte("ord_2") }));
    assert_ne!(alone["data"]["session"], session, "without a handle, each step is a walk of its own");
}
