//! Walks whose machine is declared otherwise by now: they keep to it, follow, or do not go on and say how to begin again.

use serde_json::{Value, json};

use crate::bare::Bare;
use crate::order::{ORDER, assert_legal, assert_refused, declare, serve};
use crate::support::{Gateway, Place, eventually};

const BEGIN: [&str; 2] = ["drop_order", "take_order"];

fn step(gateway: &Gateway, args: Value) -> Value {
    gateway.call("step", &args.to_string()).1
}

fn look(gateway: &Gateway, session: &Value, what: &str) -> Value {
    gateway.call("walk", &json!({ "session": session, "what": what }).to_string()).1["data"].clone()
}

/// An order that is written down.
fn ordered(gateway: &Gateway, order: &str) -> Value {
    let inputs = json!({ "item": "latte", "order": order });
    let ordered = step(gateway, json!({ "action": "take_order", "inputs": inputs }));
    assert_eq!(ordered["status"], "success", "{ordered}");
    ordered["data"]["session"].clone()
}

fn drifting(drift: &str, machine: &str) -> String {
    machine.replace("initial = \"created\"", &format!("initial = \"created\"\ndrift = \"{drift}\""))
}

/// The machine with another name for where an order is that was written down.
fn renamed() -> String {
    ORDER.replace("\"ordered\"", "\"noted\"").replace("actions.pay]", "actions.charge]")
}

/// Another machine, for a configuration that has nothing else.
const OTHER: &str = r#"
[tools.get_order]
effect = "read"

[machines.other]
initial = "new"
terminal = ["old"]

[machines.other.actions.age]
from = ["new"]
to = "old"
"#;

#[test]
fn what_a_walk_that_followed_its_machine_is_given_is_checked_as_declared_now() {
    let place = Place::new();
    let mut gateway = serve(&place, ORDER);
    let inputs = json!({ "item": "latte", "order": "ord_1" });
    let session = step(&gateway, json!({ "action": "take_order", "inputs": inputs }))["data"]["session"].clone();
    gateway.kill();
    let changed = ORDER
        .replace("initial = \"created\"", "initial = \"created\"\ndrift = \"migrate\"")
        .replace("exclusiveMinimum = 0", "exclusiveMinimum = 100");
    let gateway = serve(&place, &changed);
    let little = step(&gateway, json!({ "action": "pay", "inputs": { "amount": 5 }, "session": session }));
    assert_refused(&little, "validation_failed", &["drop_order", "pay"]);
    let paid = step(&gateway, json!({ "action": "pay", "inputs": { "amount": 500 }, "session": session }));
    assert_eq!(paid["data"]["state"]["name"], "paid", "{paid}");
}

#[test]
fn a_walk_whose_machine_changed_keeps_it_or_follows_or_is_refused_as_declared() {
    for drift in ["keep", "migrate", "refuse"] {
        let place = Place::new();
        let mut gateway = serve(&place, ORDER);
        let inputs = json!({ "item": "latte", "order": "ord_1" });
        let ordered = step(&gateway, json!({ "action": "take_order", "inputs": inputs }));
        let session = ordered["data"]["session"].clone();
        gateway.kill();
        let changed = ORDER
            .replace("initial = \"created\"", &format!("initial = \"created\"\ndrift = \"{drift}\""))
            .replace("[machines.order.actions.drop_order]", "[machines.order.actions.forget]");
        let gateway = serve(&place, &changed);
        let seen = step(&gateway, json!({ "action": "forget", "session": session }));
        match drift {
            "keep" => {
                assert_refused(&seen, "unknown_action", &["drop_order", "pay"]);
                let dropped = step(&gateway, json!({ "action": "drop_order", "session": session }));
                assert_eq!(dropped["status"], "success", "{dropped}");
            }
            "migrate" => assert_eq!(seen["data"]["state"]["name"], "dropped", "{seen}"),
            _ => {
                assert_eq!(seen["error"]["kind"], "schema_drift", "{seen}");
                assert_eq!(seen["error"]["code"], "ManifestDrift", "{seen}");
                let pay = json!({ "action": "pay", "inputs": { "amount": 5 }, "session": session });
                assert_eq!(step(&gateway, pay)["error"]["code"], "ManifestDrift");
            }
        }
        assert_eq!(place.requests("charge_card"), 0);
    }
}

