//! An error at each hop.

use serde_json::{Value, json};

use super::{Chain, Told, call, charge, error};
use crate::agent::{Agent, last, outcome, statuses};
use crate::support::http;

#[test]
fn an_error_at_each_hop_arrives_at_the_top_with_its_class_and_code_once() {
    let chain = Chain::start(Told::default());
    let mut agent = Agent::of(&chain.first);
    let does = |what: &str| json!({ "tool": "clerk", "args": { "data": { "do": what } } });
    // Where it is said, what is said, whether the model is told or the run fails, and what is known of the effect.
    for (hop, wish, class, code, certainty, fails) in [
        ("tool", charge("ord_wrong"), "ToolTerminal", "InputInvalid", "not_processed", false),
        ("second", call("charge_crad", json!({})), "ToolTerminal", "NotFound", "not_processed", false),
        ("agent rejects", does("reject"), "ToolTerminal", "ActionError", "not_processed", false),
        ("agent fails", does("fail"), "ToolTerminal", "ActionError", "in_doubt", true),
        ("agent breaks", does("raise"), "ToolTerminal", "ActionError", "in_doubt", true),
        ("first", json!({ "tool": "clerk", "args": { "data": 7 } }), "ToolTerminal", "InputInvalid", "not_sent", false),
    ] {
        let went = agent.calls(hop, json!([wish]));
        let error = error(&went);
        let said = (&error["class"], &error["code"], &error["certainty"]);
        assert_eq!(said, (&json!(class), &json!(code), &json!(certainty)), "{hop}: {went:#}");
        assert_eq!(statuses(&went), ["failed"], "{hop}");
        match fails {
            true => {
                assert_eq!((&last(&went)["type"], &last(&went)["code"]), (&json!("RUN_ERROR"), &json!(code)), "{hop}")
            }
            false => assert_eq!(outcome(&went), "success", "{hop}"),
        }
    }
    // And at the client itself, which is told before anything runs.
    let (status, refused) = http::post(&chain.first.address, "/agui", &[], b"{}");
    assert_eq!((status, &refused["error"]["kind"]), (422, &json!("invalid_argument")), "{refused:#}");
    assert_eq!(chain.charged("ord_wrong"), (1, 0));
    assert_eq!(chain.noted("calls charge_card"), 1);
    chain.settled();
}

#[test]
fn what_is_done_at_the_bottom_is_told_at_the_top_with_what_the_tool_gave() {
    let chain = Chain::start(Told::default());
    let mut agent = Agent::of(&chain.first);
    let went = agent.calls("t", json!([charge("ord_1"), charge("ord_2")]));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done", "done"]), "{went:#}");
    let told = crate::agent::results(&went);
    let given =
        |n: usize| -> Value { serde_json::from_str(told[n]["content"].as_str().unwrap_or("null")).unwrap_or_default() };
    let text = |n: usize| told[n]["content"].to_string();
    assert!(given(0)["order"] == "ord_1" || text(0).contains("ord_1"), "{went:#}");
    assert!(text(1).contains("ord_2"), "{went:#}");
    assert_eq!((chain.charged("ord_1"), chain.charged("ord_2")), ((1, 1), (1, 1)));
    chain.settled();
}
