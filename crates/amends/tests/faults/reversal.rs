//! Reversals: a token for each reversible write, redeemed once.

use serde_json::{Value, json};

use crate::faults;
use crate::support::client::{Client, Sdk};
use crate::support::{Gateway, Place, eventually};

fn refund(gateway: &Gateway, order: &str) -> String {
    let (_, done) = gateway.call("issue_refund", &format!(r#"{{"order":"{order}","amount":5}}"#));
    assert_eq!(done["status"], "success", "{done}");
    assert_eq!(done["reversal"]["tool"], "cancel_refund", "{done}");
    done["reversal"]["token"].as_str().expect("a token").to_owned()
}

fn redeem(gateway: &Gateway, token: &str) -> Value {
    gateway.call("amends_reverse", &json!({ "token": token }).to_string()).1
}

#[test]
fn a_token_undoes_its_write_once_whoever_asks_and_however_often() {
    let place = Place::new();
    let gateway = place.up("");
    let token = refund(&gateway, "ord_1");
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..6).map(|_| scope.spawn(|| redeem(&gateway, &token))).collect();
        calls.into_iter().map(|call| call.join().expect("a call")).collect()
    });
    let undone = answers.iter().filter(|answer| answer["status"] == "success").count();
    assert!(undone >= 1, "{answers:?}");
    for answer in answers.iter().filter(|answer| answer["status"] != "success") {
        assert_eq!(answer["error"]["kind"], "reversal_refused", "{answer}");
    }
    assert_eq!((place.effects("cancel_refund"), place.requests("cancel_refund")), (1, 1));
    let late = redeem(&gateway, &token);
    assert_eq!(late["error"]["kind"], "reversal_refused", "{late}");
    eventually("the refusal is on the trace", || !place.events_named("reversal_refused").is_empty());
    let unknown = redeem(&gateway, "rev_0000000000000000000000000000000000000000");
    assert_eq!(unknown["error"]["kind"], "reversal_refused", "{unknown}");
    place.settled();
}

#[test]
fn a_model_sees_the_token_in_the_text_and_the_tool_in_the_list() {
    let place = Place::new();
    let command = place.wrap("", Some(WRAPPED));
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut client = Client::stdio(Sdk::TypeScript, Some("legacy"), &command);
    let tools = client.run(json!({ "op": "list" }));
    assert!(tools.to_string().contains("amends_reverse"), "{tools}");
    let done = client.call("issue_refund", json!({ "order": "ord_1", "amount": 5 }));
    let content = done["result"]["content"].as_array().expect("content").clone();
    let text = content.last().and_then(|block| block["text"].as_str()).expect("a text").to_owned();
    let token = text.split('`').find(|part| part.starts_with("rev_")).expect("a token in the text").to_owned();
    let undone = client.call("amends_reverse", json!({ "token": token }));
    assert_ne!(undone["result"]["isError"], true, "{undone}");
    assert_eq!(place.effects("cancel_refund"), 1);
}

const WRAPPED: &str = r#"
[tools.issue_refund]
effect = "keyed"
key = { argument = "idempotency_key", window = "24h", durable = true }
reverse = { tool = "cancel_refund", args = { id = "result.id" }, within = "1h" }
[tools.cancel_refund]
effect = "idempotent"
"#;

#[test]
fn an_undoing_whose_answer_is_lost_is_asked_for_again_and_happens_once() {
    let place = Place::new();
    let gateway = place.up("[[fault]]\ntool = \"cancel_refund\"\nattempts = [\"lose_response\"]\n");
    let token = refund(&gateway, "ord_1");
    let undone = redeem(&gateway, &token);
    assert_eq!(undone["outcome"], "succeeded_after_compensation", "{undone}");
    assert_eq!(place.effects("cancel_refund"), 1);
    assert_eq!(redeem(&gateway, &token)["error"]["kind"], "reversal_refused");
    place.settled();
}

