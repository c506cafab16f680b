//! An agent of the A2A SDK as an upstream.

use serde_json::{Value, json};

use crate::peer::{Client, python, root};
use crate::support::served::{Listening, serve_tools};
use crate::support::{Gateway, Place, eventually, http};

/// An agent that keeps a book in that place.
fn agent(place: &Place, flags: &[&str]) -> Listening {
    let script = root().join("crates/amends/tests/a2a/agent.py");
    let python = python(script.clone()).get_program().to_string_lossy().into_owned();
    let mut words = vec![python, script.display().to_string(), place.path("agent.txt").display().to_string()];
    words.extend(flags.iter().map(|flag| (*flag).to_owned()));
    Listening::start(&words)
}

/// An agent of fasta2a that keeps the same book.
fn fasta(place: &Place) -> Listening {
    let script = root().join("crates/amends/tests/a2a/fasta.py");
    let python = python(script.clone()).get_program().to_string_lossy().into_owned();
    Listening::start(&[python, script.display().to_string(), place.path("agent.txt").display().to_string()])
}

/// How often the agent noted that.
fn noted(place: &Place, what: &str) -> usize {
    let book = std::fs::read_to_string(place.path("agent.txt")).unwrap_or_default();
    book.lines().filter(|line| *line == what).count()
}

fn call(gateway: &Gateway, words: &str) -> Value {
    let body = json!({ "message": words }).to_string();
    http::post(&gateway.address, "/call/book", &[], body.as_bytes()).1
}

#[test]
fn a_skill_is_a_tool_and_each_end_of_a_task_is_what_it_is() {
    let runs: [&[&str]; 2] = [&[], &["--no-stream"]];
    for flags in runs {
        let place = Place::new();
        let agent = agent(&place, flags);
        let gateway = serve_tools(&place, &format!("a2a = \"{}\"", agent.url), "");
        let booked = call(&gateway, "book 12a");
        assert_eq!(
            (booked["status"].as_str(), booked["data"]["booked"].as_str()),
            (Some("success"), Some("12a")),
            "{booked}"
        );
        assert_eq!(noted(&place, "book 12a"), 1);
        let said = call(&gateway, "message x");
        assert_eq!(said["status"], "success", "{said}");
        for (words, code, certainty) in [
            ("fail x", "ActionError", "in_doubt"),
            ("silent x", "ActionError", "in_doubt"),
            ("reject x", "ActionError", "not_processed"),
        ] {
            let failed = call(&gateway, words);
            assert_eq!(failed["error"]["code"], code, "{words}: {failed}");
            assert_eq!(failed["error"]["certainty"], certainty, "{words}: {failed}");
            assert_eq!(noted(&place, words), 1, "{words} is sent once");
        }
        // Nobody can be asked through this door: the agent is told to stop.
        let asked = call(&gateway, "ask x");
        assert_eq!(asked["error"]["code"], "MissingCapability", "{asked}");
        assert_eq!(noted(&place, "cancelled"), 1);
    }
}

#[test]
fn what_an_agent_asks_is_asked_and_answered_in_the_same_task() {
    let place = Place::new();
    let agent = agent(&place, &[]);
    let gateway = serve_tools(&place, &format!("a2a = \"{}\"", agent.url), "");
    let mut client = Client::of(&gateway.address, &json!({}));
    let task = client.call("m1", "book", json!({ "message": "ask me" }));
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "which seat?");
    let answer = json!({ "message": {
        "messageId": "m2", "taskId": task["id"], "contextId": task["contextId"],
        "role": "ROLE_USER", "parts": [{ "text": "12a" }],
    }});
    let done = client.ask("send", answer)[0]["task"].clone();
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    assert_eq!(done["id"], task["id"]);
    let envelope = &done["artifacts"][0]["parts"][0]["data"];
    assert_eq!(envelope["data"]["answer"], "12a", "{done}");
    assert_eq!(noted(&place, "answered True"), 1);
}

