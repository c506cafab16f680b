//! Somebody loses patience, at each hop.

use serde_json::{Value, json};

use super::{Chain, PATIENT, Told, charge, error, report};
use crate::agent::{Agent, last};
use crate::support::eventually;

fn failed(went: &Value, class: &str, code: &str) {
    let error = error(went);
    let said = (&error["class"], &error["code"], &error["certainty"], &error["safe_to_repeat"]);
    assert_eq!(said, (&json!(class), &json!(code), &json!("in_doubt"), &json!(false)), "{went:#}");
    assert_eq!((&last(went)["type"], &last(went)["code"]), (&json!("RUN_ERROR"), &json!(code)), "{went:#}");
}

#[test]
fn a_timeout_of_the_second_gateway_keeps_its_code_to_the_top() {
    let second = PATIENT.replace("timeout = \"40s\"", "timeout = \"1s\"");
    let chain = Chain::start(Told { second: &second, ..Told::default() });
    let mut agent = Agent::of(&chain.first);
    let went = agent.calls("t", json!([charge("ord_lost")]));
    failed(&went, "ProviderTransient", "NetworkTimeout");
    assert_eq!(chain.charged("ord_lost"), (1, 1));
    chain.above.settled();
}

#[test]
fn an_agent_that_loses_patience_says_that_it_failed_and_the_write_below_goes_to_its_end() {
    let chain = Chain::start(Told { clerk: &["--patience", "2"], ..Told::default() });
    let mut agent = Agent::of(&chain.first);
    let went = agent.calls("t", json!([charge("ord_late")]));
    failed(&went, "ToolTerminal", "ActionError");
    assert_eq!(chain.charged("ord_late"), (1, 1));
    chain.settled();
    let ends = chain.below.events_named("call_ended");
    assert!(ends.iter().any(|end| end["outcome"] == "succeeded"), "{ends:#?}");
}

#[test]
fn a_first_gateway_that_loses_patience_stops_the_agent_and_its_tool() {
    let told = Told { first: "[tools.clerk]\neffect = \"write\"\ntimeout = \"3s\"\n", ..Told::default() };
    let chain = Chain::start(told);
    let mut agent = Agent::of(&chain.first);
    let went = agent.calls("t", json!([report()]));
    failed(&went, "ProviderTransient", "NetworkTimeout");
    eventually("the shop hears of it", || chain.below.cancelled("slow_report") == 1);
    assert_eq!((chain.noted("cancelled"), chain.below.requests("slow_report")), (1, 1));
    chain.settled();
}