#[test]
fn an_undoing_that_ended_in_doubt_is_gone_on_with() {
    let place = Place::new();
    let config = WRAPPED.replace("[tools.cancel_refund]", "[tools.cancel_refund]\nretry = { retryable = false }");
    let config = place.write("undo.toml", &config).display().to_string();
    let faults = "[[fault]]\ntool = \"cancel_refund\"\nattempts = [\"lose_response\"]\n";
    let gateway = place.up_with(faults, &["--config", &config]);
    let token = refund(&gateway, "ord_1");
    let doubt = redeem(&gateway, &token);
    assert_eq!((&doubt["outcome"], &doubt["error"]["certainty"]), (&json!("exhausted"), &json!("in_doubt")), "{doubt}");
    let undone = redeem(&gateway, &token);
    assert_eq!(undone["status"], "success", "{undone}");
    assert_eq!(place.effects("cancel_refund"), 1);
    assert_eq!(redeem(&gateway, &token)["error"]["kind"], "reversal_refused");
    place.settled();
}

#[test]
fn an_operator_undoes_one_write_or_all_of_a_session_newest_first() {
    let place = Place::new();
    let gateway = place.up("");
    let token = refund(&gateway, "ord_1");
    let (code, said) = place.amends(&["reverse", &token]);
    assert_eq!((code, said.trim()), (0, "undone"), "{said}");
    let (code, said) = place.amends(&["reverse", &token]);
    assert_eq!(code, 1, "{said}");

    let mut client = Client::http(Sdk::Python, Some("legacy"), &gateway.mcp());
    let mut session = String::new();
    for order in ["ord_2", "ord_3", "ord_4"] {
        let done = client.call("issue_refund", json!({ "order": order, "amount": 5 }));
        assert_ne!(done["result"]["isError"], true, "{done}");
        session = done["result"]["_meta"]["amends/receipt"]["trace"].as_str().expect("its trace").to_owned();
    }
    let (code, said) = place.amends(&["unwind", &session, "--json"]);
    assert_eq!(code, 0, "{said}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    let undone = said["reply"]["undone"].as_array().expect("a list");
    assert_eq!(undone.len(), 3, "{said}");
    let ids: Vec<&str> = undone.iter().filter_map(|one| one["result"]["data"]["id"].as_str()).collect();
    assert_eq!(ids.len(), 3, "{said}");
    assert!(ids.is_sorted_by(|newer, older| newer > older), "newest first: {said}");
    assert_eq!(place.effects("cancel_refund"), 4);
    place.settled();
}

#[test]
fn a_write_whose_answer_is_malformed_is_undone_where_the_playbook_says_so() {
    let place = Place::new();
    let config = r#"
[tools.issue_refund]
effect = "keyed"
key = { argument = "idempotency_key", window = "24h", durable = true }
reverse = { tool = "cancel_refund", args = { id = "result.id" }, within = "1h" }
[tools.issue_refund.playbook.schema_mismatch]
compensation = "issue_reversal"
"#;
    let config = place.write("undo.toml", config).display().to_string();
    let gateway = place.up_with(&faults("issue_refund", "ord_1", &["malformed"]), &["--config", &config]);
    let (_, answer) = gateway.call("issue_refund", r#"{"order":"ord_1","amount":5}"#);
    let tokens = place.events_named("reversal_minted").len();
    assert_eq!(tokens, 1, "{answer}");
    // The malformed answer has no id, so nobody can tell how to undo it: that is said, and nothing is guessed.
    assert_eq!(place.effects("issue_refund"), 1);
    match answer["outcome"].as_str() {
        Some("reversed") => assert_eq!(place.effects("cancel_refund"), 1),
        Some("deprecated") => assert!(!place.events_named("reversal_refused").is_empty(), "{answer}"),
        other => panic!("{other:?}: {answer}"),
    }
    place.settled();
}

#[test]
fn a_write_that_nobody_can_tell_how_to_undo_gives_no_token_and_says_so_on_the_trace() {
    let place = Place::new();
    let config = WRAPPED.replace("result.id", "result.nobody");
    let config = place.write("undo.toml", &config).display().to_string();
    let gateway = place.up_with("", &["--config", &config]);
    let (_, done) = gateway.call("issue_refund", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!((&done["status"], done.get("reversal")), (&json!("success"), None), "{done}");
    let suppressed = place.events_named("suppressed_error");
    assert_eq!(suppressed.len(), 1, "{suppressed:?}");
    assert!(suppressed[0]["reason"].as_str().is_some_and(|reason| reason.contains("nobody")), "{suppressed:?}");
    place.settled();
}
