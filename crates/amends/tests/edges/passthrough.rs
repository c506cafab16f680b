//! What is not a tool call passes through, both ways.

use serde_json::{Value, json};

use crate::pipe::{MODERN, Pipe, head, result};
use crate::servers::{python, serve, words};
use crate::support::http::{post, post_raw};
use crate::support::{Place, eventually};

const METHODS: [&str; 7] = [
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "completion/complete",
    "ping",
];

#[test]
fn other_methods_pass_through_a_wrap_byte_for_byte() {
    let place = Place::new();
    let server = python(&place, "hand.py", &[]);
    let (mut direct, mut wrapped) = (Pipe::start(&words(&server)), Pipe::wrap(&place, &[], &words(&server)));
    let original = direct.greet();
    assert_eq!(result(&wrapped.greet()), result(&original));
    for method in METHODS.into_iter().chain(["logging/setLevel"]) {
        let (id, other) = (direct.ask(method, r#"{"x":1.0}"#), wrapped.ask(method, r#"{"x":1.0}"#));
        assert_eq!(result(&wrapped.answer(other)), result(&direct.answer(id)), "{method}");
    }
    let id = wrapped.ask("vendor/unknown", "{}");
    let refused = wrapped.answer(id);
    assert!(refused.contains(r#""error":{"code":-32601,"message":"no such method","data":{"n":1.0}}"#), "{refused}");
    // Ids come back as they were written, whatever they are.
    for id in [r#""a\u00e9""#, "-7", "1.50", r#""""#] {
        wrapped.line(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
        assert_eq!(result(&wrapped.answer_to(id)), "{}");
    }
}

#[test]
fn other_methods_pass_through_http_where_there_is_one_upstream() {
    let place = Place::new();
    let server = python(&place, "hand.py", &[]);
    let mut direct = Pipe::start(&words(&server));
    direct.greet();
    let gateway = serve(&place, &format!("command = {server:?}"), "");
    eventually("the tools are served", || gateway.call("meta", "{}").0 == 200);
    for method in METHODS {
        let id = direct.ask(method, "{}");
        let original = direct.answer(id);
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#);
        let (status, answer) = post_raw(&gateway.address, "/mcp", &[], request.as_bytes());
        let answer = String::from_utf8(answer).expect("UTF-8");
        assert_eq!((status, result(&answer)), (200, result(&original)), "{method}");
    }
    let greet =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18" } });
    let (_, greeting) = post(&gateway.address, "/mcp", &[], greet.to_string().as_bytes());
    for offered in ["tools", "prompts", "resources", "completions"] {
        assert!(greeting["result"]["capabilities"].get(offered).is_some(), "{offered}: {greeting}");
    }
    let unknown = br#"{"jsonrpc":"2.0","id":1,"method":"vendor/unknown","params":{}}"#;
    assert_eq!(post(&gateway.address, "/mcp", &[], unknown).1["error"]["code"], -32601);
    // A stateless agent gets the stamps that its era wants of a list.
    let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{{"_meta":{{{MODERN}}}}}}}"#);
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "prompts/list")];
    let (status, answer) = post(&gateway.address, "/mcp", &headers, request.as_bytes());
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["result"]["resultType"], "complete");
    assert!(answer["result"]["ttlMs"].is_u64() && answer["result"]["cacheScope"].is_string(), "{answer}");
}

