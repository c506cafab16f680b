//! What belongs to one principal is for another as if it were not there.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::house::{ADA, Answer, BOB, House, SHOP, two_tokens};
use crate::support::{Place, eventually};

const CHARGE: &str = r#"{"order":"ord_1","amount":5}"#;

/// An answer without what tells one call from another.
fn alike(answer: &Answer) -> (u16, String) {
    (answer.status, answer.text.clone())
}

#[test]
fn a_session_is_its_principals() {
    let house = House::of_two("", "");
    let session = house.greet(ADA);
    let of = |token: &str, id: &str, method: &str| house.mcp(token, &[("mcp-session-id", id)], method, json!({}));
    let unknown = "a".repeat(session.len());
    assert_eq!(of(ADA, &session, "ping").status, 200);
    let foreign = of(BOB, &session, "ping");
    assert_eq!(foreign.status, 404, "{foreign:?}");
    assert_eq!(alike(&foreign), alike(&of(BOB, &unknown, "ping")), "it looks like one that never was");
    let shown = format!("Bearer {BOB}");
    let listen = |id: &str| {
        let headers = [("authorization", shown.as_str()), ("accept", "text/event-stream"), ("mcp-session-id", id)];
        house.ask("GET", "/mcp", &headers, "")
    };
    assert_eq!(alike(&listen(&session)), alike(&listen(&unknown)));
    let end = |id: &str| house.ask("DELETE", "/mcp", &[("authorization", shown.as_str()), ("mcp-session-id", id)], "");
    assert_eq!(end(&session).status, 404);
    assert_eq!(alike(&end(&session)), alike(&end(&unknown)));
    assert_eq!(of(ADA, &session, "ping").status, 200, "nobody else ended it");
}

