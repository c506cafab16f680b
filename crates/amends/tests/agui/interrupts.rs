//! What must be answered first: the run ends, and the next one goes on.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::agent::{Agent, asked, envelope, interrupt, outcome, results, statuses};
use crate::support::{Gateway, Place, eventually, served};

/// A gateway whose charges need a yes, which whoever calls may say where `requester` says so.
fn asking(place: &Place, requester: bool, more: &str) -> Gateway {
    let text = format!(
        "[tools.charge_card]\neffect = \"write\"\napproval = \"finance\"\n{more}\n[queues.finance]\nrequester = {requester}\n"
    );
    let config = place.write("approval.toml", &text).display().to_string();
    place.up_with("", &["--config", &config])
}

fn charge_and_write() -> Value {
    charge_of("ord_1")
}

fn charge_of(order: &str) -> Value {
    json!([
        { "tool": "charge_card", "args": { "order": order, "amount": 5.0 } },
        { "tool": "send_email", "args": { "to": "a@b.example", "subject": "s", "body": "b" } },
    ])
}

fn say(place: &Place, id: &str, choice: &str, by: &str) {
    let (code, said) = place.amends(&["answer", id, choice, "--by", by]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn an_approval_ends_the_run_and_the_answer_goes_on_with_the_call_and_the_rest_of_the_plan() {
    let place = Place::new();
    let gateway = asking(&place, true, "");
    let mut agent = Agent::of(&gateway);
    let went = agent.calls("t", charge_and_write());
    let asks = interrupt(&went);
    assert_eq!(
        (&asks["reason"], &asks["toolCallId"]),
        (&json!("tool_call"), &went["state"]["amends"]["steps"][0]["id"])
    );
    assert_eq!(asks["responseSchema"]["properties"]["approved"]["type"], "boolean", "{asks:#}");
    assert!(asks["expiresAt"].as_str().is_some_and(|at| at.ends_with('Z') && at.contains('T')), "{asks:#}");
    assert_eq!((place.requests("charge_card"), results(&went).len()), (0, 0));
    assert_eq!(statuses(&went), ["waiting", "pending"]);

    let went = agent.resume("t", asks["id"].as_str().expect("an id"), json!({ "approved": true }));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done", "done"]), "{went:#}");
    assert_eq!(results(&went)[0]["toolCallId"], asks["toolCallId"]);
    assert_eq!(went["state"]["amends"]["waiting"], Value::Null);
    assert_eq!((place.requests("charge_card"), place.effects("charge_card"), place.effects("send_email")), (1, 1, 1));
    let approved = place.events_named("call_approved");
    assert_eq!(approved.iter().filter(|event| event["yes"] == "person").count(), 1, "{approved:#?}");
    place.settled();
}

#[test]
fn a_denial_and_a_question_that_is_put_away_are_refusals_and_nothing_is_sent() {
    let place = Place::new();
    let gateway = asking(&place, true, "");
    let mut agent = Agent::of(&gateway);
    // The second is about another order: an equal call would hear the first No.
    for (thread, entry) in [
        ("denied", json!({ "status": "resolved", "payload": { "approved": false } })),
        ("put away", json!({ "status": "cancelled" })),
    ] {
        let went = agent.calls(thread, charge_of(thread));
        let mut entry = entry;
        entry["interruptId"] = json!(asked(&went));
        let went = agent.run(json!({ "thread": thread, "resume": [entry] }));
        assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["failed", "pending"]), "{went:#}");
        let said = envelope(results(&went)[0]);
        assert_eq!(
            (&said["status"], &said["error"]["kind"]),
            (&json!("refused"), &json!("approval_denied")),
            "{said:#}"
        );
    }
    assert_eq!((place.requests("charge_card"), place.requests("send_email")), (0, 0));
    place.settled();
}

#[test]
fn a_yes_of_whoever_calls_does_not_count_where_others_are_asked() {
    let place = Place::new();
    let gateway = asking(&place, false, "");
    let mut agent = Agent::of(&gateway);
    let id = asked(&agent.calls("t", charge_and_write()));
    let went = agent.resume("t", &id, json!({ "approved": true }));
    let asks = interrupt(&went);
    assert_eq!(asks["id"], json!(id));
    assert!(asks["metadata"]["amends"]["not_counted"].is_string(), "{asks:#}");
    // To look whether somebody has answered is no answer.
    assert_eq!(asked(&agent.resume("t", &id, Value::Null)), id);
    assert_eq!(place.requests("charge_card"), 0);
    say(&place, &id, "approve", "ada");
    let went = agent.resume("t", &id, Value::Null);
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done", "done"]), "{went:#}");
    assert_eq!(place.effects("charge_card"), 1);
    place.settled();
}

#[test]
fn where_two_must_say_yes_the_second_is_asked_next() {
    let place = Place::new();
    let text = "[tools.charge_card]\neffect = \"write\"\napproval = { queue = \"finance\", persons = 2 }\n";
    let config = place.write("approval.toml", text).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let mut agent = Agent::of(&gateway);
    let first = asked(&agent.calls("t", charge_and_write()));
    say(&place, &first, "approve", "ada");
    let second = asked(&agent.resume("t", &first, Value::Null));
    assert_ne!(first, second);
    say(&place, &second, "approve", "bob");
    let went = agent.resume("t", &second, Value::Null);
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done", "done"]), "{went:#}");
    assert_eq!(place.effects("charge_card"), 1);
}

#[test]
fn a_thread_goes_on_after_the_gateway_was_killed_between_question_and_answer() {
    let place = Place::new();
    let mut gateway = asking(&place, true, "");
    let mut agent = Agent::of(&gateway);
    let went = agent.calls("t", charge_and_write());
    let id = asked(&went);
    gateway.kill();
    drop(agent);
    let gateway = asking(&place, true, "");
    // The client was started again as well: it has what it carried.
    let mut agent = Agent::of(&gateway);
    let resume = json!([{ "interruptId": id, "status": "resolved", "payload": { "choice": "approve" } }]);
    let went = agent.run(json!({ "thread": "t", "state": went["state"], "resume": resume }));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done", "done"]), "{went:#}");
    assert_eq!((place.requests("charge_card"), place.effects("charge_card")), (1, 1));
    place.settled();
}

#[test]
fn a_question_that_nobody_answered_in_time_is_a_refusal() {
    let place = Place::new();
    let gateway = asking(&place, true, "answer_within = \"1s\"");
    let mut agent = Agent::of(&gateway);
    let id = asked(&agent.calls("t", charge_and_write()));
    eventually("the question lapses", || place.events_named("interaction_lapsed").len() == 1);
    // A client of this protocol only puts away what has expired.
    let resume = json!([{ "interruptId": id, "status": "cancelled" }]);
    let went = agent.run(json!({ "thread": "t", "resume": resume }));
    assert_eq!(place.requests("charge_card"), 0);
    match outcome(&went) {
        "success" => assert_eq!(envelope(results(&went)[0])["error"]["kind"], "approval_expired", "{went:#}"),
        // It is a call like any other: somebody is asked about it.
        _ => assert_ne!(asked(&went), id),
    }
}

#[test]
fn what_an_upstream_asks_of_the_user_is_an_interrupt_in_both_eras() {
    for era in ["modern", "legacy"] {
        let place = Place::new();
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/eras/servers/asks.py");
        let done = place.path("done.jsonl").display().to_string();
        let words = ["python3".to_owned(), script.display().to_string(), era.to_owned(), done.clone()];
        let upstream = format!("command = {}", serde_json::to_string(&words).expect("JSON"));
        let gateway = served::serve_tools(&place, &upstream, "[tools.book]\neffect = \"write\"\n");
        let mut agent = Agent::of(&gateway);
        let went = agent.calls("t", json!([{ "tool": "book", "args": { "room": 1 } }]));
        let asks = interrupt(&went);
        assert_eq!(
            (&asks["reason"], &asks["message"]),
            (&json!("input_required"), &json!("how many?")),
            "{era}: {asks:#}"
        );
        assert_eq!(asks["responseSchema"]["properties"]["n"]["type"], "integer", "{era}: {asks:#}");
        let went = agent.resume("t", asks["id"].as_str().expect("an id"), json!({ "n": 3 }));
        assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done"]), "{era}: {went:#}");
        let book = std::fs::read_to_string(&done).expect("something was done");
        assert_eq!(book.lines().count(), 1, "{era}: {book}");
        assert!(book.contains(r#""n": 3"#), "{era}: {book}");
    }
}
