//! Machines as skills, and whose tasks are whose.

use serde_json::{Value, json};

use crate::peer::{Client, call, card};
use crate::support::{Gateway, Place, eventually, http};

/// An order and its payment. A large one is paid once somebody agrees.
const ORDER: &str = r#"
[tools.charge_card]
effect = "write"

[machines.order]
description = "An order and its payment."
initial = "created"
terminal = ["paid"]

[machines.order.actions.take_order]
from = ["created"]
to = "ordered"
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"], additionalProperties = false }
writes = { order = "inputs.order" }

[machines.order.actions.pay]
from = ["ordered"]
to = "paid"
tool = "charge_card"
args = { order = "state.order", amount = "inputs.amount" }
input = { type = "object", properties = { amount = { type = "number" } }, required = ["amount"], additionalProperties = false }

[machines.order.actions.pay_much]
from = ["ordered"]
to = "paid"
queue = "own"
tool = "charge_card"
args = { order = "state.order", amount = "inputs.amount" }
input = { type = "object", properties = { amount = { type = "number" } }, required = ["amount"], additionalProperties = false }

[queues.own]
requester = true
"#;

/// A message that takes an action, in a context where one is named.
fn takes(id: &str, action: &str, inputs: Value, context: Option<&Value>) -> Value {
    let mut message = call(id, "step", json!({ "machine": "order", "action": action, "inputs": inputs }));
    if let Some(context) = context {
        message["message"]["contextId"] = context.clone();
        message["message"]["parts"][0]["data"]["args"] = json!({ "action": action, "inputs": inputs });
    }
    message
}

#[test]
fn a_machine_is_a_skill_and_its_walk_is_the_context() {
    let place = Place::new();
    let config = place.write("order.toml", ORDER).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let card = card(&gateway.address);
    let skills = card["skills"].as_array().expect("skills");
    let step = skills.iter().find(|skill| skill["id"] == "step").unwrap_or_else(|| panic!("{card}"));
    assert_eq!(step["tags"], json!(["machine"]), "{step}");
    assert!(skills.iter().all(|skill| skill["id"] != "charge_card"), "what a machine encloses is no skill: {card}");
    let mut client = Client::of(&gateway.address, &json!({}));
    let begun = client.ask("send", takes("m1", "take_order", json!({ "order": "ord_1" }), None))[0]["task"].clone();
    assert_eq!(begun["status"]["state"], "TASK_STATE_COMPLETED", "{begun}");
    let context = &begun["contextId"];
    assert!(context.as_str().is_some_and(|context| context.starts_with("ses_")), "{begun}");
    let early = client.ask("send", takes("m2", "take_order", json!({ "order": "ord_2" }), Some(context)))[0].clone();
    let no = &early["task"]["status"]["message"]["parts"][1]["data"];
    assert_eq!(no["error"]["kind"], "invalid_transition", "{early}");
    assert_eq!(no["valid_next_actions"], json!(["pay", "pay_much"]), "and says what could be done: {early}");
    let paid = client.ask("send", takes("m3", "pay", json!({ "amount": 5 }), Some(context)))[0]["task"].clone();
    assert_eq!(paid["status"]["state"], "TASK_STATE_COMPLETED", "{paid}");
    assert_eq!(&paid["contextId"], context, "{paid}");
    let again = client.ask("send", takes("m3", "pay", json!({ "amount": 5 }), Some(context)))[0]["task"].clone();
    assert_eq!(again["status"]["state"], "TASK_STATE_COMPLETED", "{again}");
    assert_eq!(again["artifacts"][0]["parts"][0]["data"]["replayed"], true, "{again}");
    assert_eq!(place.effects_on("charge_card", "ord_1"), 1, "the same message is the same move");
    let seen = client.ask("get", json!({ "id": paid["id"] }));
    assert_eq!(seen, paid, "a move is looked at as a task");
}

#[test]
fn what_is_done_with_a_walk_as_a_whole_is_answered_without_a_task() {
    let place = Place::new();
    let config = place.write("order.toml", ORDER).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let mut client = Client::of(&gateway.address, &json!({}));
    let begun = client.ask("send", takes("m1", "take_order", json!({ "order": "ord_1" }), None))[0]["task"].clone();
    for (tool, args) in
        [("walk", json!({})), ("fork", json!({ "seq": 1 })), ("reset", json!({})), ("cancel", json!({}))]
    {
        let mut message = call(&format!("m-{tool}"), tool, args);
        message["message"]["contextId"] = begun["contextId"].clone();
        let said = client.ask("send", message)[0]["message"].clone();
        assert_eq!(said["role"], "ROLE_AGENT", "{tool}: {said}");
        assert!(said["parts"][0]["data"]["status"].is_string(), "{tool}: {said}");
    }
}

