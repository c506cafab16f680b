//! Requests find the upstream they are for.

use serde_json::json;

use crate::place::{Bare, HttpServer, declared, raw, serve};
use crate::support::Place;

#[test]
fn every_method_finds_its_upstream_in_every_pairing_of_eras_and_transports() {
    let place = Place::new();
    let (old, new) = (HttpServer::start(&place, "old", "legacy", 0), HttpServer::start(&place, "new", "modern", 0));
    let upstreams = [
        ("piped", declared(&raw("piped", &[]))),
        ("alone", declared(&raw("alone", &["--era", "modern"]))),
        ("old", old.declared()),
        ("new", new.declared()),
    ];
    let gateway = serve(&place, &upstreams, "");
    for client in [Bare::stateful(&gateway), Bare::stateless(&gateway)] {
        for (name, _) in &upstreams {
            let said = client.call(&format!("{name}__echo"), json!({ "x": 1 })).to_string();
            assert!(said.contains(&format!(r#"\"at\": \"{name}\""#)), "{said}");
            let prompt = client.result("prompts/get", json!({ "name": format!("{name}__greet") }));
            assert_eq!(prompt["messages"][0]["content"]["text"], format!("greet of {name}"));
            for uri in [format!("{name}://one"), format!("{name}://items/7"), format!("hidden://{name}")] {
                let read = client.result("resources/read", json!({ "uri": uri }));
                assert_eq!(read["contents"][0]["text"], format!("{uri} of {name}"));
            }
            let reference = json!({ "type": "ref/prompt", "name": format!("{name}__greet") });
            let argument = json!({ "name": "x", "value": "v" });
            let completed = client.result("completion/complete", json!({ "ref": reference, "argument": argument }));
            assert_eq!(completed["completion"]["values"][0], format!("v for greet of {name}"));
            let uri = format!("{name}://items/{{id}}");
            let reference = json!({ "type": "ref/resource", "uri": uri });
            let completed = client.result("completion/complete", json!({ "ref": reference, "argument": argument }));
            assert_eq!(completed["completion"]["values"][0], format!("v for {uri} of {name}"));
        }
        let shared = client.result("resources/read", json!({ "uri": "shared://doc" }));
        assert_eq!(shared["contents"][0]["text"], "shared://doc of alone", "the first that lists it");
    }
}

#[test]
fn what_nobody_has_is_refused_in_the_words_of_each_era() {
    let place = Place::new();
    let gateway =
        serve(&place, &[("a", declared(&raw("a", &[]))), ("b", declared(&raw("b", &["--era", "modern"])))], "");
    let (stateful, stateless) = (Bare::stateful(&gateway), Bare::stateless(&gateway));
    assert_eq!(stateful.error("resources/read", json!({ "uri": "a://nothing" })), (200, -32002));
    assert_eq!(stateless.error("resources/read", json!({ "uri": "a://nothing" })), (400, -32602));
    assert_eq!(stateful.error("resources/read", json!({ "uri": "nowhere" })), (200, -32002));
    assert_eq!(stateless.error("resources/read", json!({ "uri": "nowhere" })), (400, -32602));
    for (client, status) in [(&stateful, 200), (&stateless, 400)] {
        assert_eq!(client.error("prompts/get", json!({ "name": "a__gret" })), (status, -32602));
        assert_eq!(client.error("completion/complete", json!({ "ref": 7 })), (status, -32602));
    }
    let (_, near) = stateful.ask("prompts/get", json!({ "name": "a__gret" }));
    assert!(near["error"]["message"].as_str().expect("words").contains("did you mean `a__greet`"), "{near}");
    assert_eq!(stateful.error("vendor/unknown", json!({})), (200, -32601));
    assert_eq!(stateless.error("vendor/unknown", json!({})), (404, -32601));
    // What only the other era has.
    assert_eq!(stateless.error("ping", json!({})), (404, -32601));
    assert_eq!(stateless.error("logging/setLevel", json!({ "level": "info" })), (404, -32601));
    assert_eq!(stateful.error("subscriptions/listen", json!({ "notifications": {} })), (200, -32601));
    assert_eq!(stateful.result("ping", json!({})), json!({}));
}

#[test]
fn the_progress_of_a_read_comes_before_its_answer() {
    let place = Place::new();
    let (old, new) = (HttpServer::start(&place, "old", "legacy", 0), HttpServer::start(&place, "new", "modern", 0));
    let gateway =
        serve(&place, &[("old", old.declared()), ("new", new.declared()), ("piped", declared(&raw("piped", &[])))], "");
    for client in [Bare::stateful(&gateway), Bare::stateless(&gateway)] {
        for name in ["old", "new", "piped"] {
            let params = json!({ "uri": format!("{name}://one"), "_meta": { "progressToken": "mine" } });
            let mut heard = client.listens(5, "resources/read", params);
            for n in 1..=3 {
                let progress = heard.next();
                assert_eq!(
                    (&progress["params"]["progressToken"], &progress["params"]["progress"]),
                    (&json!("mine"), &json!(n))
                );
            }
            assert_eq!(heard.next()["result"]["contents"][0]["text"], format!("{name}://one of {name}"));
        }
    }
}

#[test]
fn what_all_offer_is_said_in_the_greeting() {
    let place = Place::new();
    let gateway =
        serve(&place, &[("a", declared(&raw("a", &[]))), ("b", declared(&raw("b", &["--era", "modern"])))], "");
    let greeting = Bare::stateful(&gateway).result("initialize", json!({ "protocolVersion": "2025-06-18" }));
    let discovered = Bare::stateless(&gateway).result("server/discover", json!({}));
    for said in [&greeting, &discovered] {
        let capabilities = &said["capabilities"];
        assert_eq!(capabilities["resources"], json!({ "subscribe": true, "listChanged": true }), "{said}");
        assert_eq!(capabilities["prompts"]["listChanged"], true);
        assert!(capabilities.get("completions").is_some() && capabilities.get("logging").is_some(), "{said}");
        let instructions = said["instructions"].as_str().expect("words");
        assert!(instructions.contains("a has some of everything") && instructions.contains("b has some"), "{said}");
    }
}
