//! Machines that are served by their actions: what is listed is what can be called, in stages too.

use serde_json::{Value, json};

use crate::bare::Bare;
use crate::order::{ORDER, assert_legal, assert_refused, in_tools, serve};
use crate::support::{Gateway, Place};

/// Two of its actions want names that others have: one of our tools, and one of the shop's.
const TRIP: &str = r#"
[tools.get_order]
effect = "read"

[tools.charge_card]
effect = "write"

[machines.trip]
initial = "asked"
terminal = ["over"]
mode = "tools"

[machines.trip.actions.send_email]
from = ["asked"]
to = "told"

[machines.trip.actions.reset]
from = ["told"]
to = "planned"

[machines.trip.actions.look]
from = ["planned"]
to = "seen"
allowed = ["get_order", "charge_card"]
turns = 2
completion = { type = "object", properties = { why = { type = "string" } }, required = ["why"] }
writes = { why = "result.fields.why" }

[machines.trip.actions.end]
from = ["seen"]
to = "over"

[machines.trip.actions.drop]
from = ["asked", "told", "planned", "seen"]
to = "over"
"#;

fn call(gateway: &Gateway, tool: &str, args: Value) -> Value {
    gateway.call(tool, &args.to_string()).1
}

#[test]
fn what_may_be_done_is_named_as_it_is_called_and_is_done_by_calling_it() {
    let place = Place::new();
    let gateway = serve(&place, TRIP);
    let listed = Bare::stateful(&gateway).list("tools/list", "tools", "name");
    assert!(!listed.contains(&"step".to_owned()), "every action has a tool of its own: {listed:?}");
    let offered = |answer: &Value, names: &[&str]| {
        assert_eq!(answer["status"], "success", "{answer}");
        assert_legal(&answer["data"], names);
        assert!(names.iter().all(|name| listed.iter().any(|tool| tool == name)), "{names:?} of {listed:?}");
    };
    let next = call(&gateway, "walk", json!({}));
    assert_legal(&next["data"], &["drop", "amends_send_email"]);
    let told = call(&gateway, "amends_send_email", json!({}));
    offered(&told, &["drop", "trip_reset"]);
    assert_eq!(place.requests("send_email"), 0, "the shop's own tool was not called");
    let session = told["data"]["session"].clone();
    let walk = |more: Value| {
        let mut args = json!({ "session": session });
        args.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        args
    };
    let planned = call(&gateway, "trip_reset", walk(json!({})));
    offered(&planned, &["drop", "look"]);
    assert_eq!(planned["data"]["seq"], 2, "it went on, and did not begin again");

    let looking = call(&gateway, "look", walk(json!({})));
    offered(&looking, &["charge_card", "complete", "trip_look_get_order"]);
    let schema = &looking["data"]["next_action_schemas"]["charge_card"];
    assert!(schema["properties"]["amount"].is_object(), "{schema}");
    let seen = call(&gateway, "trip_look_get_order", walk(json!({ "order": "ord_1" })));
    assert_eq!((&seen["status"], &seen["data"]["seq"]), (&json!("success"), &json!(4)), "{seen}");
    let charged = call(&gateway, "charge_card", walk(json!({ "order": "ord_1", "amount": 5 })));
    assert_legal(&charged["data"], &["complete"]);
    let third = call(&gateway, "charge_card", walk(json!({ "order": "ord_1", "amount": 6 })));
    assert_refused(&third, "invalid_transition", &["complete"]);
    assert!(
        third["error"]["message"].as_str().is_some_and(|words| words.contains("`turns` is bounded to 2")),
        "{third}"
    );
    assert_eq!(place.effects_on("charge_card", "ord_1"), 1);
    let no = call(&gateway, "complete", walk(json!({})));
    assert_refused(&no, "validation_failed", &["complete"]);
    let template = json!({ "tool": "complete", "args": { "session": session }, "missing": ["why"] });
    assert_eq!(no["error"]["recovery"]["template"], template, "{no}");
    offered(&call(&gateway, "complete", walk(json!({ "why": "it is there" }))), &["drop", "end"]);
}

