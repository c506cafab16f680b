//! Every answer to a step says what may be done now and with what, whatever was wrong with it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::bare::Bare;
use crate::order::{FAULTS, ORDER, assert_legal, assert_refused, serve};
use crate::support::http::post_raw;
use crate::support::{Gateway, Place, eventually};
use crate::till::{self, SALE, done, look, named};

const BEGIN: &[&str] = &["leave", "name"];
const NAMED: &[&str] = &["leave", "pay"];

/// How much a message may hold, and how deep it may nest.
const LIMITS: &str = "[limits]\nbody_bytes = 20000\ndepth = 20\n";

/// One message of a client with that session, as it is written; the envelope, wherever it is.
fn said(gateway: &Gateway, session: Option<&str>, message: &str) -> Value {
    let mut headers = vec![("accept", "application/json, text/event-stream")];
    match session {
        Some(session) => headers.push(("mcp-session-id", session)),
        None => {
            headers.extend([("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "step")])
        }
    }
    let (_, answer) = post_raw(&gateway.address, "/mcp", &headers, message.as_bytes());
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_else(|_| panic!("{message}: no JSON"));
    match answer["result"]["structuredContent"].is_object() {
        true => answer["result"]["structuredContent"].clone(),
        false => answer["error"]["data"].clone(),
    }
}

/// Such a message, with what stands after the name of the tool.
fn step(session: Option<&str>, rest: &str) -> String {
    // Whoever has no session says what it speaks each time.
    let meta = match session {
        Some(_) => String::new(),
        None => {
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#
                .to_owned()
        }
    };
    let rest = match rest.contains("\"_meta\":{") {
        true => rest.replace("\"_meta\":{", &format!("\"_meta\":{{{meta}{}", if meta.is_empty() { "" } else { "," })),
        false => format!("{rest},\"_meta\":{{{meta}}}"),
    };
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"step",{rest}}}}}"#)
}

/// A refusal of that kind that says what may be done now, with the inputs of each, and where to look.
fn assert_says(answer: &Value, what: &str, kind: &str, legal: &[&str]) {
    assert_eq!((&answer["status"], &answer["error"]["kind"]), (&json!("refused"), &json!(kind)), "{what}: {answer}");
    assert_eq!(answer["error"]["certainty"], "not_sent", "{what}: {answer}");
    assert_legal(answer, legal);
    for (action, schema) in answer["next_action_schemas"].as_object().expect("checked above") {
        let takes = action == "name";
        assert_eq!(schema["properties"]["order"].is_object(), takes, "{what}: {answer}");
    }
    let recovery = &answer["error"]["recovery"];
    assert!(recovery["call"].is_object() || recovery["template"].is_object(), "{what}: no way on: {answer}");
}

