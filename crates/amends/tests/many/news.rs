//! What upstreams say of their own accord reaches the clients that want to hear it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::place::{Bare, Heard, HttpServer, declared, raw, serve};
use crate::support::{Gateway, Place, eventually};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const LISTS: [&str; 3] =
    ["notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"];

/// A gateway over a server of each era and transport.
fn four(place: &Place) -> (Gateway, [HttpServer; 2]) {
    let servers = [HttpServer::start(place, "old", "legacy", 0), HttpServer::start(place, "new", "modern", 0)];
    let upstreams = [
        ("piped", declared(&raw("piped", &[]))),
        ("alone", declared(&raw("alone", &["--era", "modern"]))),
        ("old", servers[0].declared()),
        ("new", servers[1].declared()),
    ];
    (serve(place, &upstreams, ""), servers)
}

/// Makes an upstream change its lists until that is heard: its own stream may open a moment after its first answer.
fn change(client: &Bare, name: &str, heard: &mut Heard) -> Vec<Value> {
    let mut seen = Vec::new();
    for _ in 0..60 {
        client.call(&format!("{name}__change"), json!({ "again": mint() }));
        while let Some(message) = heard.within(Duration::from_secs(1)) {
            seen.push(message);
            let methods: BTreeSet<&str> = seen.iter().filter_map(|message| message["method"].as_str()).collect();
            if LISTS.iter().all(|list| methods.contains(list)) {
                return seen;
            }
        }
    }
    panic!("the changes of `{name}` were never heard: {seen:?}");
}

#[test]
fn a_stateful_client_hears_of_changed_lists_of_every_upstream() {
    let place = Place::new();
    let (gateway, _servers) = four(&place);
    let client = Bare::stateful(&gateway);
    for name in ["piped", "alone", "old", "new"] {
        let mut heard = client.hears(None);
        for message in change(&client, name, &mut heard) {
            assert!(message.get("id").is_none() && message["params"].get("_meta").is_none(), "{message}");
        }
        // What was heard may have been of another upstream, which had just started.
        let (tool, uri) = (format!("{name}__added"), format!("{name}://added"));
        eventually("its tool is listed", || client.list("tools/list", "tools", "name").contains(&tool));
        eventually("its resource is listed", || client.list("resources/list", "resources", "uri").contains(&uri));
        assert!(client.call(&format!("{name}__added"), json!({})).to_string().contains(name));
    }
}

#[test]
fn a_client_that_listens_hears_what_it_asked_for_and_nothing_else() {
    let place = Place::new();
    let (gateway, _servers) = four(&place);
    let client = Bare::stateless(&gateway);
    for (n, name) in ["piped", "alone", "old", "new"].into_iter().enumerate() {
        let id = 100 + n as u64;
        let uri = format!("{name}://one");
        // What is not listed yet lives nowhere, and would not be told of.
        eventually("it is listed", || client.list("resources/list", "resources", "uri").contains(&uri));
        let wants = json!({ "promptsListChanged": true, "toolsListChanged": false,
            "resourceSubscriptions": [uri, "nowhere:x"], "unknown": true });
        let mut heard = client.listens(id, "subscriptions/listen", json!({ "notifications": wants }));
        let first = heard.next();
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        assert_eq!(first["params"]["_meta"][SUBSCRIPTION], id, "{first}");
        assert_eq!(first["params"]["notifications"]["promptsListChanged"], true, "{first}");
        assert!(first["params"]["notifications"].get("toolsListChanged").is_none(), "{first}");
        let honoured = first["params"]["notifications"]["resourceSubscriptions"].as_array().expect("a list");
        assert!(honoured.contains(&json!(uri)), "{first}");
        let updated = (0..60).find_map(|again| {
            client.call(&format!("{name}__touch"), json!({ "uri": uri, "again": again }));
            client.call(&format!("{name}__change"), json!({ "again": again }));
            let mut seen = Vec::new();
            while let Some(message) = heard.within(Duration::from_millis(500)) {
                assert_eq!(message["params"]["_meta"][SUBSCRIPTION], id, "{message}");
                seen.push(message);
            }
            let methods: Vec<_> = seen.iter().map(|message| message["method"].as_str().unwrap_or("")).collect();
            let allowed = ["notifications/prompts/list_changed", "notifications/resources/updated"];
            assert!(methods.iter().all(|method| allowed.contains(method)), "{methods:?}");
            let updated = seen.iter().find(|message| message["method"] == allowed[1]).cloned();
            updated.filter(|_| methods.contains(&allowed[0]))
        });
        let updated = updated.unwrap_or_else(|| panic!("`{name}` was never heard"));
        assert_eq!((&updated["params"]["uri"], &updated["params"]["x"]), (&json!(uri), &json!(1.0)), "{updated}");
    }
}