#[test]
fn a_wrapped_server_may_ask_its_client_in_the_middle_of_a_call() {
    let place = Place::new();
    let server = python(&place, "hand.py", &[]);
    let mut pipe = Pipe::wrap(&place, &[], &words(&server));
    pipe.greet();
    let call = pipe.begin("ask_all", "{}");
    let mut asked: Vec<(String, String)> = Vec::new();
    let mut cancelled = None;
    let wanted = [r#""params":{"messages":[],"maxTokens":1.0,"x":"\u00e9"}"#, "roots/list", "elicitation/create"];
    let found = |asked: &[(String, String)], what: &str| {
        asked.iter().find(|(_, line)| line.contains(what)).map(|(id, _)| id.clone())
    };
    while wanted.iter().any(|what| found(&asked, what).is_none()) {
        let line = pipe.next();
        let head = head(&line);
        match head.method.as_deref() {
            Some("notifications/cancelled") => cancelled = Some(line.clone()),
            Some(_) => asked.push((head.id.expect("an id").get().to_owned(), line.clone())),
            None => panic!("nobody has answered yet: {line}"),
        }
    }
    // The server took its first question back: the client never saw it, or hears so, by the name it knows it by.
    if let Some(first) = found(&asked, r#""maxTokens":1}"#) {
        let cancelled = cancelled.unwrap_or_else(|| pipe.next());
        assert!(cancelled.contains(&format!(r#""requestId":{first}"#)), "{first} is not in {cancelled}");
    }
    let ids: std::collections::BTreeSet<&String> = asked.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), asked.len(), "{asked:?}");
    // The answers go back with the server's own ids and all their bytes; one of them is an error.
    let [sample, roots, elicit] = wanted.map(|what| found(&asked, what).expect("it was asked"));
    pipe.line(format!(r#"{{"jsonrpc":"2.0","id":{elicit},"result":{{"action":"accept","content":{{"n":1.0}}}}}}"#));
    pipe.line(format!(r#"{{"jsonrpc":"2.0","id":{roots},"error":{{"code":-1,"message":"no \u00e9","data":1.0}}}}"#));
    pipe.line(format!(r#"{{"jsonrpc":"2.0","id":{sample},"result":{{"role":"assistant","x":1e5}}}}"#));
    let answer: Value = serde_json::from_str(&pipe.answer(call)).expect("JSON");
    let answers = answer["result"]["structuredContent"]["answers"].as_array().expect("a list").clone();
    let answers: Vec<&str> = answers.iter().filter_map(Value::as_str).collect();
    assert_eq!(answers.len(), 3, "{answers:?}");
    let told = |what: &str| answers.iter().any(|answer| answer.ends_with(what));
    assert!(told(r#""result":{"action":"accept","content":{"n":1.0}}}"#), "{answers:?}");
    assert!(told(r#"{"jsonrpc":"2.0","id":"s-1","result":{"role":"assistant","x":1e5}}"#), "{answers:?}");
    // An error is read on the way, so that its text may be escaped otherwise.
    let error = json!({ "code": -1, "message": "no \u{e9}", "data": 1.0 });
    let refused = answers.iter().filter_map(|answer| serde_json::from_str::<Value>(answer).ok());
    assert!(refused.into_iter().any(|answer| answer["id"] == 7 && answer["error"] == error), "{answers:?}");
    assert_eq!(answer["result"]["_meta"]["amends/envelope"]["status"], "success");
}

#[test]
fn notifications_of_a_wrapped_server_stay_before_the_answer_they_came_before() {
    let place = Place::new();
    let server = python(&place, "hand.py", &[]);
    let mut pipe = Pipe::wrap(&place, &[], &words(&server));
    pipe.greet();
    for _ in 0..20 {
        let id = pipe.begin("chat", "{}");
        pipe.answer(id);
        let heard = std::mem::take(&mut pipe.others);
        let expected: Vec<String> = (0..50)
            .map(|n| format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{n},"x":1.0}}}}"#))
            .chain([r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#.to_owned()])
            .collect();
        assert_eq!(heard, expected);
    }
}

#[test]
fn notifications_of_the_client_reach_a_wrapped_server_as_they_are() {
    let place = Place::new();
    let server = python(&place, "hand.py", &[]);
    let mut pipe = Pipe::wrap(&place, &[], &words(&server));
    pipe.greet();
    let said = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{"x":1.0,"y":"\u00e9"}}"#;
    pipe.line(said);
    eventually("the server hears it", || {
        std::fs::read_to_string(place.path("server.log")).is_ok_and(|log| log.lines().any(|line| line == said))
    });
}

#[test]
fn a_long_line_of_the_client_survives_a_talkative_server() {
    let place = Place::new();
    let server = python(&place, "hand.py", &[]);
    let mut pipe = Pipe::wrap(&place, &[], &words(&server));
    pipe.greet();
    // Lines far longer than a pipe holds arrive in pieces, and the server talks between the pieces.
    let long = "x".repeat(1 << 20);
    for _ in 0..10 {
        let chat = pipe.begin("chat", "{}");
        let echo = pipe.begin("echo", &format!(r#"{{"long":"{long}"}}"#));
        pipe.answer(chat);
        let echoed = pipe.answer(echo);
        assert!(echoed.len() > long.len() && echoed.contains(r#""status":"success""#), "{:.300}", echoed);
    }
    assert!(pipe.others.iter().all(|line| line.contains("notifications/")), "{:.300}", pipe.others.concat());
}