#[test]
fn a_key_and_equal_arguments_are_its_principals() {
    let house = House::of_two("", "");
    let charge = |token: &str, arguments: &str| {
        house.call_with(token, "charge_card", &[("idempotency-key", "k1")], arguments).body
    };
    let first = charge(ADA, CHARGE);
    assert_eq!(first["status"], "success", "{first}");
    assert_eq!(charge(ADA, CHARGE)["replayed"], true);
    let other = charge(BOB, CHARGE);
    assert_eq!((&other["status"], &other["replayed"]), (&json!("success"), &Value::Null), "{other}");
    assert_ne!(other["data"], first["data"], "it is a charge of its own");
    assert_eq!(house.place.effects("charge_card"), 2);
    let reused = charge(BOB, r#"{"order":"ord_2","amount":5}"#);
    assert_eq!(reused["error"]["kind"], "duplicate", "his own key says so: {reused}");
    house.place.settled();
}

#[test]
fn a_reversal_token_is_its_principals_whatever_became_of_it() {
    let house = House::of_two("", "");
    let refund = |order: &str| house.call(ADA, "issue_refund", &format!(r#"{{"order":"{order}","amount":5}}"#)).body;
    let redeem = |token: &str, reversal: &str| {
        let answer = house.call(token, "amends_reverse", &json!({ "token": reversal }).to_string());
        assert_eq!(answer.body["error"]["kind"], "reversal_refused", "{answer:?}");
        answer.body["error"]["message"].as_str().expect("a message").to_owned()
    };
    let unknown = redeem(BOB, "rev_0000000000000000000000000000000000000000");
    let armed = refund("ord_1")["reversal"]["token"].as_str().expect("a token").to_owned();
    assert_eq!(redeem(BOB, &armed), unknown);
    assert_eq!(house.place.effects("cancel_refund"), 0);
    let undone = house.call(ADA, "amends_reverse", &json!({ "token": armed }).to_string()).body;
    assert_eq!(undone["status"], "success", "{undone}");
    assert_eq!(redeem(BOB, &armed), unknown, "also once it is redeemed");
    assert_ne!(redeem(ADA, &armed), unknown, "she is told what became of it");
    house.place.settled();
}

#[test]
fn a_rate_is_its_principals() {
    let house = House::of_two("[limits]\nrate = { per_second = 0.001, burst = 3 }\n", "");
    let get = |token: &str| house.call(token, "get_order", r#"{"order":"ord_1"}"#).body;
    eventually("ada has called too often", || get(ADA)["error"]["kind"] == "rate_limited");
    assert_eq!(get(BOB)["status"], "success");
    assert_eq!(get(ADA)["error"]["kind"], "rate_limited");
}

const MACHINE: &str = r#"
[machines.order]
initial = "created"
terminal = ["dropped"]

[machines.order.actions.take_order]
from = ["created"]
to = "ordered"
input = { type = "object", properties = { item = { type = "string" } }, required = ["item"], additionalProperties = false }
writes = { item = "inputs.item" }

[machines.order.actions.drop_order]
from = ["created", "ordered"]
to = "dropped"
"#;

#[test]
fn a_walk_is_its_principals() {
    let house = House::of_two(MACHINE, "");
    let step = |token: &str, arguments: Value| house.call(token, "step", &arguments.to_string());
    let begun = step(ADA, json!({ "action": "take_order", "inputs": { "item": "latte" } }));
    let walk = begun.body["data"]["session"].as_str().unwrap_or_else(|| panic!("{begun:?}")).to_owned();
    let drop_order = |token: &str, walk: &str| step(token, json!({ "action": "drop_order", "session": walk }));
    let unknown = format!("{}{}", &walk[..4], "x".repeat(walk.len() - 4));
    let (foreign, never) = (drop_order(BOB, &walk), drop_order(BOB, &unknown));
    assert_eq!(foreign.body["error"]["kind"], "unknown_name", "{foreign:?}");
    assert_eq!(
        (foreign.status, &foreign.body["error"]["message"]),
        (never.status, &never.body["error"]["message"]),
        "{foreign:?}"
    );
    assert!(!foreign.text.contains("latte") && !foreign.text.contains("ordered"), "{foreign:?}");
    let read = |token: &str, walk: &str| {
        let uri = format!("amends://{walk}/state");
        house.alone(token, "resources/read", &uri, json!({ "uri": uri }))
    };
    let (foreign, never) = (read(BOB, &walk), read(BOB, &unknown));
    assert_eq!(
        (foreign.status, foreign.text.replace(&walk, "W")),
        (never.status, never.text.replace(&unknown, "W")),
        "what can be read of it looks the same"
    );
    let dropped = drop_order(ADA, &walk);
    assert_eq!(dropped.body["data"]["state"]["name"], "dropped", "{dropped:?}");
}

#[test]
fn nothing_of_a_walk_is_anothers_to_see_or_to_move() {
    let house = House::of_two(MACHINE, "");
    let call = |token: &str, tool: &str, args: Value| house.call(token, tool, &args.to_string());
    let begun =
        call(ADA, "step", json!({ "action": "take_order", "inputs": { "item": "latte" } })).body["data"].clone();
    let walk = begun["session"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    let unknown = format!("{}{}", &walk[..4], "x".repeat(walk.len() - 4));
    let seen = |walk: &str, answer: &Answer| (answer.status, answer.text.replace(walk, "W"));
    let untold = |answer: &Answer| {
        assert!(!["latte", "\"ordered\""].iter().any(|told| answer.text.contains(told)), "{answer:?}");
    };
    let tools = [
        ("step", json!({ "action": "drop_order" })),
        ("walk", json!({})),
        ("walk", json!({ "what": "history" })),
        ("walk", json!({ "what": "graph.mmd" })),
        ("fork", json!({})),
        ("fork", json!({ "seq": 0 })),
        ("reset", json!({})),
        ("cancel", json!({})),
    ];
    for (tool, mut args) in tools {
        let mut of = |walk: &str| {
            args["session"] = json!(walk);
            call(BOB, tool, args.clone())
        };
        let (foreign, never) = (of(&walk), of(&unknown));
        assert_eq!(foreign.body["error"]["kind"], "unknown_name", "{tool}: {foreign:?}");
        assert_eq!(foreign.body["error"], never.body["error"], "{tool} of another's walk looks like one of none");
        assert_eq!(foreign.body["valid_next_actions"], json!(["drop_order", "take_order"]), "{tool}: where one begins");
        untold(&foreign);
    }
    for what in ["next", "history", "state", "graph", "graph.mmd", "graph.dot", "trace"] {
        for method in ["resources/read", "resources/subscribe"] {
            let of = |walk: &str| {
                let uri = format!("amends://{walk}/{what}");
                let session = house.greet(BOB);
                house.mcp(BOB, &[("mcp-session-id", session.as_str())], method, json!({ "uri": uri }))
            };
            let (foreign, never) = (of(&walk), of(&unknown));
            assert!(foreign.body["error"].is_object(), "{method} {what}: {foreign:?}");
            assert_eq!(seen(&walk, &foreign), seen(&unknown, &never), "{method} {what}");
            untold(&foreign);
        }
    }
    let after = call(ADA, "walk", json!({ "session": walk, "what": "history" }));
    let moves = after.body["data"]["moves"].as_array().unwrap_or_else(|| panic!("{after:?}"));
    assert_eq!(moves.len(), 1, "nothing was moved, and nothing of it is told in her walk: {after:?}");
    let forked = call(ADA, "fork", json!({ "session": walk, "seq": 1 }));
    assert_eq!(forked.body["data"]["state"]["name"], "ordered", "she may: {forked:?}");
}

fn script(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(name).display().to_string()
}

#[test]
fn a_task_is_its_principals() {
    let place = Place::new();
    let book = place.path("raw.book").display().to_string();
    let command = ["python3", &script("many/servers/raw.py"), "a", "--era", "modern", "--tasks", &book];
    let config = format!("[upstreams.a]\ncommand = {command:?}\n{}", two_tokens(&place));
    let house = House::serve(place, &config);
    let later = || {
        let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let params = json!({ "name": "a__later", "arguments": { "n": 1 },
            "_meta": { "io.modelcontextprotocol/clientCapabilities": capabilities } });
        house.alone(ADA, "tools/call", "a__later", params)
    };
    let mut id = String::new();
    eventually("a task is begun", || {
        id = later().body["result"]["taskId"].as_str().unwrap_or_default().to_owned();
        !id.is_empty()
    });
    let get = |token: &str, id: &str| house.alone(token, "tasks/get", id, json!({ "taskId": id }));
    assert_eq!(get(ADA, &id).body["result"]["taskId"], id);
    let unknown = "x".repeat(id.len());
    for method in ["tasks/get", "tasks/cancel"] {
        let of = |id: &str| {
            let answer = house.alone(BOB, method, id, json!({ "taskId": id }));
            (answer.status, answer.text.replace(id, "T"))
        };
        assert_eq!(of(&id), of(&unknown), "{method}");
        assert_ne!(of(&id).0, 200);
    }
    assert_eq!(get(ADA, &id).body["result"]["taskId"], id, "nobody else ended it");
}

#[test]
fn how_a_task_is_is_told_to_its_principal_alone() {
    for era in ["modern", "legacy"] {
        let place = Place::new();
        let book = place.path("raw.book").display().to_string();
        let command = ["python3", &script("many/servers/raw.py"), "a", "--era", era, "--tasks", &book];
        let config = format!("[upstreams.a]\ncommand = {command:?}\n{}", two_tokens(&place));
        let house = House::serve(place, &config);
        let declaring = |mut params: Value| {
            let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
            params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
            params
        };
        let mut id = String::new();
        eventually("a task is begun", || {
            let params = declaring(json!({ "name": "a__only", "arguments": { "n": 1 } }));
            let begun = house.alone(ADA, "tools/call", "a__only", params);
            id = begun.body["result"]["taskId"].as_str().unwrap_or_default().to_owned();
            !id.is_empty()
        });
        let wants = declaring(json!({ "notifications": { "taskIds": [id, "t0"], "toolsListChanged": true } }));
        let (mut ada, mut bob) = (house.listens(ADA, &wants), house.listens(BOB, &wants));
        let (yes, no) = (ada.next().expect("a word"), bob.next().expect("a word"));
        assert_eq!(yes["params"]["notifications"]["taskIds"], json!([id]), "{era}: {yes}");
        assert!(no["params"]["notifications"].get("taskIds").is_none(), "{era}: {no}");
        for (tool, arguments) in
            [("a__advance", json!({ "task": "t0", "status": "completed" })), ("a__change", json!({}))]
        {
            house.alone(BOB, "tools/call", tool, json!({ "name": tool, "arguments": arguments }));
        }
        let mut told = ada.next().expect("a word");
        // The list that has the tool may be told of only now.
        while told["method"] == "notifications/tools/list_changed" {
            told = ada.next().expect("a word");
        }
        assert_eq!(
            (&told["method"], &told["params"]["taskId"]),
            (&json!("notifications/tasks"), &json!(id)),
            "{era}: {told}"
        );
        let other = bob.next().expect("a word");
        assert_eq!(other["method"], "notifications/tools/list_changed", "{era}: {other}");
    }
}

#[test]
fn a_request_state_is_its_principals_and_opens_nothing_elsewhere() {
    let place = Place::new();
    let done = place.path("done.jsonl").display().to_string();
    let command = ["python3", &script("eras/servers/asks.py"), "modern", &done];
    let config = format!("[upstreams.one]\nprefix = \"\"\ncommand = {command:?}\n{}", two_tokens(&place));
    let house = House::serve(place, &config);
    let capabilities = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
    let params = |order: u64| {
        json!({ "name": "book", "arguments": { "order": order },
            "_meta": { "io.modelcontextprotocol/clientCapabilities": capabilities } })
    };
    let call = |token: &str, params: Value| house.alone(token, "tools/call", "book", params);
    let mut asked = Value::Null;
    eventually("the agent is asked", || {
        asked = call(ADA, params(1)).body["result"].clone();
        asked["resultType"] == "input_required"
    });
    let key = asked["inputRequests"].as_object().and_then(|asked| asked.keys().next()).expect("a question").clone();
    let answers = json!({ key: { "action": "accept", "content": { "n": 1 } } });
    let back = |order: u64, state: &Value| {
        let mut params = params(order);
        params["inputResponses"] = answers.clone();
        params["requestState"] = state.clone();
        params
    };
    let state = asked["requestState"].clone();
    let text = state.as_str().expect("a state");
    let tampered = json!(format!("{}{}", &text[..text.len() - 1], if text.ends_with('A') { 'B' } else { 'A' }));
    let foreign = call(BOB, back(1, &state));
    assert_eq!(foreign.body["error"]["code"], -32602, "{foreign:?}");
    let forged = call(BOB, back(1, &tampered));
    assert_eq!(foreign.body["error"]["data"]["error"], forged.body["error"]["data"]["error"], "they look the same");
    assert_eq!(call(ADA, back(2, &state)).body["error"]["code"], -32602, "other arguments");
    assert_eq!(call(ADA, back(1, &tampered)).body["error"]["code"], -32602, "a changed one");
    let lines = || std::fs::read_to_string(house.place.path("done.jsonl")).unwrap_or_default().lines().count();
    assert_eq!(lines(), 0, "nothing was done with any of them");
    let answered = call(ADA, back(1, &state));
    assert!(answered.body["result"]["structuredContent"]["inputs"].is_array(), "{answered:?}");
    let again = call(ADA, back(1, &state));
    assert_eq!(again.body["result"]["_meta"]["amends/envelope"]["replayed"], true, "{again:?}");
    assert_eq!(lines(), 1, "it counts once");
}

#[test]
fn a_question_to_a_person_is_seen_by_nobody_who_may_not() {
    let place = Place::new();
    let faults = "[[fault]]\ntool = \"charge_card\"\nattempts = [\"lose_response\"]\nrepeat = true\n";
    let tokens = two_tokens(&place).replace("ada.token\" }", "ada.token\" }\ntenant = \"acme\"");
    let house = House::up(place, &format!("{SHOP}\n{tokens}"), faults);
    house.served(ADA);
    let doubt = house.call(ADA, "charge_card", CHARGE).body;
    let question = doubt["error"]["interaction"].as_str().unwrap_or_else(|| panic!("{doubt}")).to_owned();
    // An equal call of somebody else is not its repeat, and is told nothing of it.
    let other = house.call(BOB, "charge_card", r#"{"order":"ord_2","amount":5}"#);
    assert!(!other.text.contains(&question), "{other:?}");
    let equal = house.call(BOB, "charge_card", CHARGE);
    assert!(!equal.text.contains(&question), "{equal:?}");
    assert_eq!(house.place.requests_on("charge_card", "ord_1"), 2, "each sent its own, once");
    let (_, queue) = house.place.amends(&["queue", "--json", "--tenant", "acme"]);
    assert!(queue.contains(&question), "{queue}");
    let (_, queue) = house.place.amends(&["queue", "--json", "--tenant", "rival"]);
    assert!(!queue.contains(&question), "{queue}");
}
