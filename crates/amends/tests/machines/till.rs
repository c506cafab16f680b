//! A till whose answers a test lets through when it likes, and a gateway before it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Gateway, Place, eventually, served};

/// What the tools of the till are.
const TOOLS: &str = r#"
[tools.look]
effect = "read"

[tools.take]
effect = "write"

[tools.put]
effect = "write"
reverse = { tool = "undo", args = { id = "result.id" }, within = "24h" }

[tools.undo]
effect = "idempotent"

[tools.burn]
effect = "write"

[tools.lend]
effect = "write"
reverse = { tool = "bring", args = { id = "result.id" }, within = "24h" }

[tools.bring]
effect = "write"
"#;

/// A sale that is taken at the till, which has not much time for it.
pub(crate) const SALE: &str = r#"
[machines.sale]
initial = "open"
terminal = ["paid", "left"]

[machines.sale.actions.name]
from = ["open"]
to = "named"
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
writes = { order = "inputs.order" }

[machines.sale.actions.pay]
from = ["named"]
to = "paid"
tool = "take"
args = { order = "state.order" }
timeout = "1500ms"
writes = { charge = "result == null ? 'unknown' : result.id" }

[machines.sale.actions.leave]
from = ["open", "named"]
to = "left"
"#;

/// What a till says that allows nothing.
pub(crate) fn forbidden() -> Value {
    json!({ "error": { "status": 403, "code": "forbidden", "title": "forbidden", "detail": "not at this till" } })
}

/// A gateway before the till, with those machines.
pub(crate) fn serve(place: &Place, machines: &str) -> Gateway {
    serve_with(place, "timeout = \"20s\"\ndeadline = \"30s\"", machines)
}

/// The same with other bounds of the upstream.
pub(crate) fn serve_with(place: &Place, bounds: &str, machines: &str) -> Gateway {
    let gateway = serve_at_once(place, bounds, machines);
    eventually("the till's tools are served", || gateway.call("look", r#"{"order":"first"}"#).1["status"] == "success");
    gateway
}

/// The same, whether the till has said by then what tools it has or not.
pub(crate) fn serve_at_once(place: &Place, bounds: &str, machines: &str) -> Gateway {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/machines/servers/till.py");
    let command = ["python3".to_owned(), script.display().to_string(), place.path(".").display().to_string()];
    served::serve(place, &format!("command = {command:?}\n{bounds}"), &format!("{TOOLS}\n{machines}"))
}

/// Says what a tool answers of an order, from now on.
pub(crate) fn says(place: &Place, tool: &str, order: &str, answer: &Value) {
    // It is there as a whole, or not at all.
    let beside = place.write("said", &answer.to_string());
    std::fs::rename(beside, place.path(&format!("{tool}-{order}.json"))).expect("a file in the same folder");
}

/// Has the till not answer what it is asked of that tool, until it may.
pub(crate) fn holds(place: &Place, tool: &str) {
    place.write(&format!("hold-{tool}"), "");
}

/// Has it answer again.
pub(crate) fn lets_go(place: &Place, tool: &str) {
    std::fs::remove_file(place.path(&format!("hold-{tool}"))).expect("it was held");
}

/// The calls of tools that write, as they came.
pub(crate) fn done(place: &Place) -> Vec<Value> {
    let calls = lines(place, "done.jsonl").into_iter();
    calls.filter(|call| call["tool"] != "look").collect()
}

/// The tools that were called, in order.
pub(crate) fn tools(place: &Place) -> Vec<String> {
    done(place).iter().filter_map(|call| call["tool"].as_str().map(str::to_owned)).collect()
}

/// Whether an answer of that tool is on its way.
pub(crate) fn answered(place: &Place, tool: &str) -> bool {
    lines(place, "answered.jsonl").iter().any(|call| call["tool"] == tool)
}

fn lines(place: &Place, book: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(place.path(book)).unwrap_or_default();
    // The last line may be half written.
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str(line).expect("a line of the till"))
        .collect()
}

pub(crate) fn step(gateway: &Gateway, args: Value) -> Value {
    gateway.call("step", &args.to_string()).1
}

/// Takes an action in that walk.
pub(crate) fn take(gateway: &Gateway, session: &Value, action: &str) -> Value {
    step(gateway, json!({ "action": action, "session": session }))
}

/// What is seen of a walk.
pub(crate) fn look(gateway: &Gateway, session: &Value, what: &str) -> Value {
    gateway.call("walk", &json!({ "session": session, "what": what }).to_string()).1["data"].clone()
}

/// Begins the sale of an order, and gives the walk's handle.
pub(crate) fn named(gateway: &Gateway, order: &str) -> Value {
    let named = step(gateway, json!({ "action": "name", "inputs": { "order": order } }));
    assert_eq!(named["status"], "success", "{named}");
    named["data"]["session"].clone()
}

/// What people are asked.
pub(crate) fn queue(place: &Place) -> Vec<Value> {
    let (code, said) = place.amends(&["queue", "--json"]);
    assert_eq!(code, 0, "{said}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    said["queue"].as_array().cloned().expect("a list")
}

/// Sends a signal to a gateway.
pub(crate) fn signal(gateway: &Gateway, name: &str) {
    let told = Command::new("kill").args([name, &gateway.id().to_string()]).status();
    assert!(told.is_ok_and(|status| status.success()));
}
