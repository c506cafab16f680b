//! A server that takes its question back: nobody is asked any more, and the call goes on.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::asking::{Server, again, by_command, by_url, call_alone, command, done, events, only_key, params, serve};
use crate::support::{Gateway, PATIENCE, Place, eventually, http};

/// The session that a client of the stateful era gets for its greeting.
pub(crate) fn greeted(gateway: &Gateway) -> String {
    let greeting = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "raw", "version": "0" } } });
    let stream = http::send(&gateway.address, "/mcp", &[], greeting.to_string().as_bytes());
    let head = BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let session =
        head.filter_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned)).next();
    session.expect("a session")
}

/// What comes on a stream of events, one message after the other.
pub(crate) fn messages(stream: TcpStream) -> impl Iterator<Item = Value> {
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.filter_map(|line| line.strip_prefix("data: ").map(|data| serde_json::from_str(data).expect("JSON")))
}

fn withdrawn_on_the_line(place: &Place, gateway: &Gateway) {
    let session = greeted(gateway);
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "retract" } });
    let mut said = messages(http::send(&gateway.address, "/mcp", &headers, call.to_string().as_bytes()));
    let asked = said.next().expect("a question");
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    place.write("done.jsonl.withdraw", "");
    let taken_back = said.next().expect("a word about it");
    assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
    assert_eq!(taken_back["params"]["requestId"], asked["id"], "{taken_back}");
    assert_eq!(taken_back["params"]["reason"], "too late", "in the server's own words: {taken_back}");
    // What the agent says all the same reaches nobody.
    let late = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept", "content": { "n": 1 } } });
    http::post(&gateway.address, "/mcp", &headers, late.to_string().as_bytes());
    place.write("done.jsonl.go", "");
    let answer = said.next().expect("an answer");
    assert_eq!(answer["result"]["structuredContent"]["inputs"], json!(["withdrawn", 0]), "{answer}");
    assert_eq!((events(place, "inquiry_opened"), events(place, "inquiry_withdrawn")), (1, 1));
    assert_eq!((events(place, "inputs_given"), done(place).len()), (0, 1));
    place.assert_verified();
}

#[test]
fn a_question_that_a_server_takes_back_is_taken_back_at_the_agent() {
    let place = Place::new();
    let server = Server::http(&place, "legacy");
    withdrawn_on_the_line(&place, &serve(&place, &by_url(&server), ""));
}

#[test]
fn a_question_that_a_child_takes_back_is_taken_back_at_the_agent() {
    let place = Place::new();
    withdrawn_on_the_line(&place, &serve(&place, &by_command(&command(&place, "legacy")), ""));
}

#[test]
fn whoever_comes_back_with_the_answer_to_a_question_that_was_taken_back_gets_what_became_of_the_call() {
    for effect in ["write", "read"] {
        let place = Place::new();
        let server = Server::http(&place, "legacy");
        let gateway = serve(&place, &by_url(&server), &format!("[tools.retract]\neffect = \"{effect}\""));
        let call = params("retract", &json!({ "order": 1 }));
        let (_, asked) = call_alone(&gateway, &call);
        let back = again(&call, &asked, &json!({ only_key(&asked): { "action": "accept", "content": { "n": 1 } } }));
        place.write("done.jsonl.withdraw", "");
        eventually("the question is taken back", || events(&place, "inquiry_withdrawn") == 1);
        place.write("done.jsonl.go", "");
        let (_, answer) = call_alone(&gateway, &back);
        // A read is not kept: once it is over, its state is over with it.
        if effect == "write" || answer.get("result").is_some_and(|result| result["isError"] != true) {
            assert_eq!(answer["result"]["structuredContent"]["inputs"], json!(["withdrawn", 0]), "{effect}: {answer}");
        } else {
            assert!(answer.to_string().contains("is over"), "{effect}: {answer}");
        }
        eventually("the call is over", || done(&place).len() == 1);
        assert_eq!(events(&place, "inputs_given"), 0, "{effect}");
        place.settled();
        let (_, over) = call_alone(&gateway, &back);
        match effect {
            "write" => assert_eq!(over["result"]["_meta"]["amends/envelope"]["replayed"], true, "{over}"),
            _ => assert!(over.to_string().contains("is over"), "{over}"),
        }
        assert_eq!(done(&place).len(), 1, "{effect}: nothing is sent for it");
    }
}
