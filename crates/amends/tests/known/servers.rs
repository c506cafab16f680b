//! The servers, what is asked of them, and how answers are compared.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::client::{Client, Sdk};
use crate::support::{AMENDS, Gateway, Place, eventually, root};

/// Every client, in every era that these servers speak.
pub(crate) const CLIENTS: [(Sdk, Option<&str>); 3] =
    [(Sdk::Python, Some("legacy")), (Sdk::TypeScript, None), (Sdk::TypeScriptV1, None)];

/// The command of `server-everything`.
pub(crate) fn everything() -> Vec<String> {
    vec!["node".into(), script("server-everything"), "stdio".into()]
}

/// The command of `server-filesystem` over that folder.
pub(crate) fn files(folder: &str) -> Vec<String> {
    vec!["node".into(), script("server-filesystem"), folder.into()]
}

fn script(package: &str) -> String {
    let folder = root().join("tests/servers/node_modules/@modelcontextprotocol").join(package);
    folder.join("dist/index.js").display().to_string()
}

/// A command wrapped by Amends.
pub(crate) fn wrapped(place: &Place, server: &[String]) -> Vec<String> {
    let mut command = vec![AMENDS.to_owned(), "wrap".into(), "--ledger".into(), place.ledger(), "--".into()];
    command.extend_from_slice(server);
    command
}

/// `amends serve` in front of both servers, with names prefixed as it does by itself.
pub(crate) fn both(place: &Place, folder: &str) -> Gateway {
    let text = format!(
        "[ledger]\nurl = \"{}\"\n\n[listen]\nhttp = \"127.0.0.1:0\"\n\n[upstreams.everything]\ncommand = {:?}\n\n[upstreams.files]\ncommand = {:?}\n",
        place.ledger(),
        everything(),
        files(folder)
    );
    let config = place.write("serve.toml", &text);
    let mut command = Command::new(AMENDS);
    command.arg("serve").arg("--config").arg(config);
    let gateway = Gateway::listening(command);
    eventually("both servers are there", || {
        let echoed = gateway.call("everything__echo", r#"{"message":"ready"}"#).1["status"] == "success";
        echoed && gateway.call("files__list_allowed_directories", "{}").1["status"] == "success"
    });
    gateway
}

pub(crate) fn words(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

/// What is asked of `server-everything`, its names behind that prefix.
pub(crate) fn questions(prefix: &str) -> Vec<Value> {
    let name = |local: &str| format!("{prefix}{local}");
    let call = |tool: &str, args: Value| json!({ "op": "call", "tool": name(tool), "args": args, "progress": true });
    let ask = |method: &str, params: Value| json!({ "op": "ask", "method": method, "params": params });
    vec![
        call("echo", json!({ "message": "héllo \u{1F600} / \\ \"" })),
        call("get-sum", json!({ "a": 1, "b": 2.5 })),
        call("get-structured-content", json!({ "location": "Chicago" })),
        call("get-tiny-image", json!({})),
        call("get-annotated-message", json!({ "messageType": "debug", "includeImage": true })),
        call("get-resource-links", json!({ "count": 3 })),
        call("get-resource-reference", json!({ "resourceType": "Text", "resourceId": 1 })),
        call("trigger-long-running-operation", json!({ "duration": 1, "steps": 4 })),
        ask("prompts/get", json!({ "name": name("simple-prompt") })),
        ask("prompts/get", json!({ "name": name("args-prompt"), "arguments": { "city": "Basel" } })),
        ask("resources/list", json!({})),
        ask("resources/templates/list", json!({})),
        ask("resources/read", json!({ "uri": "demo://resource/static/document/architecture.md" })),
        ask("resources/read", json!({ "uri": "demo://resource/dynamic/text/7" })),
        ask(
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": name("completable-prompt") }, "argument": { "name": "department", "value": "E" } }),
        ),
        ask(
            "completion/complete",
            json!({ "ref": { "type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}" }, "argument": { "name": "resourceId", "value": "3" } }),
        ),
        ask("logging/setLevel", json!({ "level": "debug" })),
        ask("ping", json!({})),
    ]
}

/// An answer without what is ours and what differs from one run to the next.
pub(crate) fn settled(mut answer: Value) -> Value {
    let fields = answer.as_object_mut().expect("an answer");
    fields.remove("n");
    // A client may be done with a call before it has looked at the last progress.
    fields.remove("progress");
    if let Some(result) = fields.get_mut("result").and_then(Value::as_object_mut) {
        if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
            meta.retain(|name, _| !name.starts_with("amends/"));
        }
        if result.get("_meta").is_some_and(|meta| meta == &json!({})) {
            result.remove("_meta");
        }
    }
    let text = answer.to_string();
    // A dynamic resource says when it was made.
    match text.split_once("created at ") {
        Some((before, _)) => Value::String(before.to_owned()),
        None => answer,
    }
}

/// The names in a list that the client asks for.
pub(crate) fn names(client: &mut Client, method: &str, list: &str) -> Vec<String> {
    let answer = client.run(json!({ "op": "ask", "method": method }));
    let entries = answer["result"][list].as_array().unwrap_or_else(|| panic!("{answer}"));
    let mut names: Vec<String> =
        entries.iter().map(|entry| entry["name"].as_str().expect("a name").to_owned()).collect();
    names.sort();
    names
}

/// Whether the client has heard a notification of that method.
pub(crate) fn has_heard(client: &mut Client, method: &str) -> bool {
    let heard = client.run(json!({ "op": "heard" }));
    heard["heard"].as_array().expect("a list").iter().any(|heard| heard["method"] == method)
}