#[test]
fn fields_stay_what_they_were_when_they_are_declared_otherwise() {
    let with = |n: u32, last: &str| {
        drifting("migrate", ORDER)
            .replace("drift =", &format!("fields = {{ n = {n} }}\ndrift ="))
            .replace("actions.drop_order]", &format!("actions.{last}]"))
    };
    let place = Place::new();
    let mut gateway = serve(&place, &with(1, "drop_order"));
    let session = ordered(&gateway, "ord_1");
    let (_, reset) = gateway.call("reset", &json!({ "session": session }).to_string());
    assert_eq!(reset["data"]["state"]["fields"], json!({ "n": 1 }), "{reset}");
    gateway.kill();
    let mut gateway = serve(&place, &with(2, "forget"));
    let inputs = json!({ "item": "latte", "order": "ord_1" });
    let again = step(&gateway, json!({ "action": "take_order", "inputs": inputs, "session": session }));
    let fields = json!({ "n": 1, "item": "latte", "order": "ord_1" });
    assert_eq!(again["data"]["state"]["fields"], fields, "{again}");
    assert_legal(&again["data"], &["forget", "pay"]);
    gateway.kill();
    let gateway = serve(&place, &with(2, "forget"));
    assert_eq!(look(&gateway, &session, "state")["state"]["fields"], fields, "as it was before it was read again");
    let paid = step(&gateway, json!({ "action": "pay", "inputs": { "amount": 5 }, "session": session }));
    assert_eq!(paid["data"]["state"]["fields"]["n"], 1, "{paid}");
    place.settled();
}

#[test]
fn a_walk_that_does_not_go_on_says_why_and_begins_again_as_declared_now() {
    for (drift, why) in [("refuse", "is declared otherwise by now"), ("migrate", "`order` has no state `ordered`")] {
        let place = Place::new();
        let gateway = serve(&place, ORDER);
        let session = ordered(&gateway, "ord_1");
        declare(&place, &gateway, &drifting(drift, &renamed()));

        let next = look(&gateway, &session, "next");
        assert_eq!(next["valid_next_actions"], json!([]), "{next}");
        assert_eq!(next["waits"]["for"], "drift", "{next}");
        let picture = look(&gateway, &session, "graph.mmd").to_string();
        assert!(picture.contains("ordered") && !picture.contains("noted"), "it is where it was: {picture}");
        for action in ["pay", "charge", "drop_order"] {
            let inputs = json!({ "amount": 5 });
            let no = step(&gateway, json!({ "action": action, "inputs": inputs, "session": session }));
            assert_refused(&no, "schema_drift", &[]);
            assert_eq!(no["error"]["code"], "ManifestDrift", "{no}");
            assert!(no["error"]["message"].as_str().is_some_and(|words| words.contains(why)), "{no}");
            let call = json!({ "tool": "reset", "args": { "session": session } });
            assert_eq!(no["error"]["recovery"]["call"], call, "{no}");
            assert!(no["next_hint"].as_str().is_some_and(|hint| hint.contains("`reset`")), "{no}");
        }
        let fork = gateway.call("fork", &json!({ "session": session }).to_string()).1;
        assert_eq!((&fork["status"], &fork["error"]["code"]), (&json!("refused"), &json!("ManifestDrift")), "{fork}");
        assert_eq!(fork["error"]["recovery"]["call"]["tool"], "reset", "{fork}");

        let (_, reset) = gateway.call("reset", &json!({ "session": session }).to_string());
        assert_eq!((&reset["status"], &reset["data"]["state"]["name"]), (&json!("success"), &json!("created")));
        assert_legal(&reset["data"], &BEGIN);
        let inputs = json!({ "item": "latte", "order": "ord_1" });
        let noted = step(&gateway, json!({ "action": "take_order", "inputs": inputs, "session": session }));
        assert_eq!(noted["data"]["state"]["name"], "noted", "{noted}");
        assert_legal(&noted["data"], &["charge", "drop_order"]);
        assert!(look(&gateway, &session, "graph.mmd").to_string().contains("noted"));
        assert_eq!(place.requests("charge_card"), 0);
        place.settled();

        let mut gateway = gateway;
        gateway.kill();
        let gateway = serve(&place, &drifting(drift, &renamed()));
        let charged = step(&gateway, json!({ "action": "charge", "inputs": { "amount": 5 }, "session": session }));
        assert_eq!(charged["data"]["state"]["name"], "paid", "{charged}");
        place.settled();
    }
}

