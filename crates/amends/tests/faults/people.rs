//! People: asked where the rules say so, answered from the command line, and heard once.

use serde_json::{Value, json};

use crate::faults;
use crate::support::client::{Client, Sdk, envelope};
use crate::support::{Gateway, Place, eventually};

const ORDER: &str = "ord_1";
const CHARGE: &str = r#"{"order":"ord_1","amount":5}"#;

/// A charge whose answer was lost, and the question about it.
fn doubt(place: &Place, gateway: &Gateway) -> String {
    let (_, charge) = gateway.call("charge_card", CHARGE);
    assert_eq!(charge["outcome"], "unresolved", "{charge}");
    assert_eq!(charge["error"]["who_must_act"], "person", "{charge}");
    let asked = charge["error"]["interaction"].as_str().expect("a question").to_owned();
    let queue = queue(place);
    assert_eq!(queue.len(), 1, "{queue:?}");
    assert_eq!((&queue[0]["id"], &queue[0]["state"]), (&json!(asked), &json!("open")), "{queue:?}");
    asked
}

fn queue(place: &Place) -> Vec<Value> {
    let (code, said) = place.amends(&["queue", "--json"]);
    assert_eq!(code, 0, "{said}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    said["queue"].as_array().cloned().expect("a list")
}

#[test]
fn a_person_says_that_it_happened_and_every_repeat_hears_that() {
    let place = Place::new();
    let gateway = place.up(&faults("charge_card", ORDER, &["lose_response"]));
    let asked = doubt(&place, &gateway);
    let (_, again) = gateway.call("charge_card", CHARGE);
    assert_eq!((&again["replayed"], &again["outcome"]), (&json!(true), &json!("unresolved")), "{again}");

    let (code, said) = place.amends(&["answer", &asked, "happened", "--by", "ada", "--note", "seen at the bank"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("acted on"), "{said}");
    assert!(queue(&place).is_empty());
    let (_, settled) = gateway.call("charge_card", CHARGE);
    assert_eq!(settled["status"], "degraded", "{settled}");
    assert_eq!(settled["degradation_reason"], "settled_by_person", "{settled}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (1, 1));

    let (code, late) = place.amends(&["answer", &asked, "did_not_happen", "--by", "bob"]);
    assert_eq!(code, 1, "{late}");
    assert!(late.contains("ada answered `happened`"), "{late}");
    assert_eq!(place.events_named("doubt_resolved").len(), 1);
    place.settled();
}

#[test]
fn a_person_says_that_it_did_not_happen_and_the_next_equal_call_is_sent_once_nothing_can_arrive() {
    let place = Place::new();
    let config = "[tools.charge_card]\neffect = \"write\"\ntimeout = \"1s\"\nsettles_within = \"2s\"\n";
    let config = place.write("people.toml", config).display().to_string();
    let gateway = place.up_with(&faults("charge_card", ORDER, &["lose_request"]), &["--config", &config]);
    let asked = doubt(&place, &gateway);
    let (code, said) = place.amends(&["answer", &asked, "did_not_happen"]);
    assert_eq!(code, 0, "{said}");
    // For another three seconds at most, the request might still arrive.
    let mut again = json!(null);
    eventually("the charge is sent again", || {
        again = gateway.call("charge_card", CHARGE).1;
        let sent = again["status"] == "success";
        assert!(sent || again["replayed"] == true, "{again}");
        sent
    });
    assert_eq!(again.get("replayed"), None, "{again}");
    assert_eq!(place.effects("charge_card"), 1);
    place.settled();
}

#[test]
fn an_answer_given_while_no_gateway_runs_counts_when_one_does() {
    let place = Place::new();
    let mut gateway = place.up(&faults("charge_card", ORDER, &["lose_response"]));
    let asked = doubt(&place, &gateway);
    gateway.kill();
    let (code, said) = place.amends(&["answer", &asked, "happened"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("as soon as a gateway runs"), "{said}");

    let gateway = place.up("");
    eventually("the answer is acted on", || place.events_named("doubt_resolved").len() == 1);
    let (_, settled) = gateway.call("charge_card", CHARGE);
    assert_eq!(settled["status"], "degraded", "{settled}");
    assert_eq!(place.effects("charge_card"), 1);
    place.settled();
}

#[test]
fn what_is_no_answer_is_refused_with_the_answers_there_are() {
    let place = Place::new();
    let gateway = place.up(&faults("charge_card", ORDER, &["lose_response"]));
    let asked = doubt(&place, &gateway);
    assert_eq!(place.amends(&["answer", &asked, "perhaps"]).0, 2);
    assert_eq!(place.amends(&["answer", "int_nobody", "happened"]).0, 2);
    assert_eq!(queue(&place).len(), 1);
    place.settled();
}

#[test]
fn a_call_waits_for_a_person_who_lets_it_be_sent_again() {
    let place = Place::new();
    let config = "[tools.get_order]\neffect = \"read\"\n\
                  [tools.get_order.playbook.server_error_5xx]\ncompensation = \"escalate_to_human\"\nqueue = \"ops\"\n";
    let config = place.write("ask.toml", config).display().to_string();
    let script = [faults("get_order", ORDER, &["status_500"]), faults("get_order", "ord_2", &["status_500"])].concat();
    let gateway = place.up_with(&script, &["--config", &config]);
    for (order, choice, sends) in [(ORDER, "approve", 2), ("ord_2", "deny", 1)] {
        let mut client = Client::http(Sdk::Python, Some("legacy"), &gateway.mcp());
        let call = client.begin_call("get_order", json!({ "order": order }));
        eventually("a person is asked", || !queue(&place).is_empty());
        let asked = queue(&place)[0].clone();
        assert_eq!((&asked["queue"], &asked["kind"]), (&json!("ops"), &json!("approve")), "{asked}");
        let (code, said) = place.amends(&["answer", asked["id"].as_str().expect("an id"), choice]);
        assert_eq!(code, 0, "{said}");
        let answer = client.finish(call);
        if choice == "approve" {
            assert_ne!(answer["result"]["isError"], true, "{answer}");
        } else {
            let envelope = envelope(&answer);
            assert_eq!(envelope["outcome"], "escalated", "{envelope}");
        }
        assert_eq!(place.requests_on("get_order", order), sends, "{choice}");
    }
    place.settled();
}

#[test]
fn a_denial_is_final_and_its_reviewer_is_told_once() {
    let place = Place::new();
    let gateway = place.up(&faults("charge_card", ORDER, &["forbidden", "forbidden"]));
    for _ in 0..2 {
        let (_, denied) = gateway.call("charge_card", CHARGE);
        assert_eq!(denied["outcome"], "escalated", "{denied}");
        assert_eq!(denied["error"]["verdict"], "policy_denied", "{denied}");
    }
    let queue = queue(&place);
    assert_eq!(queue.len(), 1, "{queue:?}");
    assert_eq!(queue[0]["queue"], "policy_review");
    place.settled();
}