#[test]
fn each_no_of_a_machine_in_tools_has_a_way_on() {
    let place = Place::new();
    let gateway = serve(&place, TRIP);
    let told = call(&gateway, "amends_send_email", json!({}));
    let session = told["data"]["session"].clone();
    let early = call(&gateway, "end", json!({ "session": session }));
    assert_refused(&early, "invalid_transition", &["drop", "trip_reset"]);
    let way = json!({ "tool": "walk", "args": { "session": session, "what": "next" } });
    assert_eq!(early["error"]["recovery"]["call"], way, "{early}");
    let shown = call(&gateway, "walk", way["args"].clone());
    assert_eq!(shown["data"]["valid_next_actions"], json!(["drop", "trip_reset"]), "{shown}");
    let nothing = call(&gateway, "xyzzy", json!({ "session": session }));
    assert_refused(&nothing, "unknown_name", &["drop", "trip_reset"]);
    assert_eq!(nothing["error"]["recovery"]["call"], way, "{nothing}");
    let unbegun = call(&gateway, "xyzzy", json!({}));
    assert_refused(&unbegun, "unknown_name", &["drop", "amends_send_email"]);
    let asked = json!({ "name": "xyzzy", "arguments": { "session": session } });
    let error = Bare::stateless(&gateway).ask("tools/call", asked).1["error"].clone();
    assert_eq!(error["code"], -32602, "it was never listed: {error}");
    assert_legal(&error["data"], &["drop", "trip_reset"]);
    let unplaced = call(&gateway, "complete", json!({ "session": session, "why": "x" }));
    assert_refused(&unplaced, "unknown_action", &["drop", "trip_reset"]);
    assert!(unplaced["known_actions"].to_string().contains("trip_reset"), "{unplaced}");

    let place = Place::new();
    let gateway = serve(&place, &in_tools());
    let wrong = call(&gateway, "take_order", json!({ "item": 5, "order": "ord_1" }));
    assert_refused(&wrong, "validation_failed", &["drop_order", "take_order"]);
    let template = &wrong["error"]["recovery"]["template"];
    let known = json!({ "order": "ord_1", "session": wrong["session"] });
    assert_eq!(*template, json!({ "tool": "take_order", "args": known, "missing": ["item"] }), "{wrong}");
    let mut args = template["args"].clone();
    args["item"] = json!("latte");
    let taken = call(&gateway, "take_order", args);
    assert_eq!(taken["data"]["state"]["fields"]["order"], "ord_1", "{taken}");
}

