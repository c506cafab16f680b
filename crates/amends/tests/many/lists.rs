//! Lists of several upstreams, merged.

use serde_json::json;

use crate::place::{Bare, declared, listening, raw, serve};
use crate::support::Place;

#[test]
fn the_lists_of_all_upstreams_come_in_a_stable_order_under_names_that_tell_them_apart() {
    let place = Place::new();
    let upstreams = [("beta", declared(&raw("beta", &[]))), ("alpha", declared(&raw("alpha", &["--era", "modern"])))];
    let gateway = serve(&place, &upstreams, "");
    for client in [Bare::stateful(&gateway), Bare::stateless(&gateway)] {
        let tools = client.list("tools/list", "tools", "name");
        assert_eq!(tools.len(), 10, "{tools:?}");
        assert!(tools.is_sorted() && tools[0] == "alpha__change" && tools[9] == "beta__touch", "{tools:?}");
        assert_eq!(client.list("prompts/list", "prompts", "name"), ["alpha__greet", "beta__greet"]);
        // An address means the same thing to everybody, so the first upstream that lists it is where it lives.
        let resources = client.list("resources/list", "resources", "uri");
        assert_eq!(resources, ["alpha://one", "shared://doc", "beta://one"]);
        let templates = client.list("resources/templates/list", "resourceTemplates", "uriTemplate");
        assert_eq!(templates, ["alpha://items/{id}", "beta://items/{id}"]);
    }
    let prompts = Bare::stateful(&gateway).raw("prompts/list", json!({})).1;
    assert!(prompts.contains(r#"{"name": "alpha__greet", "x-of": "alpha", "n": 1.0}"#), "bytes are kept: {prompts}");
    assert!(!prompts.contains("resultType") && !prompts.contains("ttlMs"), "a stateful client knows no stamps");
    let stamped = Bare::stateless(&gateway).result("prompts/list", json!({}));
    assert_eq!((&stamped["resultType"], stamped["ttlMs"].is_u64()), (&json!("complete"), true), "{stamped}");
}

#[test]
fn a_long_list_comes_in_pages_of_ours_and_a_foreign_cursor_is_refused() {
    let place = Place::new();
    let long = |name: &str| declared(&raw(name, &["--entries", "700"]));
    let gateway = serve(&place, &[("a", long("a")), ("b", long("b"))], "");
    for client in [Bare::stateful(&gateway), Bare::stateless(&gateway)] {
        let all = client.list("prompts/list", "prompts", "name");
        assert_eq!(all.len(), 1402, "every page of every upstream");
        assert_eq!((all[0].as_str(), all[701].as_str()), ("a__greet", "b__greet"));
        let first = client.result("prompts/list", json!({}));
        let cursor = first["nextCursor"].as_str().expect("another page").to_owned();
        assert!(first["prompts"].as_array().expect("a list").len() < 1402);
        for bad in [json!("50"), json!(""), json!(7), json!(format!("{cursor}0")), json!({}), json!("é")] {
            let (_, code) = client.error("prompts/list", json!({ "cursor": bad }));
            assert_eq!(code, -32602, "{bad}");
        }
        assert_eq!(client.error("tools/list", json!({ "cursor": cursor })).1, -32602, "of another list");
    }
}

#[test]
fn what_is_not_exposed_is_not_there() {
    let place = Place::new();
    let hidden = format!("{}\nexpose = [\"e*\", \"log\", \"die\"]\nhide = [\"di*\"]", declared(&raw("a", &[])));
    let bare = format!("{}\nprefix = \"\"\nhide = [\"change\", \"log\", \"touch\", \"die\"]", declared(&raw("b", &[])));
    let gateway = serve(&place, &[("a", hidden), ("b", bare)], "");
    let client = Bare::stateful(&gateway);
    assert_eq!(client.list("tools/list", "tools", "name"), ["a__echo", "a__log", "echo"]);
    let (_, refused) = client.ask("tools/call", json!({ "name": "a__die" }));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(client.call("echo", json!({}))["content"][0]["type"], "text");
}

#[test]
fn a_name_that_two_would_have_is_given_to_neither() {
    let place = Place::new();
    let bare = |name: &str| format!("{}\nprefix = \"\"\nexpose = [\"echo\"]", declared(&raw(name, &[])));
    let gateway = serve(&place, &[("a", bare("a")), ("b", bare("b"))], "");
    let client = Bare::stateful(&gateway);
    assert_eq!(client.list("tools/list", "tools", "name"), ["a__echo", "b__echo"]);
    assert_eq!(client.list("prompts/list", "prompts", "name"), ["a__greet", "b__greet"]);
    let (_, refused) = client.ask("tools/call", json!({ "name": "echo" }));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert!(client.call("b__echo", json!({})).to_string().contains(r#"\"at\": \"b\""#));
}

#[test]
fn a_client_that_is_quicker_than_the_upstreams_still_gets_all_of_them() {
    let place = Place::new();
    let gateway = listening(&place, &[("a", declared(&raw("a", &[]))), ("b", declared(&raw("b", &[])))], "");
    let client = Bare::stateful(&gateway);
    assert_eq!(client.list("tools/list", "tools", "name").len(), 10);
    assert_eq!(client.list("prompts/list", "prompts", "name").len(), 2);
}

#[test]
fn what_the_newer_era_demands_of_an_answer_is_there_and_in_the_older_it_is_not() {
    let place = Place::new();
    let gateway =
        serve(&place, &[("a", declared(&raw("a", &[]))), ("b", declared(&raw("b", &["--era", "modern"])))], "");
    let (stateful, stateless) = (Bare::stateful(&gateway), Bare::stateless(&gateway));
    for (method, params, kept) in [
        ("tools/list", json!({}), true),
        ("prompts/list", json!({}), true),
        ("resources/list", json!({}), true),
        ("resources/templates/list", json!({}), true),
        ("resources/read", json!({ "uri": "a://one" }), true),
        ("resources/read", json!({ "uri": "b://one" }), true),
        ("prompts/get", json!({ "name": "a__greet" }), false),
        ("tools/call", json!({ "name": "a__echo", "arguments": {} }), false),
    ] {
        let answer = stateless.result(method, params.clone());
        assert_eq!(answer["resultType"], "complete", "{method}: {answer}");
        assert_eq!(answer["ttlMs"].is_u64() && answer["cacheScope"] == "private", kept, "{method}: {answer}");
        let answer = stateful.result(method, params);
        for stamp in ["resultType", "ttlMs", "cacheScope"] {
            assert!(answer.get(stamp).is_none(), "{method}: {answer}");
        }
    }
    let discovered = stateless.result("server/discover", json!({}));
    assert!(discovered["ttlMs"].is_u64() && discovered["resultType"] == "complete", "{discovered}");
    assert_eq!(discovered["supportedVersions"][0], "2026-07-28", "{discovered}");
}
