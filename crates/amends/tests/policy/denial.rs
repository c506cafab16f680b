//! A denial: what the agent is told, what the operator sees, and who finds it.

use serde_json::{Value, json};

use crate::support::{Gateway, Place, eventually};
use crate::up;

const POLICIES: &str = r#"
@id("refunds") permit (principal, action == Action::"issue_refund", resource);
@id("secret-rule-name")
@reason("large refunds go through the office")
forbid (principal, action == Action::"issue_refund", resource)
when { context.args.amount.greaterThan(decimal("100.0")) };
"#;
const LARGE: &str = r#"{"order":"ord_1","amount":100.5,"idempotency_key":"k"}"#;

fn open_notices(place: &Place) -> Vec<Value> {
    let (code, said) = place.amends(&["queue", "--json", "--queue", "policy_review"]);
    assert_eq!(code, 0, "{said}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    said["queue"].as_array().expect("a list").clone()
}

#[test]
fn the_agent_is_told_no_and_the_operator_why_and_nothing_is_sent() {
    let place = Place::new();
    let gateway = up(&place, "", POLICIES);
    let small = gateway.call("issue_refund", r#"{"order":"ord_1","amount":100,"idempotency_key":"a"}"#);
    assert_eq!((small.0, &small.1["status"]), (200, &json!("success")), "{}", small.1);
    let (status, envelope) = gateway.call("issue_refund", LARGE);
    assert_eq!((status, &envelope["status"]), (403, &json!("refused")), "{envelope}");
    assert_eq!(envelope["error"]["kind"], "policy_blocked");
    assert_eq!(
        (&envelope["error"]["retryable"], &envelope["error"]["who_must_act"]),
        (&json!(false), &json!("person"))
    );
    let told = envelope.to_string();
    assert!(!told.contains("secret-rule-name") && !told.contains("office"), "{told}");
    assert_eq!((place.requests("issue_refund"), place.effects("issue_refund")), (1, 1));

    place.settled();
    let received = place.events_named("call_received");
    let ruling = received.iter().find_map(|event| event["gates"].get("ruling")).expect("a ruling is recorded");
    assert_eq!(
        ruling,
        &json!({ "policies": ["secret-rule-name"], "reasons": ["large refunds go through the office"] })
    );
    let call = place.events_named("call_refused")[0]["call"].as_str().expect("a call").to_owned();
    let (_, told) = place.amends(&["trace", &call]);
    assert!(told.contains("denied by policy `secret-rule-name`; large refunds"), "{told}");
}

#[test]
fn over_mcp_the_policy_is_not_named_either() {
    let place = Place::new();
    let gateway = up(&place, "", POLICIES);
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "issue_refund", "arguments": serde_json::from_str::<Value>(LARGE).expect("JSON") },
    });
    let (_, answer) = crate::support::http::post(&gateway.address, "/mcp", &[], body.to_string().as_bytes());
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let told = answer.to_string();
    assert!(told.contains("policy_blocked") && !told.contains("secret-rule") && !told.contains("office"), "{told}");
    assert_eq!(place.requests("issue_refund"), 0);
}

#[test]
fn a_person_finds_one_notice_for_equal_calls_and_is_not_asked_again() {
    let place = Place::new();
    let gateway = up(&place, "", POLICIES);
    let denied = |gateway: &Gateway, amount: u32| {
        let (status, _) = gateway.call("issue_refund", &format!(r#"{{"order":"ord_1","amount":{amount}}}"#));
        assert_eq!(status, 403);
    };
    (0..3).for_each(|_| denied(&gateway, 500));
    eventually("the notice is there", || open_notices(&place).len() == 1);
    let notice = open_notices(&place).remove(0);
    let question = notice["question"].as_str().expect("a question");
    assert!(question.contains("secret-rule-name") && question.contains("the office"), "{question}");
    denied(&gateway, 600);
    eventually("another call has a notice of its own", || open_notices(&place).len() == 2);
    let id = notice["id"].as_str().expect("an id");
    let (code, said) = place.amends(&["answer", id, "seen", "--by", "ops"]);
    assert_eq!(code, 0, "{said}");
    denied(&gateway, 500);
    denied(&gateway, 700);
    eventually("the third is there", || open_notices(&place).len() == 2);
    assert!(open_notices(&place).iter().all(|open| open["id"] != notice["id"]), "it is not asked again");
    assert_eq!(place.requests("issue_refund"), 0);
}

#[test]
fn what_cannot_be_evaluated_and_what_nothing_permits_is_denied() {
    let place = Place::new();
    let broken = r#"
        permit (principal, action in Action::"write", resource);
        @id("broken") forbid (principal, action == Action::"send_email", resource) when { context.args.nothing == 1 };
    "#;
    let gateway = up(&place, "", broken);
    let (status, envelope) = gateway.call("send_email", r#"{"to":"a@example.org","subject":"s","body":"b"}"#);
    assert_eq!((status, &envelope["error"]["kind"]), (403, &json!("policy_blocked")), "{envelope}");
    assert_eq!(place.requests("send_email"), 0);
    let (status, _) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(status, 200);
}

#[test]
fn another_policy_counts_once_its_file_is_changed() {
    let place = Place::new();
    let gateway = up(&place, "", "");
    let charge = |gateway: &Gateway| gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#).0;
    assert_eq!(charge(&gateway), 403);
    let all = "permit (principal, action, resource);";
    place.write("policies.cedar", all);
    eventually("the policy is read anew", || charge(&gateway) == 200);
}