/// What is wrong with a step, in its own words, its kind, and whether its walk can be told from it where it names one.
fn wrong(walk: &str) -> Vec<(&'static str, String, &'static str, bool)> {
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let long = "x".repeat(30_000);
    let args = |args: String| format!(r#""arguments":{{{args}{walk}}}"#);
    let pay = r#""action":"pay""#;
    vec![
        ("not from here", args(r#""action":"name","inputs":{"order":"o2"}"#.into()), "invalid_transition", true),
        ("no such action", args(r#""action":"pya""#.into()), "unknown_action", true),
        ("no action", args(r#""inputs":{}"#.into()), "validation_failed", true),
        ("inputs that are no object", args(format!("{pay},\"inputs\":5")), "validation_failed", true),
        ("inputs that are cut off", args(format!(r#"{pay},"inputs":"{{\"a\":""#)), "validation_failed", true),
        ("a member that there is not", args(format!(r#"{pay},"sesion":"x""#)), "validation_failed", true),
        ("a name twice", args(format!("{pay},{pay}")), "validation_failed", true),
        ("elsewhere by now", args(format!("{pay},\"expect_seq\":9")), "stale_state", true),
        (
            "a walk that there is not",
            format!(r#""arguments":{{{pay},"session":"ses_unknown"}}"#),
            "unknown_name",
            false,
        ),
        ("arguments that are no object", r#""arguments":[]"#.into(), "invalid_argument", false),
        ("arguments twice", format!(r#"{0},{0}"#, args(pay.into())), "invalid_argument", true),
        (
            "a key that is none",
            format!("{},\"_meta\":{{\"amends/key\":7}}", args(pay.into())),
            "invalid_argument",
            true,
        ),
        (
            "a dialect that is none",
            format!("{},\"_meta\":{{\"amends/dialect\":\"latin\"}}", args(pay.into())),
            "invalid_argument",
            true,
        ),
        (
            "a time that is none",
            format!("{},\"_meta\":{{\"amends/deadline\":\"soon\"}}", args(pay.into())),
            "invalid_argument",
            true,
        ),
        (
            "answers that are none",
            format!("{},\"inputResponses\":7,\"requestState\":\"x\"", args(pay.into())),
            "invalid_argument",
            true,
        ),
        (
            "a state that does not count",
            format!(r#"{},"inputResponses":{{}},"requestState":"made up""#, args(pay.into())),
            "invalid_argument",
            true,
        ),
        ("too deep", args(format!("{pay},\"inputs\":{}", deep(40))), "too_large", true),
        ("too large", args(format!(r#"{pay},"inputs":{{"note":"{long}"}}"#)), "too_large", true),
    ]
}

#[test]
fn every_no_to_a_step_of_a_connection_says_what_may_be_done_in_its_walk() {
    let place = Place::new();
    let gateway = till::serve(&place, &format!("{LIMITS}{SALE}"));
    let client = Bare::stateful(&gateway);
    let session = client.session.clone().expect("a session");
    let begun =
        client.call("step", json!({ "action": "name", "inputs": { "order": "o1" } }))["structuredContent"].clone();
    assert_eq!(begun["status"], "success", "{begun}");
    for (what, rest, kind, of_walk) in wrong("") {
        let answer = said(&gateway, Some(&session), &step(Some(&session), &rest));
        // A walk that is named counts, though there is none of that name.
        let legal = if what == "a walk that there is not" { BEGIN } else { NAMED };
        assert!(of_walk || legal == BEGIN || answer["session"] == begun["data"]["session"], "{what}: {answer}");
        assert_says(&answer, what, kind, legal);
    }
    let cut = step(Some(&session), r#""arguments":{"action":"pay""#);
    let cut = said(&gateway, Some(&session), cut.trim_end_matches('}'));
    assert_says(&cut, "a message that is cut off", "invalid_argument", NAMED);
    assert!(done(&place).is_empty());
    place.settled();
}

#[test]
fn every_no_to_a_step_that_stands_alone_says_what_may_be_done_in_the_walk_it_names() {
    let place = Place::new();
    let gateway = till::serve(&place, &format!("{LIMITS}{SALE}"));
    let walk = named(&gateway, "o1");
    let walk = walk.as_str().expect("a handle");
    for (what, rest, kind, of_walk) in wrong(&format!(",\"session\":\"{walk}\"")) {
        let answer = said(&gateway, None, &step(None, &rest));
        assert_says(&answer, what, kind, if of_walk { NAMED } else { BEGIN });
        assert_eq!(answer["session"] == walk, of_walk, "{what}: {answer}");
    }
    // The same through the plain door.
    let deep = format!(r#"{{"action":"pay","session":"{walk}","inputs":{}1{}}}"#, "[".repeat(40), "]".repeat(40));
    assert_says(&gateway.call("step", &deep).1, "too deep", "too_large", NAMED);
    assert_says(&gateway.call("step", "{\"action\":").1, "no JSON", "invalid_argument", BEGIN);
    assert_says(&gateway.call("step", "[]").1, "no object", "invalid_argument", BEGIN);
    assert!(done(&place).is_empty());
    place.settled();
}

#[test]
fn what_is_refused_in_a_walk_for_other_reasons_says_it_too() {
    let place = Place::new();
    let hasty = format!("[limits]\nrate = {{ per_second = 0.001, burst = 6 }}\n{SALE}");
    let gateway = till::serve(&place, &hasty);
    let name = json!({ "action": "name", "inputs": { "order": "o1" } });
    let mut refused = Value::Null;
    eventually("there are too many", || {
        refused = till::step(&gateway, name.clone());
        refused["error"]["kind"] == "rate_limited"
    });
    assert_eq!(refused["status"], "refused", "{refused}");
    assert_legal(&refused, BEGIN);

    let place = Place::new();
    let gateway = till::serve(&place, SALE);
    let client = Bare::stateless(&gateway);
    let walk = named(&gateway, "o1");
    let step = |action: &str, key: &str| {
        let params = json!({ "name": "step", "arguments": { "action": action, "session": walk }, "_meta": { "amends/key": key } });
        client.result("tools/call", params)["structuredContent"].clone()
    };
    let late = step("pay", "k1");
    assert_eq!(late["error"]["kind"], "action_timeout", "{late}");
    assert_legal(&late, &[]);
    assert_says(&step("leave", "k2"), "another is in doubt", "in_flight", &[]);
    till::says(&place, "take", "o1", &json!({ "result": { "id": "t_7" } }));
    eventually("it is settled", || look(&gateway, &walk, "next")["waits"]["done"] == true);
    assert_says(&step("leave", "k3"), "another was done", "in_flight", &["pay"]);
    assert_eq!(step("pay", "k1")["data"]["state"]["name"], "paid");
    assert_says(&step("leave", "k4"), "it is over", "invalid_transition", &[]);
    assert_says(&step("leave", "k1"), "a key for something else", "duplicate", &[]);
}

#[test]
fn a_step_over_standard_input_that_cannot_be_read_says_what_may_be_done() {
    let place = Place::new();
    let words = place.wrap(FAULTS, Some(ORDER));
    let mut wrapped = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut input = wrapped.stdin.take().expect("its input");
    let mut lines = BufReader::new(wrapped.stdout.take().expect("its output")).lines().map_while(Result::ok);
    let mut asks = |id: u64, message: &str| {
        writeln!(input, "{message}").expect("it reads");
        let answers = lines.by_ref().filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        answers.into_iter().find(|answer| answer["id"] == id).expect("an answer")
    };
    let greeting = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bare", "version": "1" } } });
    assert!(asks(1, &greeting.to_string())["result"].is_object());
    let inputs = json!({ "item": "latte", "order": "ord_1" });
    let taken = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "step", "arguments": { "action": "take_order", "inputs": inputs } } });
    let taken = asks(2, &taken.to_string());
    assert_eq!(taken["result"]["structuredContent"]["status"], "success", "{taken}");

    let call = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"step","arguments":{"action":"pay","inputs":"#;
    let deep = asks(3, &format!("{call}{}{}}}}}}}", "[".repeat(200), "]".repeat(200)));
    let cut = asks(3, &format!("{call}{{}}"));
    for (answer, kind) in [(&deep, "too_large"), (&cut, "invalid_argument")] {
        let said = &answer["error"]["data"];
        assert_eq!((&said["status"], &said["error"]["kind"]), (&json!("refused"), &json!(kind)), "{answer}");
        assert_legal(said, &["drop_order", "pay"]);
        assert_eq!(said["error"]["recovery"]["call"]["tool"], "walk", "{answer}");
    }
    assert_eq!(place.requests("charge_card"), 0);
    let _ = wrapped.kill();
    let _ = wrapped.wait();
}

#[test]
fn whoever_takes_a_step_while_nothing_can_be_recorded_is_told_that_and_nothing_else() {
    let place = Place::new();
    let gateway = till::serve(&place, SALE);
    let walk = named(&gateway, "o1");
    std::fs::remove_file(place.path("amends.db")).expect("the ledger's file was there");
    // The second comes while the first is looked after, and is answered when that is given up.
    for which in ["first", "second"] {
        let no = till::take(&gateway, &walk, "leave");
        let told = (&no["status"], &no["error"]["kind"], &no["error"]["certainty"]);
        assert_eq!(told, (&json!("refused"), &json!("store_unavailable"), &json!("not_sent")), "{which}: {no}");
        assert!(no["error"]["retry_after_ms"].is_u64(), "{which}: {no}");
        assert_eq!(no["valid_next_actions"], json!([]), "{which}: {no}");
    }
}

#[test]
fn a_message_that_names_no_tool_is_told_what_its_connection_may_do() {
    let place = Place::new();
    let gateway = till::serve(&place, SALE);
    let client = Bare::stateful(&gateway);
    let begun = client.call("step", json!({ "action": "name", "inputs": { "order": "o1" } }));
    let walk = begun["structuredContent"]["data"]["session"].clone();
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":"#;
    let own = client.session.as_deref().expect("it has a session");
    for message in [
        format!("{call}[1]}}"),
        format!("{call}\"step\"}}"),
        format!(r#"[{call}{{"name":"step","arguments":{{"action":"leave"}}}}}}]"#),
    ] {
        let no = said(&gateway, Some(own), &message);
        assert_eq!((&no["status"], &no["session"]), (&json!("refused"), &walk), "{message}: {no}");
        assert_legal(&no, NAMED);
        assert!(no["error"]["recovery"]["call"]["tool"] == "walk", "{message}: {no}");
    }
    let left = till::take(&gateway, &walk, "leave");
    assert_eq!((&left["status"], &left["data"]["seq"]), (&json!("success"), &json!(2)), "nothing was taken: {left}");
}

/// What is paid has a bound, and needs to be open.
const BOUND: &str = r#"
[machines.sale]
initial = "open"
terminal = ["paid", "left"]
fields = { most = 10, shut = true }

[machines.sale.actions.pay]
from = ["open"]
to = "paid"
input = { type = "object", properties = { amount = { type = "integer" }, to = { type = "string" }, note = { type = "string" } }, required = ["amount", "to"] }
guard = "inputs.amount <= state.most"

[machines.sale.actions.close]
from = ["open"]
to = "paid"
input = { type = "object", properties = { why = { type = "string" } }, required = ["why"] }
guard = "!state.shut && inputs.why != ''"

[machines.sale.actions.unlock]
from = ["open"]
to = "open"
times = 1
writes = { shut = "false" }

[machines.sale.actions.leave]
from = ["open"]
to = "left"
"#;

#[test]
fn inputs_that_fit_neither_their_schema_nor_a_guard_are_told_both_at_once() {
    let place = Place::new();
    let gateway = till::serve(&place, BOUND);
    let inputs = json!({ "amount": 11, "note": "x" });
    let no = till::step(&gateway, json!({ "action": "pay", "inputs": inputs }));
    assert_refused(&no, "validation_failed", &["leave", "pay", "unlock"]);
    let message = no["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("`to`: expected") && message.contains("`inputs.amount` is 11"), "{no}");
    let fields: Vec<&str> =
        no["error"]["details"].as_array().into_iter().flatten().filter_map(|fault| fault["field"].as_str()).collect();
    assert_eq!(fields, ["to", "inputs.amount", "state.most"], "{no}");
    let template = &no["error"]["recovery"]["template"];
    assert_eq!(template["args"]["inputs"], json!({ "note": "x" }), "{no}");
    assert_eq!(template["missing"], json!(["inputs.to", "inputs.amount"]), "{no}");

    // A guard that gives no answer over them says nothing that is known.
    let no = till::step(&gateway, json!({ "action": "pay", "inputs": { "amount": "much", "to": "x" } }));
    assert_refused(&no, "validation_failed", &["leave", "pay", "unlock"]);
    assert!(!no["error"]["message"].as_str().unwrap_or_default().contains("guard"), "{no}");
}

#[test]
fn an_action_that_the_fields_alone_forbid_leads_on_to_others() {
    let place = Place::new();
    let gateway = till::serve(&place, BOUND);
    for inputs in [json!({ "why": "late" }), json!({ "why": 5 })] {
        let no = till::step(&gateway, json!({ "action": "close", "inputs": inputs }));
        assert_refused(&no, "invalid_transition", &["leave", "pay", "unlock"]);
        assert!(no["error"]["message"].as_str().unwrap_or_default().contains("not `!state.shut`"), "{no}");
        let template = json!({ "tool": "step", "args": { "session": no["session"] }, "missing": ["action"] });
        assert_eq!(no["error"]["recovery"]["template"], template, "{no}");
    }
    let unlocked = till::step(&gateway, json!({ "action": "unlock" }));
    assert_legal(&unlocked["data"], &["close", "leave", "pay"]);
}

#[test]
fn an_action_that_is_called_as_a_tool_is_shown_as_an_action_and_a_misspelt_tool_of_one_as_that() {
    let place = Place::new();
    let gateway = serve(&place, ORDER);
    let inputs = json!({ "item": "latte", "order": "ord_1" });
    let before = gateway.call("take_order", &inputs.to_string()).1;
    assert_refused(&before, "invalid_transition", &["drop_order", "take_order"]);
    let template = &before["error"]["recovery"]["template"];
    assert_eq!((&template["tool"], &template["args"]["action"]), (&json!("step"), &json!("take_order")), "{before}");
    assert_eq!((&template["args"]["inputs"], &template["missing"]), (&inputs, &json!([])), "{before}");
    let ordered = gateway.call("step", &template["args"].to_string()).1;
    assert_eq!(ordered["data"]["state"]["name"], "ordered", "{ordered}");
    let session = &ordered["data"]["session"];
    for tool in ["charge_card", "chrge_card", "chargecard"] {
        let stray = gateway.call(tool, &json!({ "session": session, "amount": 5 }).to_string()).1;
        assert_refused(&stray, "invalid_transition", &["drop_order", "pay"]);
        let template = &stray["error"]["recovery"]["template"];
        let args = json!({ "action": "pay", "inputs": { "amount": 5 }, "session": session });
        assert_eq!((&template["tool"], &template["args"]), (&json!("step"), &args), "{stray}");
        assert!(stray["error"]["message"].as_str().is_some_and(|said| said.contains("`charge_card`")), "{stray}");
    }
    assert_eq!(place.requests("charge_card"), 0);
    let odd = gateway.call("step", &json!({ "action": "drop_order", "inputs": {}, "machine": "zz" }).to_string()).1;
    assert_eq!(odd["error"]["kind"], "validation_failed", "{odd}");
    let missing = &odd["error"]["recovery"]["template"]["missing"];
    assert!(!missing.as_array().is_some_and(|missing| missing.contains(&json!("machine"))), "{odd}");
}
