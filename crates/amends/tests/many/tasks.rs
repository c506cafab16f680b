//! Calls that are answered with a task, by which their results are fetched later.

use std::time::Duration;

use serde_json::{Value, json};

use crate::place::{Bare, Heard, HttpServer, declared, raw, serve};
use crate::support::{Gateway, Place, eventually};

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

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const CHANGED: &str = "notifications/tools/list_changed";

/// A gateway over a server with tasks of each era and transport.
fn four(place: &Place) -> (Gateway, [HttpServer; 2]) {
    let book = |name: &str| place.path(&format!("{name}.book")).display().to_string();
    let (piped, alone) =
        (raw("piped", &["--tasks", &book("piped")]), raw("alone", &["--era", "modern", "--tasks", &book("alone")]));
    let servers = [("old", "legacy"), ("new", "modern")]
        .map(|(name, era)| HttpServer::start_with(place, name, era, 0, &["--tasks", &book(name)]));
    let upstreams = [
        ("piped", declared(&piped)),
        ("alone", declared(&alone)),
        ("old", servers[0].declared()),
        ("new", servers[1].declared()),
    ];
    (serve(place, &upstreams, ""), servers)
}

/// Begins a task in a session, and gives the id by which its client knows it.
fn begun(client: &Bare, tool: &str, arguments: Value) -> String {
    let handle = client.result("tools/call", json!({ "name": tool, "arguments": arguments, "task": { "ttl": 60000 } }));
    handle["task"]["taskId"].as_str().unwrap_or_else(|| panic!("no task: {handle}")).to_owned()
}

/// Begins a task without a session.
fn begun_alone(client: &Bare, tool: &str, arguments: Value) -> Value {
    client.result("tools/call", declaring(json!({ "name": tool, "arguments": arguments })))
}

/// What is said of tasks until the lists change, which is made to happen after it.
fn of_tasks(client: &Bare, name: &str, heard: &mut Heard) -> Vec<Value> {
    client.call(&format!("{name}__change"), json!({ "n": mint() }));
    let seen = heard.until(CHANGED);
    seen.into_iter().filter(|message| message["method"].as_str().unwrap_or("").contains("tasks")).collect()
}

/// What is heard next but for changes of a list: an upstream that is met late changes ours at any time.
fn of_no_list(heard: &mut Heard) -> Value {
    loop {
        let message = heard.next();
        if message["method"] != CHANGED {
            return message;
        }
    }
}

/// A number that no other call of this process has.
fn mint() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn how_a_task_is_reaches_the_session_that_began_it_and_nobody_else() {
    let place = Place::new();
    let (gateway, _servers) = four(&place);
    for name in ["piped", "old"] {
        let (one, other) = (Bare::stateful(&gateway), Bare::stateful(&gateway));
        let (mut heard, mut silent) = (one.hears(None), other.hears(None));
        // Its own stream may open a moment after its first answer.
        eventually("changes are heard", || {
            one.call(&format!("{name}__change"), json!({ "n": mint() }));
            heard.within(Duration::from_millis(500)).is_some()
        });
        while heard.within(Duration::from_millis(300)).is_some() {}
        while silent.within(Duration::from_millis(300)).is_some() {}
        let id = begun(&one, &format!("{name}__later"), json!({ "n": 1 }));
        for status in ["working", "input_required", "working", "completed"] {
            let advance = json!({ "task": "t0", "status": status, "n": mint() });
            other.call(&format!("{name}__advance"), advance);
            let told = heard.next();
            assert_eq!(told["method"], "notifications/tasks/status", "{name}: {told}");
            let params = json!({ "taskId": id, "status": status, "createdAt": "2026-01-01T00:00:00Z",
                "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": null, "x": 1.0 });
            assert_eq!(told["params"], params, "{name}");
        }
        assert_eq!(of_tasks(&one, name, &mut silent), Vec::<Value>::new(), "{name}: it is not the other's");
        // A session that asks about the task, with the id that only its principal has, hears of it from then on.
        let id = begun(&one, &format!("{name}__later"), json!({ "n": 2 }));
        while silent.within(Duration::from_millis(300)).is_some() {}
        let third = Bare::stateful(&gateway);
        let mut late = third.hears(None);
        for status in ["input_required", "completed"] {
            other.call(&format!("{name}__advance"), json!({ "task": "t1", "status": status, "n": mint() }));
            if status == "input_required" {
                assert_eq!(third.result("tasks/get", json!({ "taskId": id }))["status"], status);
            }
        }
        let told = of_tasks(&one, name, &mut late);
        assert_eq!(told.len(), 1, "{name}: {told:?}");
        assert_eq!((&told[0]["params"]["taskId"], &told[0]["params"]["status"]), (&json!(id), &json!("completed")));
        assert_eq!(of_tasks(&one, name, &mut silent), Vec::<Value>::new(), "{name}: it is not the other's");
    }
}