#[test]
fn a_move_that_waits_for_a_person_is_answered_in_its_task() {
    let place = Place::new();
    let config = place.write("order.toml", ORDER).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let mut client = Client::of(&gateway.address, &json!({}));
    let begun = client.ask("send", takes("m1", "take_order", json!({ "order": "ord_1" }), None))[0]["task"].clone();
    let context = &begun["contextId"];
    let asks = client.ask("send", takes("m2", "pay_much", json!({ "amount": 900 }), Some(context)))[0]["task"].clone();
    assert_eq!(asks["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{asks}");
    assert_eq!(place.effects("charge_card"), 0);
    let answer = json!({ "message": {
        "messageId": "m3", "taskId": asks["id"], "role": "ROLE_USER", "parts": [{ "data": { "choice": "approve" } }],
    }});
    let paid = client.ask("send", answer)[0]["task"].clone();
    assert_eq!(paid["status"]["state"], "TASK_STATE_COMPLETED", "{paid}");
    assert_eq!(place.effects_on("charge_card", "ord_1"), 1);
}

#[test]
fn a_task_is_nobodys_but_its_principals_and_tenants() {
    let place = Place::new();
    let ada = "ada-token-0123456789abcdef0123456789";
    let bob = "bob-token-0123456789abcdef0123456789";
    place.write("ada.token", ada);
    place.write("bob.token", bob);
    let text = "[a2a]\npush = [\"http://127.0.0.1\"]\n\
        [auth.tokens.ada]\nsecret = { file = \"ada.token\" }\nprincipal = \"agent\"\ntenant = \"acme\"\n\
        [auth.tokens.bob]\nsecret = { file = \"bob.token\" }\nprincipal = \"agent\"\ntenant = \"rival\"\n";
    let config = place.write("tokens.toml", text).display().to_string();
    let gateway = Gateway::listening(place.up_command("", &["--config", &config]));
    eventually("the tools are served", || {
        let shown = format!("Bearer {ada}");
        let list = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let (_, answer) = http::post(&gateway.address, "/mcp", &[("authorization", &shown)], list);
        answer["result"]["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    });
    let card = card(&gateway.address);
    assert!(
        card["securitySchemes"]["bearer"].is_object(),
        "the card is for everybody, and says what is needed: {card}"
    );
    let (status, _) = http::post(&gateway.address, "/a2a", &[("a2a-version", "1.0")], b"{}");
    assert_eq!(status, 401, "nobody calls without saying who they are");
    let of = |token: &str, binding: &str| Client::of(&gateway.address, &json!({ "token": token, "binding": binding }));
    let (mut ada_client, mut bob_client) = (of(ada, "JSONRPC"), of(bob, "HTTP+JSON"));
    // Both have the same name and use the same id: they are two calls.
    let args = json!({ "order": "ord_1", "amount": 5 });
    let hers = ada_client.call("m1", "charge_card", args.clone());
    let his = bob_client.call("m1", "charge_card", args);
    assert_eq!(
        (&hers["status"]["state"], &his["status"]["state"]),
        (&json!("TASK_STATE_COMPLETED"), &json!("TASK_STATE_COMPLETED")),
        "{hers} {his}"
    );
    assert_eq!(place.effects_on("charge_card", "ord_1"), 2, "a key is its principal's own");
    let mut listening = Client::of(&gateway.address, &json!({ "token": ada, "streaming": true }));
    let refused = listening.ask("subscribe", json!({ "id": his["id"] }));
    assert_eq!(refused["failed"], "TaskNotFoundError", "{refused}");
    for (client, other) in [(&mut ada_client, &his), (&mut bob_client, &hers)] {
        for op in ["get", "cancel"] {
            let refused = client.ask(op, json!({ "id": other["id"] }));
            assert_eq!(refused["failed"], "TaskNotFoundError", "{op}: {refused}");
        }
        let refused = client.ask("push", json!({ "taskId": other["id"], "url": "http://127.0.0.1:1/x" }));
        assert_eq!(refused["failed"], "TaskNotFoundError", "{refused}");
        let told = json!({ "message": { "messageId": "m2", "taskId": other["id"], "role": "ROLE_USER", "parts": [{ "text": "x" }] } });
        assert_eq!(client.ask("send", told)["failed"], "TaskNotFoundError");
        let listed = client.ask("list", json!({}));
        assert_eq!(listed["totalSize"], 1, "{listed}");
        assert_ne!(listed["tasks"][0]["id"], other["id"]);
    }
}