#[test]
fn a_stateful_client_hears_of_the_resources_it_subscribed_to() {
    let place = Place::new();
    let (gateway, _servers) = four(&place);
    let (one, other) = (Bare::stateful(&gateway), Bare::stateful(&gateway));
    for name in ["piped", "alone", "old", "new"] {
        let uri = format!("{name}://one");
        let (mut heard, mut silent) = (one.hears(None), other.hears(None));
        assert_eq!(one.result("resources/subscribe", json!({ "uri": uri })), json!({}));
        eventually("it is heard of", || {
            one.call(&format!("{name}__touch"), json!({ "uri": uri, "n": mint() }));
            let message = heard.within(Duration::from_millis(500)).unwrap_or_default();
            let of_it = message["params"]["uri"] == uri;
            assert!(!of_it || message["params"] == json!({ "uri": uri, "x": 1.0 }), "{message}");
            of_it
        });
        assert_eq!(one.result("resources/unsubscribe", json!({ "uri": uri })), json!({}));
        // What comes after a change of the lists would have come before it.
        while heard.within(Duration::from_millis(300)).is_some() {}
        one.call(&format!("{name}__touch"), json!({ "uri": uri, "last": true }));
        let seen = change(&one, name, &mut heard);
        assert!(seen.iter().all(|message| message["method"] != "notifications/resources/updated"), "{seen:?}");
        assert!(silent.until(LISTS[0]).iter().all(|message| message["method"] != "notifications/resources/updated"));
    }
    assert_eq!(one.error("resources/subscribe", json!({ "uri": "nowhere" })), (200, -32002));
    assert_eq!(one.error("resources/subscribe", json!({ "uri": 7 })).1, -32602);
}