#[test]
fn a_connection_begins_its_own_walk_again_as_declared_now() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let client = Bare::stateful(&gateway);
    let call = |tool: &str, args: Value| client.call(tool, args)["structuredContent"].clone();
    let inputs = json!({ "item": "latte", "order": "ord_1" });
    let began = call("step", json!({ "action": "take_order", "inputs": inputs }));
    assert_eq!(began["data"]["state"]["name"], "ordered", "{began}");
    declare(&place, &gateway, &drifting("refuse", &renamed()));
    let no = call("step", json!({ "action": "take_order", "inputs": inputs }));
    assert_refused(&no, "schema_drift", &[]);
    let way = no["error"]["recovery"]["call"].clone();
    let reset = call(way["tool"].as_str().expect("a tool"), way["args"].clone());
    assert_eq!(reset["status"], "success", "{reset}");
    let noted = call("step", json!({ "action": "take_order", "inputs": inputs }));
    assert_eq!(noted["data"]["state"]["name"], "noted", "{noted}");
    assert_eq!(noted["data"]["session"], began["data"]["session"], "it is the same walk");
}

#[test]
fn a_walk_in_doubt_follows_its_machine_once_that_is_settled() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let session = ordered(&gateway, "ord_lost");
    let pay = json!({ "action": "pay", "inputs": { "amount": 5 }, "session": session });
    assert_eq!(step(&gateway, pay)["error"]["certainty"], "in_doubt");
    let changed = drifting("migrate", &ORDER.replace("actions.drop_order]", "actions.forget]"));
    declare(&place, &gateway, &changed);
    let early = step(&gateway, json!({ "action": "forget", "session": session }));
    assert_eq!(early["status"], "refused", "{early}");
    assert!(place.events_named("walk_migrated").is_empty());
    eventually("a person can say what became of it", || {
        let (_, queue) = place.amends(&["queue", "--json"]);
        let queue: Value = serde_json::from_str(&queue).unwrap_or_default();
        let id = queue["queue"][0]["id"].as_str().map(str::to_owned);
        id.is_some_and(|id| place.amends(&["answer", &id, "did_not_happen", "--by", "ann"]).0 == 0)
    });
    eventually("it follows", || {
        let forgot = step(&gateway, json!({ "action": "forget", "session": session }));
        forgot["data"]["state"]["name"] == "dropped"
    });
    assert_eq!(place.events_named("walk_migrated").len(), 1);
    place.settled();
}

#[test]
fn a_walk_whose_fields_do_not_fit_does_not_follow_and_says_which() {
    let place = Place::new();
    let mut gateway = serve(&place, ORDER);
    let session = ordered(&gateway, "ord_1");
    gateway.kill();
    let typed = "fields = { must = 1 }\nstate = { type = \"object\", properties = { must = { type = \"integer\" }, item = { type = \"string\" }, order = { type = \"string\" }, charge = { type = \"string\" } }, required = [\"must\"] }\ndrift =";
    let gateway = serve(&place, &drifting("migrate", ORDER).replace("drift =", typed));
    let no = step(&gateway, json!({ "action": "pay", "inputs": { "amount": 5 }, "session": session }));
    assert_refused(&no, "schema_drift", &[]);
    assert!(no["error"]["message"].as_str().is_some_and(|words| words.contains("state.must")), "{no}");
    assert_eq!(place.requests("charge_card"), 0);
    let forked = gateway.call("fork", &json!({ "session": session }).to_string()).1;
    let call = json!({ "tool": "reset", "args": { "session": session } });
    assert_eq!(
        (&forked["error"]["kind"], &forked["error"]["recovery"]["call"]),
        (&json!("schema_drift"), &call),
        "{forked}"
    );
    let (_, reset) = gateway.call("reset", &json!({ "session": session }).to_string());
    assert_eq!(reset["data"]["state"]["fields"], json!({ "must": 1 }), "{reset}");
}

