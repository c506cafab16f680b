//! Walks that keep to a declaration whose tools are not served any more: they are moved and read all the same.

use serde_json::{Value, json};

use crate::bare::Bare;
use crate::order::{ORDER, assert_legal, declare, in_tools, serve};
use crate::support::{Gateway, Place};

/// No machine any more.
const NONE: &str = "[tools.get_order]\neffect = \"read\"\n\n[tools.charge_card]\neffect = \"write\"\n";

fn call(gateway: &Gateway, tool: &str, args: Value) -> Value {
    gateway.call(tool, &args.to_string()).1
}

fn ordered(gateway: &Gateway) -> Value {
    let taken = call(gateway, "take_order", json!({ "item": "latte", "order": "ord_1" }));
    assert_eq!(taken["data"]["state"]["name"], "ordered", "{taken}");
    taken["data"]["session"].clone()
}

#[test]
fn actions_that_have_other_names_by_now_are_taken_by_their_old_ones() {
    let place = Place::new();
    let gateway = serve(&place, &in_tools());
    let (one, two) = (ordered(&gateway), ordered(&gateway));
    let renamed =
        in_tools().replace("actions.pay]", "actions.charge]").replace("actions.drop_order]", "actions.forget]");
    declare(&place, &gateway, &renamed);
    let client = Bare::stateful(&gateway);
    assert!(!client.list("tools/list", "tools", "name").contains(&"step".to_owned()), "nobody has need of it yet");
    let next = call(&gateway, "walk", json!({ "session": one }))["data"].clone();
    assert_legal(&next, &["drop_order", "pay"]);
    assert!(client.list("tools/list", "tools", "name").contains(&"step".to_owned()), "old actions are taken with it");
    let paid = call(&gateway, "pay", json!({ "amount": 5, "session": one }));
    assert_eq!(paid["data"]["state"]["name"], "paid", "{paid}");
    let wrong = call(&gateway, "step", json!({ "action": "pay", "inputs": { "amount": -1 }, "session": two }));
    assert_eq!(wrong["error"]["recovery"]["template"]["tool"], "step", "{wrong}");
    let dropped = call(&gateway, "step", json!({ "action": "drop_order", "session": two }));
    assert_eq!(dropped["data"]["state"]["name"], "dropped", "{dropped}");
    place.settled();
}

#[test]
fn a_walk_whose_machine_is_served_otherwise_goes_on_either_way() {
    let place = Place::new();
    let gateway = serve(&place, &in_tools());
    let (one, two) = (ordered(&gateway), ordered(&gateway));
    declare(&place, &gateway, ORDER);
    let paid = call(&gateway, "pay", json!({ "amount": 5, "session": one }));
    assert_eq!(paid["data"]["state"]["name"], "paid", "by the tool it had: {paid}");
    let paid = call(&gateway, "step", json!({ "action": "pay", "inputs": { "amount": 5 }, "session": two }));
    assert_eq!(paid["data"]["state"]["name"], "paid", "{paid}");
}

#[test]
fn a_walk_whose_machine_is_gone_is_moved_and_read() {
    let place = Place::new();
    let mut gateway = serve(&place, &in_tools());
    let (one, two) = (ordered(&gateway), ordered(&gateway));
    gateway.kill();
    let gateway = serve(&place, NONE);
    let client = Bare::stateless(&gateway);
    let uri = format!("amends://{}/state", one.as_str().expect("a handle"));
    let read = client.result("resources/read", json!({ "uri": uri }));
    let text = read["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}"));
    let state: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(state["state"]["name"], "ordered", "{state}");
    let dropped = call(&gateway, "drop_order", json!({ "session": one }));
    assert_eq!(dropped["data"]["state"]["name"], "dropped", "{dropped}");
    let paid = call(&gateway, "step", json!({ "action": "pay", "inputs": { "amount": 5 }, "session": two }));
    assert_eq!(paid["data"]["state"]["name"], "paid", "{paid}");
    let (_, reset) = gateway.call("reset", &json!({ "session": two }).to_string());
    assert_eq!(reset["data"]["state"]["name"], "created", "{reset}");
    place.settled();
}
