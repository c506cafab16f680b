//! The examples of `examples/machines`, walked through the real binary and their own servers.

use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use crate::order::{assert_legal, assert_refused};
use crate::support::{AMENDS, Gateway, Place, eventually, root};
use crate::till::look;

/// A gateway with an example's own file, once one of its reads is served.
fn serve(place: &Place, example: &str, read: (&str, Value)) -> Gateway {
    let gateway = listening(place, example, "");
    let (tool, args) = read;
    eventually("the example's server is there", || gateway.call(tool, &args.to_string()).1["status"] == "success");
    gateway
}

/// A gateway with an example's own file. Its shop, if it has one, is given that fault.
fn listening(place: &Place, example: &str, fault: &str) -> Gateway {
    let file = root().join("examples/machines").join(example).join("amends.toml");
    let text = std::fs::read_to_string(file).expect("the example is there");
    // The program is not on the path here, and the shop's book is not left in the repository.
    let fault = if fault.is_empty() { String::new() } else { format!(", \"--fault\", {fault:?}") };
    let shop = format!("[{AMENDS:?}, \"shop\", \"--book\", {:?}, \"--demo\"{fault}]", place.path("book.db"));
    let text = text.replace(r#"["amends", "shop", "--demo"]"#, &shop);
    let text = format!("[ledger]\nurl = \"{}\"\n[listen]\nhttp = \"127.0.0.1:0\"\n{text}", place.ledger());
    let config = place.write("serve.toml", &text);
    let mut command = Command::new(AMENDS);
    // Its server is named by a path in the repository.
    command.arg("serve").arg("--config").arg(config).current_dir(root());
    Gateway::listening(command)
}

/// One walk.
struct Walk<'a> {
    gateway: &'a Gateway,
    session: Option<Value>,
}

impl Walk<'_> {
    fn take(&mut self, action: &str, inputs: Value) -> Value {
        let mut args = json!({ "action": action, "inputs": inputs });
        if let Some(session) = &self.session {
            args["session"] = session.clone();
        }
        let (_, answer) = self.gateway.call("step", &args.to_string());
        let session = answer["data"].get("session").or(answer.get("session"));
        self.session = self.session.take().or(session.cloned());
        answer
    }

    /// Takes an action that leads to that state.
    fn leads(&mut self, action: &str, inputs: Value, state: &str) -> Value {
        let answer = self.take(action, inputs);
        assert_eq!(
            (&answer["status"], &answer["data"]["state"]["name"]),
            (&json!("success"), &json!(state)),
            "{answer}"
        );
        answer["data"].clone()
    }
}

#[test]
fn a_coffee_is_ordered_paid_and_handed_over() {
    let place = Place::new();
    let gateway = listening(&place, "coffee", "");
    let mut walk = Walk { gateway: &gateway, session: None };
    let tea = walk.take("take_order", json!({ "item": "tea" }));
    assert_refused(&tea, "invalid_transition", &["drop", "take_order"]);
    assert!(tea["error"]["message"].as_str().is_some_and(|words| words.contains("inputs.item != 'tea'")), "{tea}");
    let ordered = walk.leads("take_order", json!({ "item": "coffee" }), "ordered");
    assert_eq!(ordered["state"]["fields"]["size"], "small", "{ordered}");
    walk.leads("change", json!({ "size": "large" }), "ordered");
    let changed = walk.leads("change", json!({ "size": "small" }), "ordered");
    assert_legal(&changed, &["drop", "pay"]);
    let third = walk.take("change", json!({ "size": "large" }));
    assert_refused(&third, "invalid_transition", &["drop", "pay"]);
    walk.leads("pay", json!({ "cents": 100 }), "ordered");
    walk.leads("pay", json!({ "cents": 300 }), "paid");
    let over = walk.leads("hand_over", json!({}), "fulfilled");
    assert_legal(&over, &[]);
    let reset = gateway.call("reset", &json!({ "session": walk.session }).to_string()).1;
    assert_eq!(reset["data"]["state"]["name"], "created", "{reset}");
    place.settled();
}