#[test]
fn the_tool_of_one_machine_moves_no_walk_of_another() {
    let machine = |name: &str| {
        format!(
            "[machines.{name}]\ninitial = \"a\"\nterminal = [\"b\"]\nmode = \"tools\"\n\
             [machines.{name}.actions.go]\nfrom = [\"a\"]\nto = \"b\"\n\
             [machines.{name}.actions.wait]\nfrom = [\"a\"]\nto = \"a\"\ntimes = 2\n"
        )
    };
    let place = Place::new();
    let gateway = serve(&place, &format!("{}{}", machine("one"), machine("two")));
    let begun = call(&gateway, "one_wait", json!({}));
    let session = begun["data"]["session"].clone();
    let strange = call(&gateway, "two_go", json!({ "session": session }));
    assert_refused(&strange, "invalid_transition", &["one_go", "one_wait"]);
    let message = strange["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("the `go` of `two`, and the walk is in `one`"), "{message}");
    let way = json!({ "call": { "tool": "walk", "args": { "session": session, "what": "next" } } });
    assert_eq!(strange["error"]["recovery"], way, "{strange}");
    assert_eq!(call(&gateway, "one_go", json!({ "session": session }))["data"]["state"]["name"], "b");
}

#[test]
fn a_machine_that_is_named_beside_a_walk_of_another_moves_nothing() {
    let machine = |name: &str| {
        format!(
            "[machines.{name}]\ninitial = \"a\"\nterminal = [\"b\"]\n\
             [machines.{name}.actions.go]\nfrom = [\"a\"]\nto = \"b\"\n"
        )
    };
    let within = "[machines.outer]\ninitial = \"a\"\nterminal = [\"b\"]\n\
                  [machines.outer.actions.run]\nfrom = [\"a\"]\nto = \"b\"\nmachine = \"inner\"\n";
    let place = Place::new();
    let gateway = serve(&place, &format!("{}{}{}{within}", machine("one"), machine("two"), machine("inner")));
    let begun = call(&gateway, "step", json!({ "action": "run", "machine": "outer" }));
    let outer = begun["data"]["session"].clone();
    for machine in ["one", "none"] {
        let strange = call(&gateway, "step", json!({ "action": "go", "machine": machine, "session": outer }));
        assert_refused(&strange, "invalid_transition", &["go"]);
        let message = strange["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(&format!("the `go` of `{machine}`, and the walk is in `inner`")), "{message}");
        assert_eq!(strange["seq"], 1, "{strange}");
        let way = json!({ "call": { "tool": "walk", "args": { "session": outer, "what": "next" } } });
        assert_eq!(strange["error"]["recovery"], way, "the one of that name here is not what was meant: {strange}");
    }
    let again = call(&gateway, "fork", json!({ "session": outer }))["data"]["session"].clone();
    for (machine, session) in [("outer", &outer), ("inner", &again)] {
        let gone = call(&gateway, "step", json!({ "action": "go", "machine": machine, "session": session }));
        assert_eq!(gone["data"]["state"]["name"], "b", "what it walks and what it is in are both its own: {gone}");
    }
}

#[test]
fn what_is_wanted_of_a_walk_that_is_not_named_asks_for_its_name() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    for (tool, args) in
        [("reset", json!({})), ("cancel", json!({})), ("fork", json!({ "seq": 1 })), ("fork", json!({}))]
    {
        let no = call(&gateway, tool, args.clone());
        assert_refused(&no, "validation_failed", &["drop_order", "take_order"]);
        let way = json!({ "template": { "tool": tool, "args": args, "missing": ["session"] } });
        assert_eq!(no["error"]["recovery"], way, "another walk is not what was asked for: {no}");
    }
}

#[test]
fn every_no_says_what_may_be_done_though_no_walk_could_say_it() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let inputs = json!({ "item": "latte", "order": "ord_1" });
    let begun = call(&gateway, "step", json!({ "action": "take_order", "inputs": inputs }));
    let session = begun["data"]["session"].clone();
    let far = call(&gateway, "fork", json!({ "session": session, "seq": 99 }));
    assert_refused(&far, "validation_failed", &["drop_order", "pay"]);
    let fault = json!([{ "field": "seq", "expected": "a whole number from 0 to 1", "got": "99" }]);
    assert_eq!(far["error"]["details"], fault, "{far}");
    let template = json!({ "tool": "fork", "args": { "session": session }, "missing": ["seq"] });
    assert_eq!(far["error"]["recovery"]["template"], template, "{far}");

    let strange =
        call(&gateway, "step", json!({ "action": "pay", "inputs": { "amount": 5 }, "session": "ses_unknown" }));
    assert_refused(&strange, "unknown_name", &["drop_order", "take_order"]);
    let way = &strange["error"]["recovery"]["call"];
    assert_eq!(*way, json!({ "tool": "walk", "args": { "what": "next" } }), "{strange}");
    assert_eq!(call(&gateway, "walk", way["args"].clone())["status"], "success");

    let deep = format!("{{\"action\":\"pay\",\"inputs\":{}1{}}}", "[".repeat(600), "]".repeat(600));
    let (_, deep) = gateway.call("step", &deep);
    assert_refused(&deep, "too_large", &["drop_order", "take_order"]);

    let other = "[machines.other]\ninitial = \"a\"\nterminal = [\"b\"]\n[machines.other.actions.go]\nfrom = [\"a\"]\nto = \"b\"\n";
    let place = Place::new();
    let gateway = serve(&place, &format!("{ORDER}\n{other}"));
    let which = call(&gateway, "step", json!({ "action": "go" }));
    assert_refused(&which, "validation_failed", &["drop_order", "go", "take_order"]);
    assert!(which.get("state").is_none(), "it is in no machine yet: {which}");
    let template = json!({ "tool": "step", "args": { "action": "go" }, "missing": ["machine"] });
    assert_eq!(which["error"]["recovery"]["template"], template, "{which}");
}

