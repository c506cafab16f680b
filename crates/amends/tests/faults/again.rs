//! When an upstream asks for less: never earlier than it says, and not at all past the agent's patience.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::more_faults;
use crate::support::Place;
use crate::support::client::{Client, Sdk, envelope};

const ORDER: &str = "ord_1";

#[test]
fn a_refund_is_not_sent_again_earlier_than_the_upstream_asks() {
    let place = Place::new();
    let gateway = place.up(&more_faults("issue_refund", ORDER, &["rate_limited"], "retry_after = 2"));
    let mut client = Client::http(Sdk::TypeScript, Some("legacy"), &gateway.mcp());
    let answer = client.call("issue_refund", json!({ "order": ORDER, "amount": 5 }));
    assert_eq!(envelope(&answer)["outcome"], "succeeded_after_compensation", "{answer}");
    assert_apart(&place.arrivals_on("issue_refund", ORDER), 2000);
    assert_eq!(place.effects("issue_refund"), 1);
    place.settled();
}

#[test]
fn a_read_is_not_sent_again_earlier_than_the_upstream_asks() {
    for kind in ["rate_limited", "status_503"] {
        let place = Place::new();
        let gateway = place.up(&more_faults("get_order", ORDER, &[kind], "retry_after = 2"));
        let (_, envelope) = gateway.call("get_order", r#"{"order":"ord_1"}"#);
        assert_eq!(envelope["status"], "success", "{kind}: {envelope}");
        assert_apart(&place.arrivals_on("get_order", ORDER), 2000);
        place.settled();
    }
}

#[test]
fn a_read_that_may_not_come_back_in_time_is_told_when_to() {
    let place = Place::new();
    let gateway = place.up(&more_faults("get_order", ORDER, &["rate_limited"], "retry_after = 120"));
    let mut client = Client::http(Sdk::Python, None, &gateway.mcp());
    let before = now_ms();
    let answer = client.call("get_order", json!({ "order": ORDER }));
    let error = &envelope(&answer)["error"];
    assert_eq!(error["kind"], "retry_later", "{answer}");
    assert_eq!(error["code"], "RateLimited");
    assert!(error["retry_after_ms"].as_u64().is_some_and(|wait| wait >= 120_000), "{error}");
    assert!(error["recovery"]["not_before"].as_u64().is_some_and(|at| at >= before + 120_000), "{error}");
    assert_eq!(place.requests_on("get_order", ORDER), 1);
    place.settled();
}

#[test]
fn a_refund_that_may_not_come_back_in_time_is_told_when_to() {
    let place = Place::new();
    let gateway = place.up(&more_faults("issue_refund", ORDER, &["rate_limited"], "retry_after = 120"));
    let before = now_ms();
    let (_, envelope) = gateway.call("issue_refund", r#"{"order":"ord_1","amount":5}"#);
    let error = &envelope["error"];
    assert_eq!(error["kind"], "retry_later", "{envelope}");
    assert!(error["recovery"]["not_before"].as_u64().is_some_and(|at| at >= before + 120_000), "{error}");
    assert!(error["retry_after_ms"].as_u64().is_some_and(|wait| wait > 60_000), "{error}");
    assert_eq!((place.effects("issue_refund"), place.requests("issue_refund")), (0, 1));
    place.settled();
}

#[test]
fn a_plain_write_that_was_limited_is_not_sent_again_and_says_when() {
    let place = Place::new();
    let gateway = place.up(&more_faults("charge_card", ORDER, &["rate_limited"], "retry_after = 2"));
    let (_, envelope) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    let error = &envelope["error"];
    assert_eq!(error["code"], "RateLimited", "{envelope}");
    assert_eq!(error["certainty"], "in_doubt");
    assert_eq!(error["retry_after_ms"], 2000, "{envelope}");
    assert_eq!((place.effects("charge_card"), place.requests("charge_card")), (0, 1));
    place.settled();
}

#[test]
fn a_plain_write_that_was_limited_is_sent_again_where_the_operator_takes_the_upstreams_word() {
    let place = Place::new();
    let config = "[upstreams.shop]\ncommand = [\"amends\"]\nprefix = \"\"\ntimeout = \"20s\"\n\
                  rejects_before_effect = [429]\n";
    let config = place.write("amends.toml", config).display().to_string();
    let script = more_faults("charge_card", ORDER, &["rate_limited"], "retry_after = 2");
    let gateway = place.up_with(&script, &["--config", &config]);
    let (_, envelope) = gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(envelope["outcome"], "succeeded_after_compensation", "{envelope}");
    assert_apart(&place.arrivals_on("charge_card", ORDER), 2000);
    assert_eq!(place.effects("charge_card"), 1);
    place.settled();
}

fn assert_apart(arrivals: &[i64], ms: i64) {
    assert_eq!(arrivals.len(), 2, "{arrivals:?}");
    assert!(arrivals[1] - arrivals[0] >= ms, "{arrivals:?}");
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
