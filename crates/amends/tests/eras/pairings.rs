//! Every pairing of eras: stateful and stateless clients in front of stateful and stateless servers.

use serde_json::{Value, json};

use crate::asking::{Server, by_command, by_url, command, done, events, serve};
use crate::support::client::{Client, Sdk};
use crate::support::{Gateway, Place};

fn inputs() -> Value {
    json!({
        "elicitation/create": { "action": "accept", "content": { "n": 3 } },
        "sampling/createMessage": {
            "role": "assistant", "model": "m", "content": { "type": "text", "text": "word" },
        },
        "roots/list": { "roots": [{ "uri": "file:///work" }] },
    })
}

/// Every kind of question through one client, each answered once, and done once.
fn asks_everything(place: &Place, gateway: &Gateway, sdk: Sdk, era: &str) {
    let mut client = Client::http_with_inputs(sdk, era, &inputs(), &gateway.mcp());
    for (tool, methods) in [
        ("book", vec!["elicitation/create"]),
        ("visit", vec!["elicitation/create"]),
        ("think", vec!["sampling/createMessage"]),
        ("where", vec!["roots/list"]),
        ("twice", vec!["elicitation/create", "roots/list"]),
        ("plain", vec![]),
    ] {
        let answer = client.call(tool, json!({ "of": format!("{sdk:?}-{era}") }));
        assert_eq!(answer["ok"], true, "{tool}: {answer}");
        let given = answer["result"]["structuredContent"]["inputs"].as_array().unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(given.len(), methods.len(), "{tool}: {answer}");
        for (given, method) in given.iter().zip(&methods) {
            let wanted = &inputs()[*method];
            for (name, value) in wanted.as_object().expect("an object") {
                // Some clients fill in what a root or a message may have.
                assert_eq!(given[name].is_null(), value.is_null(), "{tool}: {given}");
            }
        }
        assert!(!answer["result"]["isError"].as_bool().unwrap_or(false), "{answer}");
    }
    let effects = done(place);
    let tools: Vec<&str> = effects.iter().filter_map(|effect| effect["tool"].as_str()).collect();
    assert_eq!(tools, ["book", "visit", "think", "where", "twice", "plain"]);
    assert_eq!(events(place, "inputs_given"), 6);
    assert_eq!(events(place, "ignored"), 0);
}

macro_rules! pairing {
    ($name:ident, $sdk:expr, $client:literal, $server:literal, http) => {
        #[test]
        fn $name() {
            let place = Place::new();
            let server = Server::http(&place, $server);
            let gateway = serve(&place, &by_url(&server), "");
            asks_everything(&place, &gateway, $sdk, $client);
        }
    };
    ($name:ident, $sdk:expr, $client:literal, $server:literal, stdio) => {
        #[test]
        fn $name() {
            let place = Place::new();
            let gateway = serve(&place, &by_command(&command(&place, $server)), "");
            asks_everything(&place, &gateway, $sdk, $client);
        }
    };
}

pairing!(a_stateless_client_of_a_stateful_server, Sdk::Python, "modern", "legacy", http);
pairing!(a_stateless_client_of_a_stateless_server, Sdk::Python, "modern", "modern", http);
pairing!(a_stateful_client_of_a_stateful_server, Sdk::Python, "legacy", "legacy", http);
pairing!(a_stateful_client_of_a_stateless_server, Sdk::Python, "legacy", "modern", http);
pairing!(a_stateless_client_of_a_stateful_child, Sdk::Python, "modern", "legacy", stdio);
pairing!(a_stateful_client_of_a_stateless_child, Sdk::Python, "legacy", "modern", stdio);
pairing!(another_stateless_client_of_a_stateful_server, Sdk::TypeScript, "modern", "legacy", http);
pairing!(another_stateless_client_of_a_stateless_server, Sdk::TypeScript, "modern", "modern", http);
pairing!(another_stateful_client_of_a_stateful_child, Sdk::TypeScript, "legacy", "legacy", stdio);
pairing!(another_stateful_client_of_a_stateless_server, Sdk::TypeScript, "legacy", "modern", http);