#[test]
fn a_fork_from_a_point_that_does_not_fit_offers_another_point_and_leaves_the_walk_alone() {
    let place = Place::new();
    let mut gateway = serve(&place, &drifting("migrate", ORDER));
    let session = ordered(&gateway, "ord_1");
    let paid = step(&gateway, json!({ "action": "pay", "inputs": { "amount": 5 }, "session": session }));
    assert_eq!(paid["data"]["state"]["name"], "paid", "{paid}");
    gateway.kill();
    let gateway = serve(&place, &drifting("migrate", &renamed()));
    assert_eq!(look(&gateway, &session, "next")["valid_next_actions"], json!(["hand_over"]), "the walk itself goes on");
    let no = gateway.call("fork", &json!({ "session": session, "seq": 1 }).to_string()).1;
    assert_refused(&no, "validation_failed", &["hand_over"]);
    let message = no["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("after move 1") && message.contains("`order` has no state `ordered`"), "{message}");
    assert!(!message.contains("reset"), "{message}");
    assert_eq!(no["error"]["who_must_act"], "agent", "{no}");
    let mut args = json!({ "session": session });
    let way = json!({ "template": { "tool": "fork", "args": args, "missing": ["seq"] } });
    assert_eq!(no["error"]["recovery"], way, "{no}");
    args["seq"] = json!(2);
    let forked = gateway.call("fork", &args.to_string()).1;
    assert_eq!(forked["data"]["state"]["name"], "paid", "{forked}");
    assert_eq!(look(&gateway, &session, "state")["state"]["name"], "paid", "nothing became of the walk");
}

#[test]
fn a_walk_whose_machine_is_gone_is_shown_and_goes_on_only_where_it_keeps_it() {
    for drift in ["keep", "migrate", "refuse"] {
        let place = Place::new();
        let mut gateway = serve(&place, &drifting(drift, ORDER));
        let session = ordered(&gateway, "ord_1");
        gateway.kill();
        let gateway = serve(&place, OTHER);
        let picture = look(&gateway, &session, "graph.mmd").to_string();
        assert!(picture.contains("ordered") && picture.contains("now"), "{picture}");
        let dropped = step(&gateway, json!({ "action": "drop_order", "session": session }));
        if drift == "keep" {
            assert_eq!(dropped["data"]["state"]["name"], "dropped", "{dropped}");
            continue;
        }
        assert_refused(&dropped, "schema_drift", &[]);
        assert!(dropped["error"]["message"].as_str().is_some_and(|words| words.contains("not declared any more")));
        let way = &dropped["error"]["recovery"]["call"];
        let seen = gateway.call(way["tool"].as_str().expect("a tool"), &way["args"].to_string()).1;
        assert_eq!((&seen["status"], &seen["data"]["waits"]["for"]), (&json!("success"), &json!("drift")), "{seen}");
    }
}

#[test]
fn a_walk_that_keeps_its_machine_knows_the_actions_of_that() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let session = ordered(&gateway, "ord_1");
    declare(&place, &gateway, &renamed());
    let unknown = step(&gateway, json!({ "action": "charge", "session": session }));
    assert_refused(&unknown, "unknown_action", &["drop_order", "pay"]);
    assert_eq!(unknown["known_actions"], json!(["drop_order", "hand_over", "pay", "take_order"]), "{unknown}");
    let picture = look(&gateway, &session, "graph.mmd").to_string();
    assert!(picture.contains("ordered") && !picture.contains("noted"), "{picture}");
}

#[test]
fn what_may_be_done_next_is_said_as_the_walk_will_follow() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let session = ordered(&gateway, "ord_1");
    declare(&place, &gateway, &drifting("migrate", &ORDER.replace("actions.drop_order]", "actions.forget]")));
    let next = look(&gateway, &session, "next");
    assert_eq!(next["valid_next_actions"], json!(["forget", "pay"]), "{next}");
    assert!(look(&gateway, &session, "graph.mmd").to_string().contains("forget"));
    assert!(place.events_named("walk_migrated").is_empty(), "to look changes nothing");
    let forked = gateway.call("fork", &json!({ "session": session }).to_string()).1;
    assert_legal(&forked["data"], &["forget", "pay"]);
    let forgot = step(&gateway, json!({ "action": "forget", "session": forked["data"]["session"] }));
    assert_eq!(forgot["data"]["state"]["name"], "dropped", "{forgot}");
    place.settled();
}

#[test]
fn a_walk_that_is_over_begins_again_whatever_became_of_its_machine() {
    for drift in ["migrate", "refuse"] {
        let place = Place::new();
        let mut gateway = serve(&place, &drifting(drift, ORDER));
        let session = step(&gateway, json!({ "action": "drop_order" }))["data"]["session"].clone();
        gateway.kill();
        let gateway = serve(&place, &drifting(drift, &ORDER.replace("\"dropped\"", "\"gone\"")));
        let no = step(&gateway, json!({ "action": "take_order", "session": session }));
        assert_refused(&no, "schema_drift", &[]);
        assert_eq!(no["error"]["who_must_act"], "agent", "{drift}: {no}");
        let forked = gateway.call("fork", &json!({ "session": session }).to_string()).1;
        assert_eq!(forked["error"]["who_must_act"], "agent", "{drift}: {forked}");
        let call = &no["error"]["recovery"]["call"];
        assert_eq!((&call["tool"], &forked["error"]["recovery"]["call"]), (&json!("reset"), call), "{drift}: {no}");
        let reset = gateway.call("reset", &call["args"].to_string()).1;
        assert_eq!(reset["data"]["state"]["name"], "created", "{drift}: {reset}");
        assert_legal(&reset["data"], &BEGIN);
    }
}
