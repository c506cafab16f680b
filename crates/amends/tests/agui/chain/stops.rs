//! A cancel at each hop that can cancel.

use serde_json::{Value, json};

use super::{Chain, Told, charge, error, report, with_id};
use crate::agent::{Agent, outcome, statuses};
use crate::support::{eventually, http};

#[test]
fn a_stop_and_a_client_that_is_gone_reach_the_tool_through_every_hop() {
    let chain = Chain::start(Told::default());
    let mut agent = Agent::of(&chain.first);
    let n = agent.begin(json!({ "thread": "stop", "amends": { "calls": [report(), charge("ord_1")] } }));
    eventually("the report is asked for", || chain.below.requests("slow_report") == 1);
    let (status, _) = http::post(&chain.first.address, "/agui/stop", &[], br#"{"threadId":"stop"}"#);
    assert_eq!(status, 202);
    let went = agent.finish(n);
    assert_eq!((outcome(&went), statuses(&went)), ("cancelled", vec!["cancelled", "pending"]), "{went:#}");
    assert_eq!(
        (&error(&went)["class"], &error(&went)["code"]),
        (&json!("Cancellation"), &json!("ToolCancelled")),
        "{went:#}"
    );
    eventually("the shop hears of it", || chain.below.cancelled("slow_report") == 1);
    assert_eq!(chain.noted("cancelled"), 1);

    let again = json!([{ "tool": "clerk", "args": { "data": { "tool": "slow_report", "args": { "steps": 1001, "step_ms": 60 } } } }]);
    let n = agent.begin(json!({ "thread": "gone", "abort_after": "TOOL_CALL_END", "amends": { "calls": again } }));
    let _ = agent.finish(n);
    eventually("the cancel is recorded", || chain.above.events_named("cancel_requested").len() == 2);
    eventually("whatever was begun for it is stopped", || {
        chain.below.requests("slow_report") == chain.below.cancelled("slow_report") && chain.below.open_calls() == 0
    });
    assert_eq!(chain.charged("ord_1"), (0, 0));
    chain.settled();
}

#[test]
fn a_task_that_somebody_else_cancels_at_the_agent_is_a_cancel_at_the_top() {
    let chain = Chain::start(Told::default());
    let mut agent = Agent::of(&chain.first);
    let n = agent.begin(json!({ "thread": "t", "amends": { "calls": [report()] } }));
    eventually("the report is asked for", || chain.below.requests("slow_report") == 1);
    let mut named = Value::Null;
    eventually("the task has a name", || {
        named = chain.above.events_named("work_named").first().cloned().unwrap_or_default();
        !named.is_null()
    });
    let task = named["work"].as_str().or_else(|| named["name"].as_str()).unwrap_or_else(|| panic!("{named:#}"));
    let address = chain.clerk.url.strip_prefix("http://").expect("an address");
    let cancel = json!({ "jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": { "id": task } }).to_string();
    let (_, said) = http::post(address, "/rpc", &[("a2a-version", "1.0")], cancel.as_bytes());
    assert_eq!(said["result"]["status"]["state"], "TASK_STATE_CANCELED", "{said:#}");
    let went = agent.finish(n);
    let error = error(&went);
    assert_eq!((&error["class"], &error["code"]), (&json!("Cancellation"), &json!("ToolCancelled")), "{went:#}");
    eventually("the shop hears of it", || chain.below.cancelled("slow_report") == 1);
    chain.settled();
}

#[test]
fn a_write_that_was_sent_before_the_stop_is_settled_and_a_repeat_does_not_do_it_again() {
    let chain = Chain::start(Told::default());
    let mut agent = Agent::of(&chain.first);
    let plan = json!([with_id(charge("ord_late"), "late")]);
    let n = agent.begin(json!({ "thread": "t", "amends": { "calls": plan } }));
    eventually("the charge arrives", || chain.charged("ord_late") == (1, 1));
    let (status, _) = http::post(&chain.first.address, "/agui/stop", &[], br#"{"threadId":"t"}"#);
    assert_eq!(status, 202);
    let went = agent.finish(n);
    assert_eq!(outcome(&went), "cancelled", "{went:#}");
    assert_eq!(error(&went)["certainty"], "in_doubt", "{went:#}");
    let again = agent.run(json!({ "thread": "t", "fresh": true, "amends": { "calls": plan } }));
    assert_ne!(statuses(&again), ["done"], "nobody knows that it was done: {again:#}");
    assert_eq!(chain.charged("ord_late"), (1, 1));
    chain.settled();
}