#[test]
fn a_guard_that_does_not_hold_says_which_part_over_which_values() {
    let guard = "guard = \"inputs.item != 'tea'\"";
    let place = Place::new();
    let gateway = serve(&place, &ORDER.replace(guard, "guard = \"inputs.order != '' && inputs.item != 'tea'\""));
    let no = call(&gateway, "step", json!({ "action": "take_order", "inputs": { "item": "tea", "order": "ord_1" } }));
    assert_refused(&no, "invalid_transition", &["drop_order", "take_order"]);
    let message = no["error"]["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("does not hold: not `inputs.item != 'tea'` (`inputs.item` is \"tea\")"), "{message}");
    let fault = json!([{ "field": "inputs.item", "expected": "`inputs.item != 'tea'` to hold", "got": "\"tea\"" }]);
    assert_eq!(no["error"]["details"], fault, "{no}");

    let place = Place::new();
    let card = "4111 1111 1111 1111";
    let gateway = serve(&place, &ORDER.replace(guard, "guard = \"inputs.order == ''\""));
    let no = call(&gateway, "step", json!({ "action": "take_order", "inputs": { "item": "tea", "order": card } }));
    assert!(!no["error"].to_string().contains("4111 1111"), "what is private is not told: {no}");
    let id = no["session"].as_str().expect("a walk").to_owned();
    let (_, told) = place.amends(&["trace", &id, "--json"]);
    assert!(told.contains("move_refused") && !told.contains("4111 1111"), "{told}");
}

#[test]
fn a_typo_beside_the_inputs_or_in_them_is_never_taken_for_another_move() {
    let machine = "[machines.m]\ninitial = \"a\"\nterminal = [\"z\"]\nlimits = { loops = 9 }\n\
                   [machines.m.actions.set]\nfrom = [\"a\"]\nto = \"a\"\n\
                   input = { type = \"object\", properties = { n = { type = \"integer\" }, k = { type = \"string\" } } }\n\
                   writes = { n = \"has(inputs.n) ? inputs.n : 1\" }\n\
                   [machines.m.actions.end]\nfrom = [\"a\"]\nto = \"z\"\n";
    let place = Place::new();
    let gateway = serve(&place, machine);
    let template = |args: Value| {
        let no = call(&gateway, "step", args);
        assert_eq!(no["error"]["kind"], "validation_failed", "{no}");
        let template = no["error"]["recovery"]["template"].clone();
        (template["args"]["inputs"].clone(), template["missing"].clone())
    };
    let beside = template(json!({ "action": "set", "inputs": { "n": 5 }, "sesion": "q" }));
    assert_eq!(beside, (json!({ "n": 5 }), json!(["session"])));
    let odd = template(json!({ "action": "set", "inputs": { "n": 5 }, "expect_seq": "x" }));
    assert_eq!(odd, (json!({ "n": 5 }), json!(["expect_seq"])));
    let wrong = template(json!({ "action": "set", "inputs": { "n": "x", "k": "keep" } }));
    assert_eq!(wrong, (json!({ "k": "keep" }), json!(["inputs.n"])));
}

#[test]
fn a_session_that_is_no_walk_is_not_told_as_one() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    assert_eq!(call(&gateway, "get_order", json!({ "order": "ord_1" }))["status"], "success");
    place.settled();
    let (_, sessions) = place.amends(&["sessions", "--json"]);
    let sessions: Value = serde_json::from_str(&sessions).expect("JSON");
    let plain = sessions["sessions"].as_array().expect("a list").iter().find(|session| session["machine"].is_null());
    let id = plain.and_then(|session| session["session"].as_str()).unwrap_or_else(|| panic!("{sessions}"));
    for args in [vec!["walk", id, "history"], vec!["walk", id, "state"], vec!["walk", "diff", id, id]] {
        let (code, said) = place.amends(&args);
        assert!(code != 0 && said.is_empty(), "{args:?}: {code} {said}");
    }
}
