//! One upstream dies: the others go on, and what it had stays listed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::place::{Bare, HttpServer, declared, health, listening, raw, serve};
use crate::support::{Place, eventually};

fn unavailable(client: &Bare, tool: &str) -> Option<Value> {
    let tools = client.result("tools/list", json!({}));
    let entry = tools["tools"].as_array()?.iter().find(|entry| entry["name"] == tool)?.clone();
    assert!(entry["description"].as_str().expect("words").ends_with(" of c"), "untouched: {entry}");
    entry["_meta"].get("amends/unavailable").cloned()
}

#[test]
fn a_dead_upstream_stays_listed_and_is_refused_while_the_others_go_on() {
    let place = Place::new();
    let mut c = HttpServer::start(&place, "c", "legacy", 0);
    let upstreams =
        [("a", declared(&raw("a", &[]))), ("b", declared(&raw("b", &["--era", "modern"]))), ("c", c.declared())];
    let breaker = "\n[tools.c__echo]\neffect = \"read\"\n[tools.a__echo]\neffect = \"read\"\n";
    let gateway = serve(&place, &upstreams, breaker);
    let clients = [Bare::stateful(&gateway), Bare::stateless(&gateway)];
    assert_eq!(unavailable(&clients[0], "c__echo"), None);
    c.kill();
    let began = Instant::now();
    let refused = clients[0].call("c__echo", json!({}));
    assert_eq!(
        (&refused["isError"], refused.to_string().contains("ConnectRefused")),
        (&json!(true), true),
        "{refused}"
    );
    eventually("it is marked", || {
        let _ = clients[0].call("c__echo", json!({}));
        unavailable(&clients[0], "c__echo").is_some_and(|note| note["retry_after_ms"].is_u64())
    });
    assert_eq!(health(&gateway)["upstreams"]["c"]["state"], "down");
    let marked = unavailable(&clients[1], "c__echo").expect("a note");
    assert_eq!(marked["upstream"], "c", "{marked}");
    assert!(marked["retry_after_ms"].is_u64(), "{marked}");
    let refused = clients[1].call("c__echo", json!({}));
    let envelope = &refused["structuredContent"];
    assert_eq!(
        (&envelope["status"], &envelope["error"]["kind"]),
        (&json!("refused"), &json!("breaker_open")),
        "{refused}"
    );
    assert!(envelope["error"]["retry_after_ms"].is_u64(), "{refused}");
    for client in &clients {
        assert_eq!(client.list("tools/list", "tools", "name").len(), 15);
        assert_eq!(client.list("prompts/list", "prompts", "name"), ["a__greet", "b__greet", "c__greet"]);
        assert!(client.call("a__echo", json!({})).to_string().contains(r#"\"at\": \"a\""#));
        let (_, away) = client.ask("prompts/get", json!({ "name": "c__greet" }));
        assert_eq!(
            (&away["error"]["code"], &away["error"]["data"]["certainty"]),
            (&json!(-32603), &json!("not_sent")),
            "{away}"
        );
    }
    assert!(began.elapsed() < Duration::from_secs(60), "nobody waits for the dead");
    let port = c.port;
    let _back = HttpServer::start(&place, "c", "legacy", port);
    eventually("it is found again", || clients[0].call("c__echo", json!({})).to_string().contains(r#"\"at\": \"c\""#));
    eventually("the note is gone", || unavailable(&clients[0], "c__echo").is_none());
}

#[test]
fn a_child_that_dies_is_marked_until_it_is_back() {
    let place = Place::new();
    let gateway = serve(&place, &[("a", declared(&raw("a", &[]))), ("c", declared(&raw("c", &[])))], "");
    let client = Bare::stateful(&gateway);
    let process = |said: &Value| {
        said["content"][0]["text"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok()?["pid"].as_u64())
    };
    let first = process(&client.call("c__echo", json!({}))).expect("a process");
    let died = client.call("c__die", json!({}));
    assert_eq!(died["isError"], true, "{died}");
    assert_eq!(client.list("tools/list", "tools", "name").len(), 10);
    eventually("it is back", || process(&client.call("c__echo", json!({}))).is_some_and(|now| now != first));
    eventually("nothing is marked", || unavailable(&client, "c__echo").is_none());
}

#[test]
fn an_upstream_that_never_comes_hides_nobody_and_holds_nobody_up() {
    let place = Place::new();
    // A port that nobody listens on, and a child that never answers its greeting.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let upstreams = [
        ("a", declared(&raw("a", &[]))),
        ("nobody", format!("url = \"http://{nobody}/mcp\"")),
        ("silent", declared(&["python3".into(), "-c".into(), "import sys; [0 for line in sys.stdin]".into()])),
    ];
    let gateway = listening(&place, &upstreams, "");
    let client = Bare::stateful(&gateway);
    eventually("the tools of the one that is there are served", || {
        client.list("tools/list", "tools", "name").len() == 5
    });
    assert!(client.call("a__echo", json!({})).to_string().contains(r#"\"at\": \"a\""#));
    let (_, unknown) = client.ask("tools/call", json!({ "name": "a__nothing" }));
    assert!(unknown.to_string().contains("unknown_name"), "it is known what `a` has: {unknown}");
    let later = client.ask("tools/call", json!({ "name": "nobody__pay" })).1;
    assert!(later.to_string().contains("index_not_ready") && later.to_string().contains("retry_after_ms"), "{later}");
    assert_eq!(health(&gateway)["status"], "degraded");
}
