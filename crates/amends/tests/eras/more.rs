//! Cancelling, noting down, prompts, and a server nobody here wrote.

use serde_json::json;

use crate::asking::{Server, by_command, by_url, call_alone, done, events, headers, message, params, serve};
use crate::support::client::{Client, Sdk};
use crate::support::{Place, eventually, http, root};

#[test]
fn a_cancel_while_the_agent_is_asked_reaches_the_upstream() {
    let place = Place::new();
    let server = Server::http(&place, "legacy");
    let gateway = serve(&place, &by_url(&server), "");
    let never = json!({ "elicitation/create": { "never": true } });
    let mut client = Client::http_with_inputs(Sdk::Python, "legacy", &never, &gateway.mcp());
    let call = client.begin_call("book", json!({ "order": 1 }));
    eventually("the agent is asked", || events(&place, "inquiry_opened") == 1);
    client.run(json!({ "op": "cancel", "call": call }));
    eventually("the server hears of it", || done(&place).iter().any(|line| line.get("cancelled").is_some()));
    eventually("the question is taken back", || events(&place, "inquiry_closed") == 1);
    assert!(done(&place).iter().all(|line| line.get("tool").is_none()));
}

#[test]
fn what_a_server_notes_down_comes_before_its_answer() {
    let place = Place::new();
    let server = Server::http(&place, "legacy");
    let gateway = serve(&place, &by_url(&server), "");
    let mut call = params("plain", &json!({ "note": true }));
    let (_, quiet) = call_alone(&gateway, &call);
    assert!(quiet["result"]["structuredContent"]["inputs"].is_array(), "{quiet}");
    call["arguments"] = json!({ "note": true, "loud": true });
    call["_meta"]["io.modelcontextprotocol/logLevel"] = json!("info");
    let given = headers(&call);
    let given: Vec<(&str, &str)> = given.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let (status, body) = http::post_raw(&gateway.address, "/mcp", &given, message(&call).as_bytes());
    let text = String::from_utf8(body).expect("text");
    let (noted, answered) = (text.find("notifications/message"), text.find("\"inputs\""));
    assert!(status == 200 && noted.is_some() && noted < answered, "{text}");
}

#[test]
fn a_prompt_is_asked_about_in_either_era() {
    let place = Place::new();
    let server = Server::http(&place, "modern");
    let gateway = serve(&place, &by_url(&server), "");
    let answer = json!({ "elicitation/create": { "action": "accept", "content": { "n": 4 } } });
    for era in ["modern", "legacy"] {
        let mut client = Client::http_with_inputs(Sdk::Python, era, &answer, &gateway.mcp());
        let got = client.run(json!({ "op": "prompt", "name": "greeting" }));
        let text = &got["result"]["messages"][0]["content"]["text"];
        assert_eq!(text, "4", "{era}: {got}");
    }
}

#[test]
fn a_resource_is_asked_about_in_either_era_by_a_server_of_either() {
    for server_era in ["modern", "legacy", "both"] {
        let place = Place::new();
        let server = Server::http(&place, server_era);
        let gateway = serve(&place, &by_url(&server), "");
        let answer = json!({ "elicitation/create": { "action": "accept", "content": { "n": 4 } } });
        for era in ["modern", "legacy"] {
            let mut client = Client::http_with_inputs(Sdk::Python, era, &answer, &gateway.mcp());
            let read = json!({ "op": "ask", "method": "resources/read", "params": { "uri": "asks://one" } });
            let got = client.run(read);
            if (era, server_era) == ("modern", "legacy") {
                // A server that waits for its answer cannot wait for a client that goes away to come back: it is told so.
                assert_ne!(got["ok"], true, "{got}");
                continue;
            }
            assert_eq!(got["result"]["contents"][0]["text"], "4", "{era} to {server_era}: {got}");
        }
    }
}

#[test]
fn a_server_of_the_sdk_asks_clients_of_either_era() {
    for era in ["modern", "legacy"] {
        let place = Place::new();
        let python = root().join("target/clients/venv/bin/python").display().to_string();
        let script = root().join("crates/amends/tests/eras/servers/sdk.py").display().to_string();
        let words = [python, script, place.path("done.jsonl").display().to_string()];
        let gateway = serve(&place, &by_command(&words), "");
        let answer = json!({ "elicitation/create": { "action": "accept", "content": { "n": 3 } } });
        let mut client = Client::http_with_inputs(Sdk::Python, era, &answer, &gateway.mcp());
        let answer = client.call("book", json!({ "order": 7 }));
        assert_eq!(answer["result"]["content"][0]["text"], "7 times 3", "{era}: {answer}");
        assert_eq!(done(&place).len(), 1, "{era}");
    }
}
