//! An upstream sends somebody to an address, and the agent's client did not say that it takes such questions: a person is asked in its
//! place, and the call goes on when they say that they were there.

use std::thread;

use serde_json::{Value, json};

use crate::asking::{Server, by_command, by_url, call_alone, command, done, params_of, serve};
use crate::support::{Gateway, Place, eventually, http};

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

fn say(place: &Place, question: &Value, choice: &str) {
    let (code, said) = place.amends(&["answer", question["id"].as_str().expect("an id"), choice, "--by", "ada"]);
    assert_eq!(code, 0, "{said}");
}

fn visit(gateway: &Gateway) -> thread::JoinHandle<Value> {
    let address = gateway.address.clone();
    thread::spawn(move || http::post(&address, "/call/visit", &[], br#"{"n":1}"#).1)
}

fn is_asked(place: &Place) -> Value {
    let asked = question(place);
    assert_eq!((&asked["kind"], &asked["subject"]), (&json!("auth_url"), &json!("sign_in")), "{asked}");
    let at = &asked["grounds"]["sign_in"];
    assert_eq!((&at["url"], &at["says"]), (&json!("https://example.org/sign-in"), &json!("sign in")), "{asked}");
    let (_, listed) = place.amends(&["queue"]);
    assert!(listed.contains("sign in for `one` at https://example.org/sign-in"), "{listed}");
    asked
}

#[test]
fn a_person_signs_in_for_an_agent_that_cannot_be_sent_there_and_the_call_goes_on() {
    for (era, by_address) in [("legacy", false), ("legacy", true), ("modern", true)] {
        let place = Place::new();
        let server = by_address.then(|| Server::http(&place, era));
        let upstream = server.as_ref().map_or_else(|| by_command(&command(&place, era)), by_url);
        let gateway = serve(&place, &upstream, "");
        let call = visit(&gateway);
        let asked = is_asked(&place);
        assert_eq!(done(&place), Vec::<Value>::new(), "{era}: nothing is done before");
        say(&place, &asked, "done");
        let answer = call.join().expect("it is answered");
        assert_eq!(answer["status"], "success", "{era}: {answer}");
        assert_eq!(done(&place).len(), 1, "{era}");
        assert_eq!(done(&place)[0]["inputs"][0]["action"], "accept", "{era}");
        let events = place.events();
        let traced = serde_json::to_string(&events).expect("JSON");
        assert!(!traced.contains("example.org"), "{era}: where to sign in is on no trace");
        place.settled();
        place.assert_verified();
    }
}

#[test]
fn nobody_wants_to_sign_in_and_the_upstream_hears_that_or_nothing_more() {
    for era in ["legacy", "modern"] {
        let place = Place::new();
        let server = Server::http(&place, era);
        let gateway = serve(&place, &by_url(&server), "");
        let call = visit(&gateway);
        say(&place, &is_asked(&place), "deny");
        let answer = call.join().expect("it is answered");
        match era {
            // It waits for an answer, and decides what a no means to it.
            "legacy" => assert_eq!(done(&place)[0]["inputs"][0]["action"], "decline", "{answer}"),
            _ => {
                assert_eq!(answer["error"]["kind"], "approval_denied", "{answer}");
                assert_eq!(done(&place), Vec::<Value>::new());
            }
        }
        place.settled();
    }
}

#[test]
fn an_agent_that_comes_back_by_itself_waits_for_whoever_signs_in_also_after_a_restart() {
    let place = Place::new();
    let server = Server::http(&place, "modern");
    let declared = "[tools.visit]\neffect = \"write\"\n";
    let mut gateway = serve(&place, &by_url(&server), declared);
    let params = params_of("visit", &json!({ "n": 2 }), &json!({}));
    let (_, told) = call_alone(&gateway, &params);
    let state = told["result"]["requestState"].clone();
    assert_eq!(told["result"]["resultType"], "input_required", "{told}");
    assert!(state.is_string() && told["result"].get("inputRequests").is_none(), "its client is not asked: {told}");
    let asked = is_asked(&place);
    gateway.kill();
    let gateway = serve(&place, &by_url(&server), declared);
    assert_eq!(question(&place)["id"], asked["id"]);
    say(&place, &asked, "done");
    let mut again = params.clone();
    again["requestState"] = state;
    eventually("it goes on", || {
        let (_, answer) = call_alone(&gateway, &again);
        answer["result"]["structuredContent"]["inputs"][0]["action"] == "accept"
    });
    assert_eq!(done(&place).len(), 1);
    place.settled();
}

#[test]
fn where_nobody_is_there_the_agent_is_told_what_its_client_lacks() {
    let place = Place::new();
    let server = Server::http(&place, "modern");
    let gateway = serve(&place, &by_url(&server), "[people]\nheadless = \"deny\"\n");
    let (_, answer) = gateway.call("visit", r#"{"n":3}"#);
    assert_eq!(answer["error"]["kind"], "missing_capability", "{answer}");
    assert_eq!(queue(&place), Vec::<Value>::new());
}
