//! Calls that are answered with a task, by which their results are fetched later.

use serde_json::{Value, json};

use crate::place::{Bare, HttpServer, declared, raw, serve};
use crate::support::{Gateway, Place};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn gateway(place: &Place) -> (Gateway, HttpServer) {
    let book = |name: &str| place.path(&format!("{name}.book")).display().to_string();
    let (a, b) = (raw("a", &["--tasks", &book("a")]), raw("b", &["--era", "modern", "--tasks", &book("b")]));
    let c = HttpServer::start(place, "c", "modern", 0);
    let upstreams = [("a", declared(&a)), ("b", declared(&b)), ("c", c.declared())];
    (serve(place, &upstreams, ""), c)
}

fn done(place: &Place, name: &str) -> usize {
    std::fs::read_to_string(place.path(&format!("{name}.book"))).map_or(0, |book| book.lines().count())
}

fn declaring(params: Value) -> Value {
    let mut params = params;
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { EXTENSION: {} } });
    params
}

#[test]
fn a_task_of_the_stateful_era_is_found_by_an_id_of_ours() {
    let place = Place::new();
    let (gateway, _c) = gateway(&place);
    let client = Bare::stateful(&gateway);
    let greeting = client.result("initialize", json!({ "protocolVersion": "2025-11-25" }));
    let offered = &greeting["capabilities"]["tasks"];
    assert!(offered["requests"]["tools"].get("call").is_some() && offered.get("list").is_none(), "{greeting}");
    let call = json!({ "name": "a__later", "arguments": { "n": 1 }, "task": { "ttl": 60000 } });
    let handle = client.result("tools/call", call.clone());
    let id = handle["task"]["taskId"].as_str().expect("an id").to_owned();
    assert!(id != "t0" && id.len() > 32, "{id}");
    assert_eq!((&handle["task"]["status"], &handle["task"]["x"]), (&json!("working"), &json!(1.0)), "{handle}");
    assert_eq!(handle["_meta"]["amends/envelope"]["status"], "success", "{handle}");
    let task = client.result("tasks/get", json!({ "taskId": id }));
    assert_eq!((&task["taskId"], &task["status"]), (&json!(id), &json!("completed")), "{task}");
    let result = client.result("tasks/result", json!({ "taskId": id }));
    assert_eq!(result["content"][0]["text"], "done by a");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id, "{result}");
    assert_eq!(client.result("tasks/cancel", json!({ "taskId": id }))["taskId"], id);
    // Everybody shares one session with the upstream, and would see everybody's tasks.
    assert_eq!(client.error("tasks/list", json!({})), (200, -32601));
    for bad in [json!("t0"), json!(""), json!(format!("{id}x")), json!(7), json!(null)] {
        assert_eq!(client.error("tasks/get", json!({ "taskId": bad })).1, -32602, "{bad}");
    }
    assert_eq!(done(&place, "a"), 1);
    let at_once = client.result("tools/call", json!({ "name": "a__later", "arguments": { "n": 2 } }));
    assert_eq!(at_once["structuredContent"]["done"], true, "{at_once}");
    place.settled();
}

#[test]
fn a_task_of_the_stateless_era_is_found_by_an_id_of_ours() {
    let place = Place::new();
    let (gateway, _c) = gateway(&place);
    let client = Bare::stateless(&gateway);
    let discovered = client.result("server/discover", json!({}));
    assert!(discovered["capabilities"]["extensions"].get(EXTENSION).is_some(), "{discovered}");
    let handle = client.result("tools/call", declaring(json!({ "name": "b__later", "arguments": { "n": 1 } })));
    assert_eq!((&handle["resultType"], &handle["status"]), (&json!("task"), &json!("working")), "{handle}");
    let id = handle["taskId"].as_str().expect("an id").to_owned();
    assert!(id != "t0", "{id}");
    let named = |method: &str, params: Value| client.named(method, &id, params);
    let task = named("tasks/get", json!({ "taskId": id }));
    assert_eq!((&task["taskId"], &task["result"]["content"][0]["text"]), (&json!(id), &json!("done by b")), "{task}");
    assert_eq!(task["resultType"], "complete", "{task}");
    named("tasks/update", json!({ "taskId": id, "inputResponses": {} }));
    named("tasks/cancel", json!({ "taskId": id }));
    assert_eq!(client.error("tasks/get", json!({ "taskId": "t0" })).0, 400, "the header is missing");
    assert_eq!(done(&place, "b"), 1);
    // One that does not say that it understands tasks is answered when it is done.
    let at_once = client.call("b__later", json!({ "n": 2 }));
    assert_eq!(at_once["structuredContent"]["done"], true, "{at_once}");
    place.settled();
}

#[test]
fn the_handle_of_a_write_whose_answer_was_lost_is_given_again() {
    let place = Place::new();
    let (gateway, _c) = gateway(&place);
    let client = Bare::stateful(&gateway);
    let call = json!({ "name": "a__later", "arguments": { "n": 1 }, "task": { "ttl": 60000 },
        "_meta": { "amends/key": "k1" } });
    let first = client.result("tools/call", call.clone());
    let again = client.result("tools/call", call);
    assert_eq!(again["task"]["taskId"], first["task"]["taskId"], "{again}");
    assert_eq!(again["_meta"]["amends/envelope"]["replayed"], true, "{again}");
    assert_eq!(done(&place, "a"), 1, "it happened once");
    place.settled();
}
