//! A server that has both eras is spoken to in that of each agent.

use serde_json::{Value, json};

use crate::asking::{Server, by_url, done, serve};
use crate::support::client::{Client, Sdk};
use crate::support::served::Listening;
use crate::support::{Place, root};

fn inputs() -> Value {
    json!({ "elicitation/create": { "action": "accept", "content": { "n": 3 } } })
}

/// How often the server was greeted in the stateful way.
fn greetings(place: &Place) -> usize {
    std::fs::read_to_string(place.path("done.jsonl.greetings")).unwrap_or_default().lines().count()
}

#[test]
fn each_agent_is_asked_in_its_own_era_and_the_server_is_greeted_once_for_each() {
    let place = Place::new();
    let server = Server::http(&place, "both");
    let gateway = serve(&place, &by_url(&server), "");
    assert_eq!(greetings(&place), 0, "nobody needed it yet");
    let mut modern = Client::http_with_inputs(Sdk::Python, "modern", &inputs(), &gateway.mcp());
    let refused = modern.call("push", json!({ "of": "modern" }));
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let booked = modern.call("book", json!({ "of": "modern" }));
    assert_eq!(booked["result"]["structuredContent"]["inputs"][0]["content"]["n"], 3, "{booked}");
    assert_eq!(greetings(&place), 0, "the stateless ones need none");
    for sdk in [Sdk::Python, Sdk::TypeScript] {
        let mut legacy = Client::http_with_inputs(sdk, "legacy", &inputs(), &gateway.mcp());
        for n in 0..3 {
            let pushed = legacy.call("push", json!({ "of": format!("{sdk:?} {n}") }));
            let given = &pushed["result"]["structuredContent"]["inputs"][0]["content"]["n"];
            assert_eq!(given, 3, "{sdk:?}: {pushed}");
        }
    }
    assert_eq!(greetings(&place), 1);
    assert_eq!(done(&place).len(), 7, "each was done once");
    place.settled();
}

#[test]
fn a_server_that_has_only_the_newer_era_is_asked_for_the_other_once() {
    let place = Place::new();
    let server = Server::http(&place, "modern");
    let gateway = serve(&place, &by_url(&server), "");
    let mut legacy = Client::http_with_inputs(Sdk::Python, "legacy", &inputs(), &gateway.mcp());
    for n in 0..3 {
        let booked = legacy.call("book", json!({ "n": n }));
        assert_eq!(booked["result"]["structuredContent"]["inputs"][0]["content"]["n"], 3, "{booked}");
    }
    assert_eq!(done(&place).len(), 3);
}

#[test]
fn a_tool_of_the_sdk_that_asks_while_it_works_asks_a_stateful_agent() {
    let place = Place::new();
    let python = root().join("target/clients/venv/bin/python").display().to_string();
    let script = root().join("crates/amends/tests/eras/servers/both.py").display().to_string();
    let server = Listening::start(&[python, script, place.path("done.jsonl").display().to_string()]);
    let gateway = serve(&place, &format!("url = {:?}", server.url), "");
    let mut legacy = Client::http_with_inputs(Sdk::Python, "legacy", &inputs(), &gateway.mcp());
    let answer = legacy.call("book", json!({ "order": 7 }));
    assert_eq!(answer["result"]["content"][0]["text"], "7 times 3", "{answer}");
    assert_eq!(done(&place).len(), 1);
}
