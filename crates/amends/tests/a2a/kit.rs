//! The example that gives plain messages to a tool, as the compatibility kit sends them.

use std::process::Command;

use serde_json::{Value, json};

use crate::peer::{Client, root};
use crate::support::{AMENDS, Gateway, Place, eventually};

/// The example over a ledger and a port of its own.
fn parrot(place: &Place) -> Gateway {
    let folder = root().join("examples/a2a");
    let text = std::fs::read_to_string(folder.join("amends.toml")).expect("the example");
    let server = folder.join("parrot.py").canonicalize().expect("its server").display().to_string();
    let text = text.replace("127.0.0.1:7070", "127.0.0.1:0").replace("parrot.py", &server);
    let text = format!("{text}\n[ledger]\nurl = \"{}\"\n", place.ledger());
    let config = place.write("parrot.toml", &text);
    let mut command = Command::new(AMENDS);
    command.arg("serve").arg("--config").arg(config);
    Gateway::listening(command)
}

fn words(id: &str) -> Value {
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": "hello" }] } })
}

#[test]
fn messages_of_the_kit_are_answered_by_what_their_ids_want() {
    let place = Place::new();
    let gateway = parrot(&place);
    let mut client = Client::of(&gateway.address, &json!({}));
    eventually("the tool is served", || {
        let task = client.ask("send", words("tck-complete-task-0"))[0]["task"].clone();
        task["status"]["state"] == "TASK_STATE_COMPLETED" || !place.events_named("call_ended").is_empty()
    });
    let mut task = |id: &str| client.ask("send", words(id))[0]["task"].clone();
    let done = task("tck-complete-task-1");
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "hello", "{done}");
    let data = task("tck-artifact-data-1");
    assert!(data["artifacts"][0]["parts"][0]["data"].is_object(), "{data}");
    let file = task("tck-artifact-file-1");
    assert_eq!(file["artifacts"][0]["parts"][0]["raw"], "c2FpZA==", "{file}");
    let link = task("tck-artifact-file-url-1");
    assert_eq!(link["artifacts"][0]["parts"][0]["url"], "https://example.com/said.txt", "{link}");
    assert_eq!(task("tck-reject-task-1")["status"]["state"], "TASK_STATE_REJECTED");
    let asks = task("tck-input-required-1");
    assert_eq!(asks["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{asks}");
    let mut answer = words("tck-input-required-2");
    answer["message"]["taskId"] = asks["id"].clone();
    let after = client.ask("send", answer)[0]["task"].clone();
    assert_eq!(after["status"]["state"], "TASK_STATE_COMPLETED", "{after}");
    assert_eq!(after["artifacts"][0]["parts"][0]["text"], "hello", "{after}");
}
