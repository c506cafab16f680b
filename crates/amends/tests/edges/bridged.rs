//! A client that wraps a server of the other era: we stand between them, and what the server says of its own accord is heard.

use std::path::Path;

use serde_json::{Value, json};

use crate::pipe::{MODERN, Pipe};
use crate::support::Place;

const CHANGED: &str = "notifications/tools/list_changed";

fn wrapped(place: &Place, era: &str) -> Pipe {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/many/servers/raw.py").display().to_string();
    let book = place.path("book").display().to_string();
    Pipe::wrap(place, &[], &["python3", &script, "raw", "--era", era, "--tasks", &book])
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).expect("JSON")
}

/// Calls a tool that makes the server say something until a message of that method comes, and gives that: its stream may open a
/// moment after its first answer.
fn told(pipe: &mut Pipe, method: &str, mut say: impl FnMut(&mut Pipe)) -> Value {
    for _ in 0..200 {
        say(pipe);
        let said: Vec<Value> = pipe.others.drain(..).map(|line| parsed(&line)).collect();
        if let Some(found) = said.into_iter().find(|message| message["method"] == method) {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("`{method}` was never said");
}

#[test]
fn a_stateful_client_that_wraps_a_stateless_server_hears_what_that_says() {
    let place = Place::new();
    let mut pipe = wrapped(&place, "modern");
    let greeting = parsed(&pipe.greet());
    assert_eq!(greeting["result"]["capabilities"]["tools"]["listChanged"], true, "{greeting}");
    let mut n = 0;
    let mut again = move || {
        n += 1;
        n
    };
    let changed = told(&mut pipe, CHANGED, |pipe| drop(pipe.call("change", &json!({ "n": again() }).to_string())));
    assert!(changed["params"]["_meta"].is_null(), "{changed}");
    let id = pipe.ask("resources/subscribe", r#"{"uri":"raw://one"}"#);
    assert_eq!(parsed(&pipe.answer(id))["result"], json!({}));
    let mut n = 1000;
    let updated = told(&mut pipe, "notifications/resources/updated", |pipe| {
        n += 1;
        pipe.call("touch", &json!({ "uri": "raw://one", "n": n }).to_string());
    });
    assert_eq!(updated["params"], json!({ "uri": "raw://one", "x": 1.0 }));
}

#[test]
fn a_stateless_client_that_wraps_a_stateful_server_hears_how_its_tasks_are() {
    let place = Place::new();
    let mut pipe = wrapped(&place, "legacy");
    let declared = MODERN.replace(
        r#"clientCapabilities":{}"#,
        r#"clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
    );
    let call =
        |name: &str, arguments: Value| format!(r#"{{"name":"{name}","arguments":{arguments},"_meta":{{{declared}}}}}"#);
    let id = pipe.ask("tools/call", &call("only", json!({})));
    let handle = parsed(&pipe.answer(id));
    let task = handle["result"]["taskId"].clone();
    assert_eq!(handle["result"]["resultType"], "task", "{handle}");
    let wants = json!({ "taskIds": [task] });
    let listen = pipe.ask("subscriptions/listen", &format!(r#"{{"notifications":{wants},"_meta":{{{declared}}}}}"#));
    let ready = parsed(&pipe.next());
    assert_eq!(ready["params"]["notifications"]["taskIds"], json!([task]), "{ready}");
    let id = pipe.ask("tools/call", &call("advance", json!({ "task": "t0", "status": "completed" })));
    assert_eq!(parsed(&pipe.answer(id))["result"]["resultType"], "complete");
    let told = if pipe.others.is_empty() { parsed(&pipe.next()) } else { parsed(&pipe.others.remove(0)) };
    assert_eq!((&told["method"], &told["params"]["taskId"]), (&json!("notifications/tasks"), &task), "{told}");
    assert_eq!(told["params"]["result"]["content"][0]["text"], "done by raw", "{told}");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], listen, "{told}");
}

#[test]
fn a_transparent_wrap_passes_on_how_tasks_are_as_it_is_said() {
    let place = Place::new();
    let mut pipe = wrapped(&place, "legacy");
    pipe.greet();
    let id = pipe.ask("tools/call", r#"{"name":"later","arguments":{},"task":{"ttl":1000}}"#);
    let handle = parsed(&pipe.answer(id));
    assert_eq!(handle["result"]["task"]["taskId"], "t0", "{handle}");
    pipe.call("advance", r#"{"task":"t0","status":"completed"}"#);
    let told: Vec<Value> = pipe.others.iter().map(|line| parsed(line)).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["params"]["taskId"], &told[0]["params"]["status"]), (&json!("t0"), &json!("completed")));
}