#[test]
fn a_crash_while_an_agent_works_is_settled_by_its_task() {
    let place = Place::new();
    let agent = agent(&place, &[]);
    let upstream = format!("a2a = \"{}\"", agent.url);
    let mut gateway = serve_tools(&place, &upstream, "");
    let mut client = Client::of(&gateway.address, &json!({ "polling": true }));
    let events = client.ask("send", crate::peer::call("m1", "book", json!({ "message": "slow 6" })));
    let id = events[0]["task"]["id"].as_str().expect("a task").to_owned();
    eventually("the agent works", || noted(&place, "began") == 1);
    eventually("the name of its work is recorded", || place.events_named("work_named").len() == 1);
    gateway.kill();
    let gateway = serve_tools(&place, &upstream, "");
    let mut client = Client::of(&gateway.address, &json!({}));
    let mut task = Value::Null;
    eventually("the task is settled", || {
        task = client.ask("get", json!({ "id": id }));
        task["status"]["state"] == "TASK_STATE_COMPLETED"
    });
    let envelope = &task["artifacts"][0]["parts"][0]["data"];
    assert_eq!(envelope["outcome"], "succeeded_after_compensation", "{task}");
    assert_eq!((noted(&place, "slow 6"), noted(&place, "did")), (1, 1), "it is done once");
}

#[test]
fn a_cancel_reaches_the_agent_and_is_what_it_says() {
    let place = Place::new();
    let agent = agent(&place, &[]);
    let gateway = serve_tools(&place, &format!("a2a = \"{}\"", agent.url), "[tools.book]\neffect = \"read\"\n");
    let mut client = Client::of(&gateway.address, &json!({ "polling": true }));
    let events = client.ask("send", crate::peer::call("m1", "book", json!({ "message": "slow 30" })));
    let id = events[0]["task"]["id"].clone();
    eventually("the agent works", || noted(&place, "began") == 1);
    let task = client.ask("cancel", json!({ "id": id }));
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED", "{task}");
    eventually("the agent was told", || noted(&place, "cancelled") == 1);
    assert_eq!(noted(&place, "did"), 0);
    let again = client.ask("cancel", json!({ "id": id }));
    assert_eq!(again["failed"], "TaskNotCancelableError", "{again}");
}

#[test]
fn an_agent_of_fasta2a_is_called_and_judged_as_any_other() {
    let place = Place::new();
    let agent = fasta(&place);
    let gateway = serve_tools(&place, &format!("a2a = \"{}\"", agent.url), "");
    let booked = call(&gateway, "book 12a");
    assert_eq!(
        (booked["status"].as_str(), booked["data"]["booked"].as_str()),
        (Some("success"), Some("12a")),
        "{booked}"
    );
    let failed = call(&gateway, "fail 12b");
    assert_eq!(failed["error"]["code"], "ActionError", "a task that failed without a word: {failed}");
    assert_eq!(failed["error"]["certainty"], "in_doubt", "{failed}");
    for words in ["book 12a", "fail 12b"] {
        assert_eq!(noted(&place, words), 1, "{words} is sent once");
    }
}

#[test]
fn a_crash_while_an_agent_of_fasta2a_works_is_settled_by_its_task() {
    let place = Place::new();
    let agent = fasta(&place);
    let upstream = format!("a2a = \"{}\"", agent.url);
    let mut gateway = serve_tools(&place, &upstream, "");
    let mut client = Client::of(&gateway.address, &json!({ "polling": true }));
    let events = client.ask("send", crate::peer::call("m1", "book", json!({ "message": "slow 6" })));
    let id = events[0]["task"]["id"].as_str().expect("a task").to_owned();
    eventually("the agent works", || noted(&place, "began") == 1);
    eventually("the name of its work is recorded", || place.events_named("work_named").len() == 1);
    gateway.kill();
    let gateway = serve_tools(&place, &upstream, "");
    let mut client = Client::of(&gateway.address, &json!({}));
    eventually("the task is settled", || {
        client.ask("get", json!({ "id": id }))["status"]["state"] == "TASK_STATE_COMPLETED"
    });
    assert_eq!((noted(&place, "slow 6"), noted(&place, "did")), (1, 1), "it is done once");
}