/// A number that no other call of this process has.
fn mint() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn a_stream_that_breaks_goes_on_where_it_was() {
    let place = Place::new();
    let gateway = serve(&place, &[("a", declared(&raw("a", &[]))), ("b", declared(&raw("b", &[])))], "");
    let client = Bare::stateful(&gateway);
    assert_eq!(client.result("logging/setLevel", json!({ "level": "info" })), json!({}));
    assert!(client.call("a__echo", json!({})).to_string().contains(r#"\"level\": \"info\""#), "it is told");
    let mut heard = client.hears(None);
    client.call("a__log", json!({ "level": "info", "times": 3 }));
    client.call("a__log", json!({ "level": "debug" }));
    let first = heard.next();
    assert_eq!(
        (&first["method"], &first["params"]["data"]["n"]),
        (&json!("notifications/message"), &json!(0)),
        "{first}"
    );
    let last = heard.last_id.clone().expect("an id");
    drop(heard);
    let mut again = client.hears(Some(&last));
    assert_eq!(again.next()["params"]["data"]["n"], 1);
    assert_eq!(again.next()["params"]["data"]["n"], 2);
    // A second stream takes the place of the first, and nothing is said twice.
    let mut other = client.hears(None);
    again.ends();
    client.call("b__log", json!({ "level": "error" }));
    assert_eq!(other.next()["params"]["data"]["of"], "b");
}

/// A call of the stateless era that wants to hear that much of the log: all that came.
fn loud(client: &Bare, level: &str, tool: &str, arguments: Value) -> String {
    let meta = json!({ "io.modelcontextprotocol/logLevel": level });
    let (status, said) = client.raw("tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta }));
    assert_eq!(status, 200, "{said}");
    said
}

#[test]
fn a_server_with_sessions_is_told_what_a_stateless_request_wants_to_hear_and_that_it_is_over() {
    let place = Place::new();
    let old = HttpServer::start(&place, "old", "legacy", 0);
    let upstreams = [("piped", declared(&raw("piped", &[]))), ("old", old.declared())];
    let gateway = serve(&place, &upstreams, "");
    let (one, other) = (Bare::stateful(&gateway), Bare::stateless(&gateway));
    one.result("logging/setLevel", json!({ "level": "error" }));
    for name in ["piped", "old"] {
        let echo = format!("{name}__echo");
        let level = |level: &str| {
            let said = one.call(&echo, json!({ "n": mint() })).to_string();
            said.contains(&format!(r#"\"level\": \"{level}\""#))
        };
        assert!(level("error"), "{name}: what the one with a session wants");
        let said = loud(&other, "debug", &echo, json!({ "n": mint() }));
        assert!(said.contains(r#"\"level\": \"debug\""#), "{name}: it is told before the call: {said}");
        eventually("it is told that it is over", || level("error"));
    }
    let said = loud(&other, "notice", "piped__log", json!({ "level": "warning", "n": mint() }));
    let (noted, answered) = (said.find("notifications/message"), said.find("\"result\""));
    assert!(noted.is_some() && noted < answered, "{said}");
    let said = loud(&other, "error", "piped__log", json!({ "level": "warning", "n": mint() }));
    assert!(!said.contains("notifications/message"), "{said}");
    let quiet =
        other.raw("tools/call", json!({ "name": "piped__log", "arguments": { "level": "error", "n": mint() } })).1;
    assert!(!quiet.contains("notifications/message"), "{quiet}");
}

#[test]
fn a_client_that_does_not_read_is_closed_and_the_gateway_keeps_little() {
    let place = Place::new();
    let gateway = serve(&place, &[("a", declared(&raw("a", &[]))), ("b", declared(&raw("b", &[])))], "");
    let client = Bare::stateful(&gateway);
    client.result("logging/setLevel", json!({ "level": "debug" }));
    // Its bytes stay in the socket, since nobody takes lines out of the channel before they are all there.
    let heard = client.hears(None);
    for n in 0..20 {
        client.call("a__log", json!({ "level": "info", "times": 2000, "n": n }));
    }
    assert!(client.call("b__echo", json!({})).to_string().contains(r#"\"at\": \"b\""#), "nobody else waits");
    drop(heard);
    let mut fresh = client.hears(None);
    client.call("b__log", json!({ "level": "error" }));
    eventually("the newest is heard", || fresh.next()["params"]["data"]["of"] == "b");
}

#[test]
fn the_stateless_era_has_neither_streams_nor_sessions_of_its_own() {
    let place = Place::new();
    let gateway = serve(&place, &[("a", declared(&raw("a", &[])))], "");
    for method in ["GET", "DELETE"] {
        let answer = bare_request(
            &gateway,
            &format!("{method} /mcp HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\n", gateway.address),
        );
        assert!(answer.starts_with("http/1.1 405") && answer.contains("allow: post"), "{answer}");
    }
    let unknown = format!(
        "GET /mcp HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\nmcp-session-id: nobodys\r\n",
        gateway.address
    );
    assert!(bare_request(&gateway, &unknown).starts_with("http/1.1 404"));
}

fn bare_request(gateway: &Gateway, head: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(&gateway.address).expect("a connection");
    stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).expect("a request");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.to_lowercase()
}
