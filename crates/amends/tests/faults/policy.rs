//! Retry policies: the nearest one decides how often a failure is sent again.

use serde_json::Value;

use crate::faults;
use crate::support::{Gateway, Place};

const CONFIG: &str = r#"
[upstreams.shop]
command = ["amends"]
prefix = ""
timeout = "500ms"

[retry.class.ProviderTransient]
max_attempts = 2
backoff = "fixed"
initial = "20ms"

[tools.get_order]
effect = "read"

[tools.get_refund]
effect = "read"

[tools.get_refund.retry]
max_attempts = 3
backoff = "fixed"
initial = "20ms"

[tools.issue_refund]
effect = "keyed"
key = { argument = "idempotency_key", durable = true }

[tools.issue_refund.retry.verdict.server_error_5xx]
retryable = false
"#;

fn up(place: &Place, script: &str) -> Gateway {
    let config = place.write("policy.toml", CONFIG).display().to_string();
    place.up_with(script, &["--config", &config])
}

/// Which rules judged, and which further sends they led to.
fn judged(place: &Place) -> Vec<(String, Option<u64>)> {
    let of = |event: &Value| (event["rule"].as_str().expect("a rule").to_owned(), event["retry"].as_u64());
    place.events_named("failure_judged").iter().map(of).collect()
}

#[test]
fn a_policy_of_the_whole_file_bounds_every_tool_that_says_nothing_nearer() {
    let place = Place::new();
    let gateway = up(&place, &faults("get_order", "ord_1", &["status_500"; 9]));
    let (_, envelope) = gateway.call("get_order", r#"{"order":"ord_1"}"#);
    assert_eq!((&envelope["outcome"], place.requests_on("get_order", "ord_1")), (&"exhausted".into(), 2), "{envelope}");
    place.settled();
    assert_eq!(judged(&place), [("class".to_owned(), Some(1)), ("class".to_owned(), None)]);
    let failed = &place.events_named("failure_judged")[0]["attempt"]["call"];
    let (code, told) = place.amends(&["trace", failed.as_str().expect("a call")]);
    assert!(code == 0 && told.contains("retries  1"), "{told}");
}

#[test]
fn all_sends_count_whatever_each_was_judged() {
    let place = Place::new();
    let attempts = ["status_500", "lose_response", "status_500", "ok"];
    let gateway = up(&place, &faults("get_refund", "ord_1", &attempts));
    let (_, envelope) = gateway.call("get_refund", r#"{"order":"ord_1"}"#);
    assert_eq!(envelope["outcome"], "exhausted", "{envelope}");
    assert_eq!(place.requests_on("get_refund", "ord_1"), 3);
    place.settled();
    assert!(judged(&place).iter().all(|(rule, _)| rule == "tool_retry"));
}

#[test]
fn what_a_tool_calls_not_retryable_is_sent_once() {
    let place = Place::new();
    let gateway = up(&place, &faults("issue_refund", "ord_1", &["status_500"; 9]));
    let (_, envelope) = gateway.call("issue_refund", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!((&envelope["status"], place.requests_on("issue_refund", "ord_1")), (&"error".into(), 1), "{envelope}");
    place.settled();
    assert_eq!(judged(&place), [("tool_verdict".to_owned(), None)]);
}