#[test]
fn whoever_has_to_sign_in_for_an_agent_is_told_where_and_it_goes_on_by_itself() {
    let place = Place::new();
    let agent = agent(&place, &[]);
    let gateway = serve_tools(&place, &format!("a2a = \"{}\"", agent.url), "");
    let mut client = Client::of(&gateway.address, &json!({}));
    let task = client.call("m1", "book", json!({ "message": "auth 12a" }));
    assert_eq!(task["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "{task}");
    let said = task["status"]["message"]["parts"].to_string();
    assert!(said.contains("https://id.example.com/sign-in?for=clerk"), "{task}");
    std::fs::write(place.path("signed.txt"), "ada").expect("somebody signs in");
    let mut after = Value::Null;
    eventually("it goes on without a message", || {
        after = client.ask("get", json!({ "id": task["id"] }));
        after["status"]["state"] == "TASK_STATE_COMPLETED"
    });
    assert_eq!(after["artifacts"][0]["parts"][0]["data"]["data"]["booked"], "12a", "{after}");
    assert_eq!((noted(&place, "auth 12a"), noted(&place, "answered True")), (1, 0), "it was told nothing more");
}

#[test]
fn an_agent_that_waits_to_be_told_of_a_sign_in_is_told() {
    let place = Place::new();
    let agent = agent(&place, &[]);
    let gateway = serve_tools(&place, &format!("a2a = \"{}\"", agent.url), "");
    let mut client = Client::of(&gateway.address, &json!({}));
    let task = client.call("m1", "book", json!({ "message": "auth inside" }));
    assert_eq!(task["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "{task}");
    let answer = json!({ "message": {
        "messageId": "m2", "taskId": task["id"], "role": "ROLE_USER", "parts": [{ "text": "I was there" }],
    }});
    let done = client.ask("send", answer)[0]["task"].clone();
    assert_eq!((&done["id"], done["status"]["state"].as_str()), (&task["id"], Some("TASK_STATE_COMPLETED")), "{done}");
    assert_eq!((noted(&place, "auth inside"), noted(&place, "answered True")), (1, 1), "in the same task");
}

#[test]
fn a_task_whose_stream_breaks_is_looked_at_and_sent_once() {
    let place = Place::new();
    let agent = agent(&place, &["--cuts"]);
    let gateway = serve_tools(&place, &format!("a2a = \"{}\"", agent.url), "");
    let done = call(&gateway, "slow 3");
    assert_eq!((done["status"].as_str(), done["data"]["done"].as_bool()), (Some("success"), Some(true)), "{done}");
    assert!(noted(&place, "cut") >= 1, "the line broke");
    assert_eq!((noted(&place, "slow 3"), noted(&place, "did")), (1, 1));
}

#[test]
fn the_time_a_person_takes_does_not_count_as_the_agents() {
    let place = Place::new();
    let agent = agent(&place, &[]);
    let timeout = std::time::Duration::from_secs(3);
    let upstream = format!("a2a = \"{}\"\ntimeout = \"{}s\"\ndeadline = \"60s\"", agent.url, timeout.as_secs());
    let gateway = serve_tools(&place, &upstream, "");
    let mut client = Client::of(&gateway.address, &json!({}));
    let task = client.call("m1", "book", json!({ "message": "ask me" }));
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    std::thread::sleep(timeout * 2);
    let waits = client.ask("get", json!({ "id": task["id"] }));
    assert_eq!(waits["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "longer than the agent may take: {waits}");
    let answer = json!({ "message": {
        "messageId": "m2", "taskId": task["id"], "role": "ROLE_USER", "parts": [{ "text": "12a" }],
    }});
    let done = client.ask("send", answer)[0]["task"].clone();
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    assert_eq!((noted(&place, "ask me"), noted(&place, "cancelled")), (1, 0));
}

#[test]
fn an_agent_that_takes_too_long_is_told_to_stop() {
    let place = Place::new();
    let agent = agent(&place, &[]);
    let upstream = format!("a2a = \"{}\"\ntimeout = \"2s\"\ndeadline = \"20s\"", agent.url);
    let gateway = serve_tools(&place, &upstream, "[tools.book]\neffect = \"write\"\n");
    let late = call(&gateway, "slow 40");
    assert_ne!(late["status"], "success", "{late}");
    assert_ne!(late["error"]["certainty"], "not_sent", "it was sent: {late}");
    eventually("the agent was told", || noted(&place, "cancelled") >= 1);
    assert_eq!((noted(&place, "slow 40"), noted(&place, "did")), (1, 0), "it is sent once: {late}");
}