#[test]
fn what_is_said_of_a_task_before_its_handle_is_known_is_heard_after_it() {
    let place = Place::new();
    let (gateway, _servers) = four(&place);
    for name in ["piped", "old"] {
        let client = Bare::stateful(&gateway);
        let mut heard = client.hears(None);
        let id = begun(&client, &format!("{name}__later"), json!({ "early": true }));
        let told = heard.until("notifications/tasks/status").pop().expect("a message");
        assert_eq!((&told["params"]["taskId"], &told["params"]["status"]), (&json!(id), &json!("completed")), "{told}");
    }
}

#[test]
fn a_client_that_listens_hears_how_its_tasks_are() {
    let place = Place::new();
    let (gateway, _servers) = four(&place);
    let client = Bare::stateless(&gateway);
    for (n, name) in ["alone", "new"].into_iter().enumerate() {
        let ids: Vec<String> = (0..2)
            .map(|n| {
                begun_alone(&client, &format!("{name}__later"), json!({ "n": n }))["taskId"]
                    .as_str()
                    .expect("an id")
                    .to_owned()
            })
            .collect();
        let wants = json!({ "taskIds": [ids[0], "t1", ids[0].replace('A', "B"), "x"], "toolsListChanged": true });
        let params = json!({ "notifications": wants });
        assert_eq!(client.error("subscriptions/listen", params.clone()), (400, -32021), "it declares nothing");
        let id = 100 + n as u64;
        let mut heard = client.listens(id, "subscriptions/listen", declaring(params));
        let first = heard.next();
        assert_eq!(first["params"]["notifications"]["taskIds"], json!([ids[0]]), "{name}: {first}");
        // Another that listens makes us ask anew, and nothing is lost by that.
        let mut other = client.listens(
            200 + n as u64,
            "subscriptions/listen",
            declaring(json!({ "notifications": { "taskIds": [ids[1]] } })),
        );
        assert_eq!(other.next()["params"]["notifications"]["taskIds"], json!([ids[1]]), "{name}");
        for status in ["working", "input_required", "completed"] {
            for task in ["t0", "t1"] {
                client.call(&format!("{name}__advance"), json!({ "task": task, "status": status, "n": mint() }));
            }
            let told = of_no_list(&mut heard);
            assert_eq!(told["method"], "notifications/tasks", "{name}: {told}");
            assert_eq!(
                (&told["params"]["taskId"], &told["params"]["status"]),
                (&json!(ids[0]), &json!(status)),
                "{told}"
            );
            assert_eq!((&told["params"]["_meta"][SUBSCRIPTION], &told["params"]["x"]), (&json!(id), &json!(1.0)));
            let done = &told["params"]["result"]["structuredContent"]["done"];
            assert_eq!(*done, if status == "completed" { json!(true) } else { Value::Null }, "{told}");
            assert_eq!(other.next()["params"]["taskId"], ids[1], "{name}");
        }
        let none = of_tasks(&client, name, &mut heard);
        assert_eq!(none, Vec::<Value>::new(), "{name}: only what was asked for");
    }
}

