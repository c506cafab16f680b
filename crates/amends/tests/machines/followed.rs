//! What a refusal offers is done as it stands, or with what it names filled in: nothing else has to be known.

use serde_json::{Value, json};

use crate::bare::Bare;
use crate::order::{ORDER, assert_legal, assert_refused, in_tools, serve};
use crate::support::{Gateway, Place};

/// Actions whose inputs can be wrong in many ways.
const DESK: &str = r#"
[tools.get_order]
effect = "read"

[machines.desk]
initial = "open"
terminal = ["left"]
limits = { loops = 40 }

[machines.desk.actions.note]
from = ["open"]
to = "open"
input = { type = "object", properties = { item = { type = "string" }, amount = { type = "integer" } } }
guard = "inputs.amount < 100"

[machines.desk.actions.few]
from = ["open"]
to = "open"
input = { type = "object", maxProperties = 2, properties = { a = {}, b = {}, c = {} } }

[machines.desk.actions.either]
from = ["open"]
to = "open"
input = { type = "object", not = { required = ["a", "b"] }, properties = { a = {}, b = {} } }

[machines.desk.actions.spelt]
from = ["open"]
to = "open"
input = { type = "object", propertyNames = { pattern = "^[a-z]+$" } }

[machines.desk.actions.closed]
from = ["open"]
to = "open"
input = { type = "object", properties = { item = { type = "string" }, lines = { type = "array", items = { type = "object", properties = { name = { type = "string" }, count = { type = "integer" } }, required = ["name"], additionalProperties = false } } }, additionalProperties = false }

[machines.desk.actions.leave]
from = ["open"]
to = "left"
"#;

fn call(gateway: &Gateway, tool: &str, args: &Value) -> Value {
    gateway.call(tool, &args.to_string()).1
}

/// Puts a value at a dotted path.
fn put(args: &mut Value, path: &str, value: &Value) {
    let mut place = args;
    for name in path.split('.') {
        place = match name.parse::<usize>() {
            Ok(n) => &mut place[n],
            Err(_) => &mut place[name],
        };
    }
    *place = value.clone();
}