#[test]
fn an_incident_is_gated_by_evidence() {
    let place = Place::new();
    let gateway = serve(&place, "incident", ("service_status", json!({ "service": "checkout" })));
    let mut walk = Walk { gateway: &gateway, session: None };
    walk.leads("take", json!({ "service": "checkout" }), "taken");
    let early = walk.take("restart", json!({}));
    assert_refused(&early, "invalid_transition", &["hand_over", "investigate"]);
    let stage = walk.leads("investigate", json!({}), "acting");
    assert_legal(&stage, &["complete", "get_metrics", "search_logs"]);
    assert_eq!(stage["next_action_schemas"]["search_logs"]["required"], json!(["service", "text"]), "{stage}");
    let found = walk.leads("search_logs", json!({ "service": "checkout", "text": "memory" }), "acting");
    assert_eq!(found["result"]["lines"], json!(["out of memory: killed"]), "{found}");
    let wrong = walk.take("search_logs", json!({ "service": "checkout" }));
    assert_eq!(wrong["error"]["details"][0]["field"], "text", "{wrong}");
    let past = walk.take("restart_service", json!({ "service": "checkout", "reason": "x" }));
    assert_refused(&past, "unknown_action", &["complete", "get_metrics", "search_logs"]);
    let vague = walk.take("complete", json!({ "cause": "oom" }));
    assert_refused(&vague, "validation_failed", &["complete", "get_metrics", "search_logs"]);
    let made_up = walk.take("complete", json!({ "cause": "out of memory", "evidence": ["logs", "metrics"] }));
    assert_refused(&made_up, "validation_failed", &["complete", "get_metrics", "search_logs"]);
    let suspected = walk.leads("complete", json!({ "cause": "out of memory" }), "suspected");
    assert_eq!(suspected["state"]["fields"]["evidence"], json!([]), "what an agent looked at by itself is none");
    let logs = json!({ "source": "logs", "found": ["out of memory: killed"] });
    // One source is one piece, however often it is read.
    for text in ["memory", "killed"] {
        let cited = walk.leads("cite_logs", json!({ "text": text }), "suspected");
        assert_eq!(cited["state"]["fields"]["evidence"], json!([logs]), "{cited}");
    }
    let early = walk.take("restart", json!({}));
    assert_refused(&early, "invalid_transition", &["cite_logs", "cite_metrics", "hand_over", "investigate"]);
    let cited = walk.leads("cite_metrics", json!({}), "suspected");
    let metrics = json!({ "source": "metrics", "found": [0.4, 0.7, 0.99] });
    assert_eq!(cited["state"]["fields"]["evidence"], json!([logs, metrics]), "{cited}");
    let resolved = walk.leads("restart", json!({}), "resolved");
    assert_eq!(resolved["result"]["restarted"], true, "{resolved}");
    let again = gateway.call("service_status", r#"{"service":"checkout"}"#).1;
    assert_eq!(again["data"]["healthy"], true, "{again}");
    place.settled();
}

#[test]
fn a_large_refund_waits_for_a_person() {
    let place = Place::new();
    let gateway = serve(&place, "refund", ("get_order", json!({ "order": "ord_1001" })));
    let mut walk = Walk { gateway: &gateway, session: None };
    let known = walk.leads("look_up", json!({ "order": "ord_1001" }), "known");
    assert_eq!(known["state"]["fields"]["total"], 74, "{known}");
    let large = walk.take("pay_back", json!({ "amount": 60 }));
    assert_refused(&large, "invalid_transition", &["pay_back", "pay_back_much", "refuse"]);
    let paid = thread::scope(|scope| {
        let paying = scope.spawn(|| walk.leads("pay_back_much", json!({ "amount": 60 }), "paid"));
        let mut asked = Value::Null;
        eventually("a person is asked", || {
            let (_, said) = place.amends(&["queue", "--json", "--queue", "money"]);
            asked = serde_json::from_str::<Value>(&said).expect("JSON")["queue"][0].clone();
            asked.is_object()
        });
        let (code, said) = place.amends(&["answer", asked["id"].as_str().expect("an id"), "approve", "--by", "ada"]);
        assert_eq!(code, 0, "{said}");
        paying.join().expect("the refund")
    });
    assert_eq!(paid["state"]["fields"]["amount"], 60, "{paid}");
    assert_legal(&paid, &["tell"]);
    place.settled();
}

#[test]
fn a_refund_is_taken_back_where_the_customer_cannot_be_told() {
    let place = Place::new();
    let gateway = listening(&place, "refund", "send_email=unprocessable");
    let order = r#"{"order":"ord_1001"}"#;
    eventually("the shop is there", || gateway.call("get_order", order).1["status"] == "success");
    let mut walk = Walk { gateway: &gateway, session: None };
    walk.leads("look_up", json!({ "order": "ord_1001" }), "known");
    walk.leads("pay_back", json!({ "amount": 10 }), "paid");
    let untold = walk.take("tell", json!({ "to": "nobody" }));
    assert_eq!(untold["error"]["kind"], "action_error", "{untold}");
    let session = walk.session.expect("a walk has begun");

    eventually("the refund is taken back", || look(&gateway, &session, "next")["waits"]["undone"] == 1);
    assert_eq!((place.effects("issue_refund"), place.effects("cancel_refund")), (1, 1));
    place.settled();
}

#[test]
fn a_migration_asks_before_its_point_of_no_return() {
    let place = Place::new();
    let gateway = serve(&place, "migration", ("count_rows", json!({ "table": "orders" })));
    let mut walk = Walk { gateway: &gateway, session: None };
    walk.leads("prepare", json!({}), "prepared");
    let copied = walk.leads("copy", json!({}), "copied");
    assert_eq!(copied["state"]["fields"]["rows"], 1000, "{copied}");
    let verified = walk.leads("verify", json!({}), "verified");
    assert_legal(&verified, &["give_up", "switch"]);
    let session = walk.session.clone();
    let switched = thread::scope(|scope| {
        let switching = scope.spawn(|| walk.leads("switch", json!({}), "switched"));
        let mut asked = Value::Null;
        eventually("a person is asked", || {
            let (_, said) = place.amends(&["queue", "--json", "--queue", "dba"]);
            asked = serde_json::from_str::<Value>(&said).expect("JSON")["queue"][0].clone();
            asked.is_object()
        });
        let busy = gateway.call("step", &json!({ "action": "give_up", "session": session }).to_string()).1;
        assert_refused(&busy, "in_flight", &[]);
        let (code, said) = place.amends(&["answer", asked["id"].as_str().expect("an id"), "approve", "--by", "ada"]);
        assert_eq!(code, 0, "{said}");
        switching.join().expect("the switch")
    });
    assert_legal(&switched, &["clean_up"]);
    let mut walk = Walk { gateway: &gateway, session };
    let clean = walk.leads("clean_up", json!({}), "clean");
    assert_legal(&clean, &[]);
    assert_eq!(gateway.call("count_rows", r#"{"table":"orders_v2"}"#).1["data"]["rows"], 1000);
    place.settled();
}

#[test]
fn a_migration_that_is_given_up_leaves_nothing_behind() {
    let place = Place::new();
    let gateway = serve(&place, "migration", ("count_rows", json!({ "table": "orders" })));
    let made = || gateway.call("table_exists", r#"{"table":"orders_v2"}"#).1["data"]["exists"].clone();
    let mut walk = Walk { gateway: &gateway, session: None };
    walk.leads("prepare", json!({}), "prepared");
    walk.leads("copy", json!({}), "copied");
    assert_eq!(made(), true);
    let given_up = walk.leads("give_up", json!({}), "given_up");
    assert_legal(&given_up, &[]);
    assert_eq!(made(), false);
    assert_eq!(gateway.call("count_rows", r#"{"table":"orders"}"#).1["data"]["rows"], 1000);
    place.settled();
}