#[test]
fn a_tool_that_is_only_a_task_in_the_one_era_is_one_in_the_other() {
    let place = Place::new();
    let (gateway, _servers) = four(&place);
    let client = Bare::stateless(&gateway);
    for (n, name) in ["piped", "old"].into_iter().enumerate() {
        let handle = begun_alone(&client, &format!("{name}__only"), json!({ "n": 1 }));
        assert_eq!((&handle["resultType"], &handle["ttlMs"]), (&json!("task"), &Value::Null), "{handle}");
        assert!(handle.get("task").is_none() && handle.get("ttlMs").is_some() && handle["x"] == 1.0, "{handle}");
        let id = handle["taskId"].as_str().expect("an id").to_owned();
        let wants = json!({ "notifications": { "taskIds": [id] } });
        let mut heard = client.listens(300 + n as u64, "subscriptions/listen", declaring(wants));
        assert_eq!(heard.next()["params"]["notifications"]["taskIds"], json!([id]), "{name}");
        for status in ["working", "completed"] {
            client.call(&format!("{name}__advance"), json!({ "task": "t0", "status": status, "n": mint() }));
            let told = heard.next();
            assert_eq!((&told["method"], &told["params"]["status"]), (&json!("notifications/tasks"), &json!(status)));
            assert!(told["params"].get("ttlMs").is_some() && told["params"].get("ttl").is_none(), "{told}");
            let text = &told["params"]["result"]["content"][0]["text"];
            assert_eq!(text.as_str().is_some(), status == "completed", "{told}");
        }
        let task = client.named("tasks/get", &id, json!({ "taskId": id }));
        assert_eq!((&task["status"], &task["resultType"]), (&json!("completed"), &json!("complete")), "{task}");
        assert_eq!(task["result"]["content"][0]["text"], format!("done by {name}"), "{task}");
        let over = client.named("tasks/cancel", &id, json!({ "taskId": id }));
        assert!(over.get("taskId").is_none() && over["resultType"] == "complete", "{over}");
        assert_eq!(done(&place, name), 1, "{name}");
        // Whoever does not understand tasks is told what the server says.
        let refused = client.ask("tools/call", json!({ "name": format!("{name}__only"), "arguments": { "n": 2 } })).1;
        assert!(refused.to_string().contains("only as a task"), "{refused}");
    }
}

#[test]
fn a_session_may_ask_about_its_principals_tasks_of_the_other_era() {
    let place = Place::new();
    let (gateway, _servers) = four(&place);
    for name in ["alone", "new"] {
        let (alone, client) = (Bare::stateless(&gateway), Bare::stateful(&gateway));
        let mut heard = client.hears(None);
        let id = begun_alone(&alone, &format!("{name}__later"), json!({ "n": 1 }))["taskId"].clone();
        let advance = |status: &str| {
            alone.call(&format!("{name}__advance"), json!({ "task": "t0", "status": status, "n": mint() }));
        };
        let task = client.result("tasks/get", json!({ "taskId": id }));
        assert!(task.get("ttl").is_some() && task.get("ttlMs").is_none() && task.get("result").is_none(), "{task}");
        assert_eq!((&task["taskId"], &task["status"]), (&id, &json!("completed")), "{task}");
        let result = client.result("tasks/result", json!({ "taskId": id }));
        assert_eq!(result["content"][0]["text"], format!("done by {name}"), "{result}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id, "{result}");
        advance("working");
        let task = client.result("tasks/cancel", json!({ "taskId": id }));
        assert_eq!((&task["taskId"], &task["status"]), (&id, &json!("cancelled")), "{task}");
        assert_eq!(of_tasks(&client, name, &mut heard), Vec::<Value>::new(), "it was over when it was asked about");
    }
}
