//! Tasks of a server that nobody here wrote.

use serde_json::{Value, json};

use crate::bare::{Bare, Heard};
use crate::servers::both;
use crate::support::Place;

const TOOL: &str = "everything__simulate-research-query";

/// What is told of a task until it is over.
fn to_its_end(heard: &mut Heard, method: &str, id: &Value) -> Value {
    loop {
        let told = heard.until(method).pop().expect("a message");
        assert_eq!(told["params"]["taskId"], *id, "{told}");
        if told["params"]["status"] != "working" {
            return told["params"].clone();
        }
    }
}

#[test]
fn a_task_is_heard_of_to_its_end_in_both_eras() {
    let place = Place::new();
    let gateway = both(&place, &place.path("").display().to_string());
    let client = Bare::stateful(&gateway);
    let mut heard = client.hears(None);
    let call = json!({ "name": TOOL, "arguments": { "topic": "a" }, "task": { "ttl": 60_000 } });
    let id = client.result("tools/call", call)["task"]["taskId"].clone();
    let over = to_its_end(&mut heard, "notifications/tasks/status", &id);
    assert_eq!(over["status"], "completed", "{over}");
    let result = client.result("tasks/result", json!({ "taskId": id }));
    assert!(result["content"][0]["text"].as_str().is_some_and(|text| text.contains("Topic")), "{result}");

    let alone = Bare::stateless(&gateway);
    let declared = json!({ "io.modelcontextprotocol/clientCapabilities":
        { "extensions": { "io.modelcontextprotocol/tasks": {} } } });
    // The server has it as a task alone, of an era in which the client does not speak.
    let call = json!({ "name": TOOL, "arguments": { "topic": "b" }, "_meta": declared });
    let handle = alone.result("tools/call", call);
    assert_eq!((&handle["resultType"], &handle["status"]), (&json!("task"), &json!("working")), "{handle}");
    let wants = json!({ "notifications": { "taskIds": [handle["taskId"]] }, "_meta": declared });
    let mut heard = alone.listens(9, "subscriptions/listen", wants);
    assert_eq!(heard.next()["params"]["notifications"]["taskIds"], json!([handle["taskId"]]));
    let over = to_its_end(&mut heard, "notifications/tasks", &handle["taskId"]);
    assert_eq!(over["status"], "completed", "{over}");
    assert!(over["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("Topic")), "{over}");
}