/// Does what an answer offers, with what it names filled in by those values, in their order.
fn follow(gateway: &Gateway, answer: &Value, fill: &[(&str, Value)]) -> Value {
    let recovery = &answer["error"]["recovery"];
    let whole = recovery["call"].is_object();
    let next = if whole { &recovery["call"] } else { &recovery["template"] };
    let missing: Vec<&str> = next["missing"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert_eq!(missing, fill.iter().map(|(path, _)| *path).collect::<Vec<_>>(), "{answer}");
    let mut args = next["args"].clone();
    fill.iter().for_each(|(path, value)| put(&mut args, path, value));
    call(gateway, next["tool"].as_str().unwrap_or_else(|| panic!("no tool: {answer}")), &args)
}

#[test]
fn what_is_offered_after_wrong_inputs_is_taken_as_it_stands() {
    let place = Place::new();
    let gateway = serve(&place, DESK);
    let begun = call(&gateway, "step", &json!({ "action": "few" }));
    let session = begun["data"]["session"].clone();
    let take = |action: &str, inputs: &Value| {
        call(&gateway, "step", &json!({ "action": action, "inputs": inputs, "session": session }))
    };
    for (action, inputs, fill) in [
        ("note", json!({ "item": "tea" }), vec![("inputs.amount", json!(5))]),
        ("note", json!({ "item": "tea", "amount": 500 }), vec![("inputs.amount", json!(5))]),
        ("note", json!({ "item": "tea", "ammount": 5 }), vec![]),
        ("few", json!({ "a": 1, "b": 2, "c": 3 }), vec![("inputs", json!({ "a": 1 }))]),
        ("either", json!({ "a": 1, "b": 2 }), vec![("inputs", json!({ "b": 1 }))]),
        ("spelt", json!({ "ok": 1, "N.O": 2 }), vec![]),
        ("closed", json!({ "item": "x", "a.b": 2 }), vec![("inputs.lines", json!([]))]),
        (
            "closed",
            json!({ "item": "x", "lines": [{ "name": "y", "count": "two" }] }),
            vec![("inputs.lines.0.count", json!(2))],
        ),
        ("closed", json!({ "lines": [{ "name": "y", "hue": 1 }] }), vec![("inputs.lines.0.count", json!(2))]),
        ("nte", json!({ "item": "tea", "amount": 5 }), vec![]),
        ("closd", json!({ "item": "tea", "lines": 5 }), vec![("inputs.lines", json!([]))]),
    ] {
        let no = take(action, &inputs);
        assert_eq!(no["status"], "refused", "{action} {inputs}: {no}");
        let done = follow(&gateway, &no, &fill);
        assert_eq!(done["status"], "success", "{action} {inputs}: {no} led to {done}");
        assert_eq!(done["data"]["session"], session, "{done}");
    }
    // What is right is kept: another item would be another move.
    let no = take("note", &json!({ "item": "tea", "amount": 500 }));
    assert_eq!(no["error"]["recovery"]["template"]["args"]["inputs"], json!({ "item": "tea" }), "{no}");
    let missing = take("closed", &json!({ "lines": [{}] }));
    assert_eq!(missing["error"]["details"][0]["got"], "nothing", "{missing}");
}

#[test]
fn a_tool_that_only_machines_call_says_what_may_be_done_in_the_walk() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let inputs = json!({ "item": "latte", "order": "ord_1" });
    let session =
        call(&gateway, "step", &json!({ "action": "take_order", "inputs": inputs }))["data"]["session"].clone();
    let early = call(&gateway, "charge_card", &json!({ "order": "ord_1", "amount": 5 }));
    assert_refused(&early, "invalid_transition", &["drop_order", "take_order"]);
    assert_eq!(early["error"]["recovery"]["template"]["missing"], json!(["action"]), "it is too early: {early}");
    let direct = call(&gateway, "charge_card", &json!({ "order": "ord_1", "amount": 5, "session": session }));
    assert_refused(&direct, "invalid_transition", &["drop_order", "pay"]);
    assert_eq!((&direct["state"]["name"], &direct["session"]), (&json!("ordered"), &session), "{direct}");
    let paid = follow(&gateway, &direct, &[]);
    assert_eq!(paid["data"]["state"]["name"], "paid", "{direct} led to {paid}");
    let late = call(&gateway, "charge_card", &json!({ "order": "ord_1", "amount": 5, "session": session }));
    assert_refused(&late, "invalid_transition", &["hand_over"]);
    assert!(
        late["error"]["message"].as_str().is_some_and(|words| words.contains("cannot be taken from `paid`")),
        "{late}"
    );
    assert_eq!(follow(&gateway, &late, &[])["data"]["state"]["name"], "fulfilled");
    assert_eq!(place.requests("charge_card"), 1);
    place.settled();
}

#[test]
fn a_misspelt_tool_of_an_action_says_what_may_be_done() {
    let place = Place::new();
    let gateway = serve(&place, &in_tools());
    let no = call(&gateway, "take_ordr", &json!({ "item": "latte", "order": "ord_1" }));
    assert_eq!((&no["status"], &no["error"]["kind"]), (&json!("refused"), &json!("unknown_name")), "{no}");
    assert_legal(&no, &["drop_order", "take_order"]);
    let taken = follow(&gateway, &no, &[]);
    assert_eq!(taken["data"]["state"]["name"], "ordered", "{no} led to {taken}");
    let client = Bare::stateful(&gateway);
    client.call("take_order", json!({ "item": "latte", "order": "ord_2" }));
    let no = client.call("drop_ordr", json!({}))["structuredContent"].clone();
    assert_legal(&no, &["drop_order", "pay"]);
    assert_eq!(no["state"]["name"], "ordered", "{no}");
    let dropped = follow(&gateway, &no, &[]);
    assert_eq!(dropped["data"]["state"]["name"], "dropped", "{no} led to {dropped}");
}
