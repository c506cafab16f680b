//! A call that waits for a person, for a client that takes tasks: it gets a handle, and fetches what came of it later.

use serde_json::{Value, json};

use crate::support::{Gateway, Place, eventually, http};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn asking(place: &Place) -> Gateway {
    let text = "[tools.charge_card]\neffect = \"write\"\napproval = \"finance\"\n";
    let config = place.write("approval.toml", text).display().to_string();
    place.up_with("", &["--config", &config])
}

fn question(place: &Place) -> String {
    let open = || {
        let (code, said) = place.amends(&["queue", "--json"]);
        assert_eq!(code, 0, "{said}");
        let said: Value = serde_json::from_str(&said).expect("JSON");
        said["queue"].as_array().cloned().expect("a list")
    };
    eventually("a person is asked", || open().len() == 1);
    open()[0]["id"].as_str().expect("an id").to_owned()
}

fn say(place: &Place, choice: &str) {
    let (code, said) = place.amends(&["answer", &question(place), choice, "--by", "ada"]);
    assert_eq!(code, 0, "{said}");
}

/// A message of the stateful era in that session.
fn stateful(gateway: &Gateway, session: &str, method: &str, params: Value) -> Value {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let headers = [("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")];
    let headers = if session.is_empty() { &headers[1..] } else { &headers[..] };
    http::post(&gateway.address, "/mcp", headers, message.as_bytes()).1
}

/// A message of the stateless era, by a client that says that it understands tasks.
fn stateless(gateway: &Gateway, method: &str, name: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { EXTENSION: {} } });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", name)];
    http::post(&gateway.address, "/mcp", &headers, message.as_bytes()).1
}

fn charge(amount: u64) -> Value {
    json!({ "name": "charge_card", "arguments": { "order": "ord_1", "amount": amount } })
}

fn task_of(call: Value) -> Value {
    let mut call = call;
    call["task"] = json!({ "ttl": 60_000 });
    call
}

#[test]
fn a_stateful_client_gets_a_task_while_a_person_decides_and_its_result_also_after_a_restart() {
    let place = Place::new();
    let mut gateway = asking(&place);
    let greeting = stateful(&gateway, "", "initialize", json!({ "protocolVersion": "2025-11-25" }));
    assert!(greeting["result"]["capabilities"]["tasks"]["requests"]["tools"].get("call").is_some(), "{greeting}");
    let handle = stateful(&gateway, "", "tools/call", task_of(charge(5)));
    let task = &handle["result"]["task"];
    assert_eq!(task["status"], "input_required", "{handle}");
    let id = task["taskId"].as_str().unwrap_or_else(|| panic!("{handle}")).to_owned();
    let of = json!({ "taskId": id });
    // An equal call is the same task.
    let again = stateful(&gateway, "", "tools/call", task_of(charge(5)));
    assert_eq!(again["result"]["task"]["taskId"], id, "{again}");
    assert_eq!(place.requests("charge_card"), 0, "nothing is sent before the yes");
    gateway.kill();
    let gateway = asking(&place);
    let waits = stateful(&gateway, "", "tasks/get", of.clone());
    assert_eq!(waits["result"]["status"], "input_required", "{waits}");
    assert!(waits["result"]["statusMessage"].as_str().is_some_and(|says| says.contains("charge_card")), "{waits}");
    say(&place, "approve");
    let result = stateful(&gateway, "", "tasks/result", of.clone());
    assert_eq!(result["result"]["_meta"]["amends/envelope"]["status"], "success", "{result}");
    assert_eq!(result["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id, "{result}");
    assert!(result["result"].get("isError").is_none_or(|is| is == false), "{result}");
    let over = stateful(&gateway, "", "tasks/get", of);
    assert_eq!(over["result"]["status"], "completed", "{over}");
    assert_eq!((place.requests("charge_card"), place.effects("charge_card")), (1, 1));
    for bad in ["", "x", &format!("{id}x")] {
        let unknown = stateful(&gateway, "", "tasks/get", json!({ "taskId": bad }));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
    place.settled();
}

#[test]
fn a_no_ends_the_task_with_our_refusal_and_a_stop_withdraws_the_question() {
    let place = Place::new();
    let gateway = asking(&place);
    let id = |handle: &Value| json!({ "taskId": handle["result"]["task"]["taskId"] });
    let denied = id(&stateful(&gateway, "", "tools/call", task_of(charge(6))));
    say(&place, "deny");
    let result = stateful(&gateway, "", "tasks/result", denied.clone());
    assert_eq!(result["result"]["isError"], true, "{result}");
    assert!(result.to_string().contains("approval_denied"), "{result}");
    assert!(!result.to_string().contains("equal call"), "it is its own answer: {result}");
    assert_eq!(stateful(&gateway, "", "tasks/get", denied)["result"]["status"], "failed");
    let stopped = id(&stateful(&gateway, "", "tools/call", task_of(charge(7))));
    question(&place);
    let cancelled = stateful(&gateway, "", "tasks/cancel", stopped);
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    let (_, listed) = place.amends(&["queue"]);
    assert!(!listed.contains("charge_card"), "{listed}");
    assert_eq!(place.requests("charge_card"), 0);
    place.settled();
}

#[test]
fn a_stateless_client_that_understands_tasks_gets_one_and_finds_the_result_in_it() {
    let place = Place::new();
    let gateway = asking(&place);
    let discovered = stateless(&gateway, "server/discover", "", json!({}));
    assert!(discovered["result"]["capabilities"]["extensions"].get(EXTENSION).is_some(), "{discovered}");
    let handle = stateless(&gateway, "tools/call", "charge_card", charge(8));
    assert_eq!(handle["result"]["resultType"], "task", "{handle}");
    assert_eq!(handle["result"]["status"], "working", "{handle}");
    assert!(handle["result"].get("ttlMs").is_some() && handle["result"].get("ttl").is_none(), "{handle}");
    let id = handle["result"]["taskId"].as_str().expect("an id").to_owned();
    say(&place, "approve");
    let get = || stateless(&gateway, "tasks/get", &id, json!({ "taskId": id }));
    eventually("it is over", || get()["result"]["status"] == "completed");
    let task = get();
    assert_eq!(task["result"]["resultType"], "complete", "{task}");
    assert_eq!(task["result"]["result"]["_meta"]["amends/envelope"]["status"], "success", "{task}");
    assert_eq!(place.effects("charge_card"), 1);
    // What nobody is asked about is answered at once.
    let order = json!({ "name": "get_order", "arguments": { "order": "ord_1" } });
    let read = stateless(&gateway, "tools/call", "get_order", order);
    assert_eq!(read["result"]["resultType"], "complete", "{read}");
    place.settled();
}
