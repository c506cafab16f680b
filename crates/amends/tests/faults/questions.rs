//! What people are asked for before a call is made: nothing is sent before the answer, and what is sent is what was answered.

use std::thread;

use serde_json::{Value, json};

use crate::support::client::{Client, Sdk, envelope};
use crate::support::{Gateway, Place, eventually, http};

const CHARGE: &str = r#"{"order":"ord_1"}"#;
const QUESTIONS: &str = r#"
[questions.terms]
message = "How much, and what for?"
queue = "finance"
schema = { type = "object", properties = { amount = { type = "integer", minimum = 1, maximum = 100 }, card = { type = "string" } }, required = ["amount"] }

[questions.size]
message = "Which amount is it?"
queue = "finance"
field = "order"
options = ["ord_1", "ord_2"]
"#;

/// A gateway whose charges ask people those questions first, with whatever else.
fn asking(place: &Place, ask: &str, more: &str) -> Gateway {
    let text = format!("{QUESTIONS}[tools.charge_card]\neffect = \"write\"\nask = {ask}\n{more}\n");
    let config = place.write("questions.toml", &text).display().to_string();
    place.up_with("", &["--config", &config])
}

fn queue(place: &Place) -> Vec<Value> {
    let (code, said) = place.amends(&["queue", "--json"]);
    assert_eq!(code, 0, "{said}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    said["queue"].as_array().cloned().expect("a list")
}

/// The one question that is open, once it is.
fn question(place: &Place) -> Value {
    eventually("a person is asked", || queue(place).len() == 1);
    queue(place).remove(0)
}

fn id_of(question: &Value) -> String {
    question["id"].as_str().expect("an id").to_owned()
}

fn begin(gateway: &Gateway, arguments: &str) -> thread::JoinHandle<(u16, Value)> {
    let (address, body) = (gateway.address.clone(), arguments.to_owned());
    thread::spawn(move || http::post(&address, "/call/charge_card", &[], body.as_bytes()))
}

/// Gives an answer in full.
fn give(place: &Place, id: &str, content: &str) -> (i32, String) {
    place.amends(&["answer", id, "answer", "--by", "ada", "--content", content])
}

/// The arguments that the shop was sent.
fn sent(place: &Place) -> Vec<Value> {
    let book = rusqlite::Connection::open(place.path("book.db")).expect("the shop's book");
    let mut rows = book.prepare("SELECT args FROM requests WHERE tool = 'charge_card' ORDER BY id").expect("its table");
    let found = rows.query_map([], |row| row.get::<_, String>(0)).expect("rows");
    found.map(|text| serde_json::from_str(&text.expect("a text")).expect("JSON")).collect()
}

#[test]
fn what_a_person_answers_goes_into_the_call_and_what_does_not_fit_is_no_answer() {
    let place = Place::new();
    let gateway = asking(&place, "[\"terms\"]", "");
    let call = begin(&gateway, CHARGE);
    let asked = question(&place);
    assert_eq!((&asked["kind"], &asked["queue"], &asked["tool"]), (&json!("ask"), &json!("finance"), &json!("terms")));
    assert_eq!(asked["question"], "How much, and what for?");
    assert!(asked["view"].as_str().is_some_and(|view| view.contains("ord_1")), "what it is for: {asked}");
    let id = id_of(&asked);
    for wrong in ["{}", r#"{"amount":"much"}"#, r#"{"amount":1000}"#, "[]", "no json"] {
        assert_ne!(give(&place, &id, wrong).0, 0, "{wrong}");
    }
    assert_ne!(place.amends(&["answer", &id, "approve", "--by", "ada"]).0, 0, "that is not what was asked");
    assert_eq!(queue(&place).len(), 1);
    assert_eq!(place.requests("charge_card"), 0);
    let (code, said) = give(&place, &id, r#"{"amount":42,"card":"zebra stripes"}"#);
    assert_eq!(code, 0, "{said}");
    let (_, answer) = call.join().expect("it is answered");
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!(sent(&place), [json!({ "order": "ord_1", "amount": 42, "card": "zebra stripes" })]);
    let trace = serde_json::to_string(&place.events_named("interaction_answered")).expect("JSON");
    assert!(!trace.contains("zebra"), "the trace has who answered, and not what: {trace}");
    place.settled();
}

#[test]
fn one_of_several_is_chosen_and_the_person_counts_before_the_agent() {
    let place = Place::new();
    let gateway = asking(&place, "[\"size\", \"terms\"]", "");
    let call = begin(&gateway, r#"{"order":"whatever","amount":7}"#);
    let asked = question(&place);
    assert_eq!((&asked["kind"], &asked["options"]), (&json!("select"), &json!(["ord_1", "ord_2", "deny"])));
    let id = id_of(&asked);
    assert_ne!(place.amends(&["answer", &id, "ord_3", "--by", "ada"]).0, 0);
    assert_eq!(place.amends(&["answer", &id, "ord_2", "--by", "ada"]).0, 0);
    eventually("the second question is asked", || queue(&place).iter().any(|asked| asked["kind"] == "ask"));
    let (code, said) = give(&place, &id_of(&question(&place)), r#"{"amount":9}"#);
    assert_eq!(code, 0, "{said}");
    let (_, answer) = call.join().expect("it is answered");
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!(sent(&place), [json!({ "order": "ord_2", "amount": 9 })]);
    place.settled();
}

#[test]
fn a_no_ends_the_call_and_nobody_who_is_there_is_one() {
    let place = Place::new();
    let gateway = asking(&place, "[\"terms\"]", "");
    let call = begin(&gateway, CHARGE);
    assert_eq!(place.amends(&["answer", &id_of(&question(&place)), "deny", "--by", "ada"]).0, 0);
    let (_, answer) = call.join().expect("it is answered");
    assert_eq!(
        (&answer["status"], &answer["error"]["kind"]),
        (&json!("refused"), &json!("approval_denied")),
        "{answer}"
    );
    assert_eq!(place.requests("charge_card"), 0);
    drop(gateway);

    let place = Place::new();
    let gateway = asking(&place, "[\"terms\"]", "[people]\nheadless = \"approve\"\n");
    let (_, answer) = gateway.call("charge_card", CHARGE);
    assert_eq!(answer["error"]["kind"], "approval_denied", "a default gives no amount: {answer}");
    assert_eq!(place.requests("charge_card"), 0);
}

#[test]
fn an_answer_after_the_agent_was_told_is_good_for_its_next_equal_call() {
    let place = Place::new();
    let gateway = asking(&place, "[\"terms\"]", "[people]\nhold = \"0s\"\n");
    let (_, waits) = gateway.call("charge_card", CHARGE);
    assert_eq!(waits["error"]["kind"], "awaiting_person", "{waits}");
    assert_eq!(give(&place, &id_of(&question(&place)), r#"{"amount":5}"#).0, 0);
    eventually("the answer is kept", || place.events_named("call_approved").len() == 1);
    assert_eq!(place.requests("charge_card"), 0);
    let (_, answer) = gateway.call("charge_card", CHARGE);
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!(sent(&place), [json!({ "order": "ord_1", "amount": 5 })]);
    let (_, another) = gateway.call("charge_card", CHARGE);
    assert_eq!(another["error"]["kind"], "awaiting_person", "an answer is spent once: {another}");
}

#[test]
fn a_question_outlives_its_gateway() {
    let place = Place::new();
    let mut gateway = asking(&place, "[\"terms\"]", "");
    let _call = gateway.begin("charge_card", CHARGE);
    let asked = question(&place);
    gateway.kill();
    let gateway = asking(&place, "[\"terms\"]", "");
    eventually("the session is taken up", || place.events_named("resumed").len() == 1);
    assert_eq!(give(&place, &id_of(&asked), r#"{"amount":6}"#).0, 0);
    eventually("the answer is kept", || place.events_named("call_approved").len() == 1);
    let (_, answer) = gateway.call("charge_card", CHARGE);
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!(sent(&place), [json!({ "order": "ord_1", "amount": 6 })]);
    place.settled();
}

#[test]
fn what_was_answered_is_what_is_approved_and_what_the_policies_judge() {
    let place = Place::new();
    let policy = "[policy]\ntext = '''\npermit (principal, action in Action::\"read\", resource);\n\
                  permit (principal, action == Action::\"charge_card\", resource) when { context.args.amount.lessThan(decimal(\"50.0\")) };\n'''\n\
                  [people]\nhold = \"30s\"\n";
    let gateway = asking(&place, "[\"terms\"]\napproval = \"owner\"", policy);
    let call = begin(&gateway, CHARGE);
    assert_eq!(give(&place, &id_of(&question(&place)), r#"{"amount":77}"#).0, 0);
    let (_, answer) = call.join().expect("it is answered");
    assert_eq!(answer["error"]["kind"], "policy_blocked", "{answer}");

    let call = begin(&gateway, r#"{"order":"ord_2"}"#);
    eventually("it is asked", || queue(&place).iter().any(|asked| asked["kind"] == "ask"));
    let asked = queue(&place).into_iter().find(|asked| asked["kind"] == "ask").expect("it is there");
    assert_eq!(give(&place, &id_of(&asked), r#"{"amount":8}"#).0, 0);
    eventually("the yes is asked for", || queue(&place).iter().any(|asked| asked["queue"] == "owner"));
    let asked = queue(&place).into_iter().find(|asked| asked["queue"] == "owner").expect("it is there");
    assert!(asked["view"].as_str().is_some_and(|view| view.contains('8')), "the whole of it: {asked}");
    assert_eq!(place.requests("charge_card"), 0);
    assert_eq!(place.amends(&["answer", &id_of(&asked), "approve", "--by", "bob"]).0, 0);
    let (_, answer) = call.join().expect("it is answered");
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!(sent(&place), [json!({ "order": "ord_2", "amount": 8 })]);
}

#[test]
fn whoever_called_answers_in_its_own_client() {
    for era in ["legacy", "modern"] {
        let place = Place::new();
        let gateway = asking(&place, "[\"terms\"]", "");
        let said = json!({ "elicitation/create": { "action": "accept", "content": { "amount": 12 } } });
        let mut client = Client::http_with_inputs(Sdk::Python, era, &said, &gateway.mcp());
        let answer = client.call("charge_card", json!({ "order": "ord_1" }));
        assert_ne!(answer["result"]["isError"], true, "{era}: {answer}");
        assert_eq!(sent(&place), [json!({ "order": "ord_1", "amount": 12 })], "{era}");
        place.settled();
    }
    let place = Place::new();
    let gateway = asking(&place, "[\"terms\"]", "");
    let said = json!({ "elicitation/create": { "action": "decline" } });
    let mut client = Client::http_with_inputs(Sdk::Python, "legacy", &said, &gateway.mcp());
    let answer = client.call("charge_card", json!({ "order": "ord_1" }));
    assert_eq!(envelope(&answer)["error"]["kind"], "approval_denied", "{answer}");
    assert_eq!(place.requests("charge_card"), 0);
}

#[test]
fn an_action_of_a_machine_asks_and_the_next_one_uses_the_answer() {
    let machine = r#"
[machines.pay]
initial = "new"
terminal = ["paid"]
[machines.pay.actions.settle_terms]
from = ["new"]
to = "known"
tool = "terms"
args = { about = "inputs.order" }
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
writes = { order = "inputs.order", amount = "result.amount" }
[machines.pay.actions.pay]
from = ["known"]
to = "paid"
tool = "charge_card"
args = { order = "state.order", amount = "state.amount" }
"#;
    let place = Place::new();
    let text = format!("{QUESTIONS}[tools.charge_card]\neffect = \"write\"\n{machine}");
    let config = place.write("machine.toml", &text).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let address = gateway.address.clone();
    let step = move |body: Value| http::post(&address, "/call/step", &[], body.to_string().as_bytes()).1;
    let asks = step.clone();
    let first = thread::spawn(move || asks(json!({ "action": "settle_terms", "inputs": { "order": "ord_1" } })));
    assert_eq!(give(&place, &id_of(&question(&place)), r#"{"amount":21}"#).0, 0);
    let first = first.join().expect("it is answered");
    let session = first["data"]["session"].as_str().unwrap_or_else(|| panic!("{first}")).to_owned();
    let second = step(json!({ "session": session, "action": "pay", "inputs": {} }));
    assert_eq!(second["status"], "success", "{second}");
    assert_eq!(sent(&place), [json!({ "order": "ord_1", "amount": 21 })]);
}
