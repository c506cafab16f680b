//! What is listed, and what is not.

use serde_json::{Value, json};

use crate::bare::{self, Bare, declared, raw};
use crate::order::{ORDER, in_tools, serve, serve_with};
use crate::support::Place;

fn tools(client: &Bare) -> Vec<String> {
    client.list("tools/list", "tools", "name")
}

#[test]
fn a_machines_tools_and_resources_are_listed_and_what_it_writes_with_is_not() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    for client in [Bare::stateful(&gateway), Bare::stateless(&gateway)] {
        let tools = tools(&client);
        for ours in ["step", "reset", "fork", "cancel", "walk", "get_order"] {
            assert!(tools.iter().any(|name| name == ours), "{ours} of {tools:?}");
        }
        assert!(!tools.iter().any(|name| name == "charge_card" || name == "pay"), "{tools:?}");
        let resources = client.list("resources/list", "resources", "uri");
        let templates = client.list("resources/templates/list", "resourceTemplates", "uriTemplate");
        for what in ["next", "history", "state", "graph", "graph.mmd", "graph.dot", "trace"] {
            assert!(resources.contains(&format!("amends://{what}")), "{resources:?}");
            assert!(templates.contains(&format!("amends://{{session}}/{what}")), "{templates:?}");
        }
    }
}

#[test]
fn a_machine_served_by_its_actions_has_a_tool_for_each() {
    let place = Place::new();
    // One of them wants a name that an upstream's tool has.
    let gateway = serve(&place, &in_tools().replace("actions.hand_over]", "actions.send_email]"));
    let client = Bare::stateful(&gateway);
    let listed = client.result("tools/list", json!({}))["tools"].clone();
    let find = |name: &str| listed.as_array().unwrap().iter().find(|tool| tool["name"] == name).cloned();
    assert!(find("step").is_none() && find("walk").is_some(), "{listed}");
    let pay = find("pay").unwrap_or_else(|| panic!("{listed}"));
    let properties = &pay["inputSchema"]["properties"];
    assert_eq!(properties["amount"]["exclusiveMinimum"], 0, "{pay}");
    assert_eq!(
        (&properties["session"]["type"], &properties["expect_seq"]["type"]),
        (&json!("string"), &json!("integer"))
    );
    assert!(find("send_email").is_some_and(|tool| tool["title"] == "Send an email"), "{listed}");
    assert!(find("amends_send_email").is_some(), "{listed}");
}

#[test]
fn a_tool_that_only_a_machine_calls_is_refused_with_the_action_that_does() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let args = json!({ "order": "ord_1", "amount": 5 });
    for client in [Bare::stateful(&gateway), Bare::stateless(&gateway)] {
        let refused = client.call("charge_card", args.clone());
        assert_eq!(refused["isError"], true, "{refused}");
        let error = &refused["structuredContent"]["error"];
        assert_eq!(error["kind"], "invalid_transition", "{refused}");
        assert!(error["message"].as_str().is_some_and(|words| words.contains("the action `pay`")), "{refused}");
        let template = json!({ "tool": "step", "args": {}, "missing": ["action"] });
        assert_eq!(error["recovery"]["template"], template, "no order is written down yet: {refused}");
        assert_eq!(
            refused["structuredContent"]["valid_next_actions"],
            json!(["drop_order", "take_order"]),
            "{refused}"
        );
    }
    let (status, refused) = gateway.call("charge_card", &args.to_string());
    assert_eq!((status, &refused["error"]["kind"]), (422, &json!("invalid_transition")), "{refused}");
    assert_eq!(place.requests("charge_card"), 0, "nothing was sent");
}

#[test]
fn what_an_upstream_exposes_by_name_is_served_beside_the_machine() {
    let place = Place::new();
    let gateway = serve_with(&place, "expose = [\"charge_card\", \"get_order\"]", ORDER);
    let client = Bare::stateful(&gateway);
    let tools = tools(&client);
    assert!(tools.iter().any(|name| name == "charge_card") && tools.iter().any(|name| name == "step"), "{tools:?}");
    let done = client.call("charge_card", json!({ "order": "ord_1", "amount": 5 }));
    assert_eq!(done["structuredContent"]["order"], "ord_1", "{done}");
}

#[test]
fn before_a_walk_begins_one_can_read_where_it_would_begin() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    for client in [Bare::stateful(&gateway), Bare::stateless(&gateway)] {
        let read = |uri: &str| client.result("resources/read", json!({ "uri": uri }))["contents"][0].clone();
        let next = read("amends://next");
        assert_eq!((&next["uri"], &next["mimeType"]), (&json!("amends://next"), &json!("application/json")));
        let next: Value = serde_json::from_str(next["text"].as_str().unwrap()).unwrap();
        assert_eq!(next["valid_next_actions"], json!(["drop_order", "take_order"]), "{next}");
        assert!(next.get("session").is_none(), "{next}");
        let graph = read("amends://graph");
        assert_eq!(graph["mimeType"], "image/svg+xml");
        assert!(graph["text"].as_str().unwrap().starts_with("<svg"), "{graph}");
        let begins = graph["text"].as_str().unwrap().matches("class=\"state now\"").count();
        assert_eq!(begins, 1, "it is marked where it would begin: {graph}");
        assert!(read("amends://graph.mmd")["text"].as_str().unwrap().contains("stateDiagram-v2"));
        let mirror = client.call("walk", json!({ "what": "next" }));
        assert_eq!(mirror["structuredContent"]["data"], next);
        for odd in ["amends://nothing", "amends://ses_unknown/next", "amends://../x/next", "amends://"] {
            let (_, code) = client.error("resources/read", json!({ "uri": odd }));
            assert!(code == -32002 || code == -32602, "{odd}: {code}");
        }
    }
}

#[test]
fn arguments_that_do_not_fit_are_named_one_by_one_and_nothing_is_done() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let client = Bare::stateless(&gateway);
    for (arguments, field) in [
        (json!({ "action": 7 }), "action"),
        (json!({ "inputs": {} }), "action"),
        (json!({ "action": "take_order", "inputs": "{\"item\": \"lat" }), "inputs"),
        (json!({ "action": "take_order", "inputs": "{\"item\": NaN}" }), "inputs"),
        (json!({ "action": "take_order", "inputs": [1] }), "inputs"),
        (json!({ "action": "take_order", "inputs": {}, "sesion": "x" }), "sesion"),
        (json!({ "action": "take_order", "inputs": {}, "expect_seq": "two" }), "expect_seq"),
        (json!({ "action": "take_order", "inputs": { "item": "x".repeat(2 << 20) } }), "inputs"),
    ] {
        let refused = client.call("step", arguments.clone());
        let body = &refused["structuredContent"];
        let shown = arguments.to_string().chars().take(80).collect::<String>();
        assert_eq!(body["error"]["kind"], "validation_failed", "{shown}: {body}");
        let fault = &body["error"]["details"][0];
        assert_eq!(fault["field"], field, "{shown}: {fault}");
        assert!(fault["expected"].is_string(), "{fault}");
        assert_eq!(body["valid_next_actions"], json!(["drop_order", "take_order"]), "{body}");
        assert_eq!(refused["isError"], true);
    }
    for (tool, arguments) in
        [("walk", json!({ "what": "histroy" })), ("fork", json!({ "seq": -1 })), ("reset", json!({}))]
    {
        let refused = client.call(tool, arguments);
        assert_eq!(refused["structuredContent"]["error"]["kind"], "validation_failed", "{tool}: {refused}");
    }
    let unknown = client.call("walk", json!({ "session": "ses_unknown" }));
    assert_eq!(unknown["structuredContent"]["error"]["kind"], "unknown_name", "{unknown}");
    assert!(!place.events_named("call_refused").is_empty(), "what was refused is recorded");
}

#[test]
fn an_upstreams_addresses_never_stand_before_ours() {
    let machine =
        "[machines.m]\ninitial = \"a\"\nterminal = [\"b\"]\n[machines.m.actions.go]\nfrom = [\"a\"]\nto = \"b\"\n";
    let theirs = [("amends", declared(&raw("amends", &[])))];
    let read = |client: &Bare, uri: &str| client.ask("resources/read", json!({ "uri": uri })).1;
    let place = Place::new();
    let gateway = bare::serve(&place, &theirs, "");
    let client = Bare::stateful(&gateway);
    assert!(read(&client, "amends://one").to_string().contains("of amends"), "without machines it is theirs");
    drop(gateway);
    let place = Place::new();
    let gateway = bare::serve(&place, &theirs, machine);
    for client in [Bare::stateful(&gateway), Bare::stateless(&gateway)] {
        let resources = client.list("resources/list", "resources", "uri");
        assert!(resources.contains(&"amends://next".to_owned()), "{resources:?}");
        assert!(!resources.contains(&"amends://one".to_owned()), "{resources:?}");
        let templates = client.list("resources/templates/list", "resourceTemplates", "uriTemplate");
        assert!(!templates.iter().any(|form| form.contains("items")), "{templates:?}");
        assert!(read(&client, "amends://one").get("error").is_some());
        assert!(read(&client, "amends://next").to_string().contains("valid_next_actions"));
    }
}

#[test]
fn of_several_machines_the_one_to_begin_with_is_named() {
    let machine = |name: &str| {
        format!(
            "[machines.{name}]\ninitial = \"a\"\nterminal = [\"c\"]\n[machines.{name}.actions.go]\nfrom = [\"a\"]\nto = \"b\"\n\
             [machines.{name}.actions.end]\nfrom = [\"b\"]\nto = \"c\"\n"
        )
    };
    let place = Place::new();
    let gateway = serve(&place, &format!("{}\n{}", machine("one"), machine("two")));
    let client = Bare::stateful(&gateway);
    let step = |arguments: Value| client.call("step", arguments)["structuredContent"].clone();
    for wrong in [json!({ "action": "go" }), json!({ "action": "go", "machine": "onee" })] {
        let refused = step(wrong);
        assert_eq!(refused["error"]["kind"], "validation_failed", "{refused}");
        assert_eq!(refused["error"]["details"][0]["field"], "machine", "{refused}");
        assert!(refused["error"]["details"][0]["nearest"].to_string().contains("one"), "{refused}");
        let template = json!({ "tool": "step", "args": { "action": "go" }, "missing": ["machine"] });
        assert_eq!(refused["error"]["recovery"]["template"], template, "{refused}");
    }
    let one = step(json!({ "action": "go", "machine": "one" }));
    let two = step(json!({ "action": "go", "machine": "two" }));
    assert_eq!(
        (&one["data"]["state"]["name"], &two["data"]["state"]["name"]),
        (&json!("b"), &json!("b")),
        "{one} {two}"
    );
    assert_ne!(one["data"]["session"], two["data"]["session"]);
    let last = step(json!({ "action": "end" }));
    assert_eq!(last["data"]["session"], two["data"]["session"], "without a name, it is the one that was used last");
    let back = step(json!({ "action": "end", "machine": "one" }));
    assert_eq!((&back["data"]["session"], &back["data"]["seq"]), (&one["data"]["session"], &json!(2)), "{back}");
}
