//! A crash of each of them while a write is on its way: `kill -9`, and what is left.

use serde_json::{Value, json};

use super::{Chain, Told, charge, error, no_tool_runs, running, with_id};
use crate::agent::{Agent, envelope, last, outcome, results, statuses};
use crate::support::eventually;

/// A charge that takes its time, and one after it.
fn plan() -> Value {
    json!([with_id(charge("ord_1"), "a"), with_id(charge("ord_late"), "b"), with_id(charge("ord_2"), "c")])
}

fn begin(agent: &mut Agent, plan: &Value) -> u64 {
    agent.begin(json!({ "thread": "t", "amends": { "calls": plan } }))
}

fn is_in_doubt(went: &Value, class: &str, code: &str) {
    let told = results(went);
    let error = &envelope(told.last().expect("a result"))["error"];
    let said = (&error["class"], &error["code"], &error["certainty"], &error["safe_to_repeat"]);
    assert_eq!(said, (&json!(class), &json!(code), &json!("in_doubt"), &json!(false)), "{went:#}");
    assert_eq!((&last(went)["type"], &last(went)["code"]), (&json!("RUN_ERROR"), &json!(code)), "{went:#}");
}

#[test]
fn a_client_that_dies_leaves_nothing_running_and_its_plan_goes_on_without_a_second_charge() {
    let chain = Chain::start(Told { first: "[agui]\non_disconnect = \"detach\"\n", ..Told::default() });
    let mut agent = Agent::of(&chain.first);
    begin(&mut agent, &plan());
    eventually("the charge arrives", || chain.charged("ord_late") == (1, 1));
    // Its process is killed with it.
    drop(agent);
    chain.settled();
    assert_eq!(chain.charged("ord_2"), (0, 0));
    let mut agent = Agent::of(&chain.first);
    let n = begin(&mut agent, &plan());
    let went = agent.finish(n);
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done", "done", "done"]), "{went:#}");
    let replayed: Vec<_> = results(&went).into_iter().map(|result| envelope(result)["replayed"] == true).collect();
    assert_eq!(replayed, [true, true, false], "{went:#}");
    for order in ["ord_1", "ord_late", "ord_2"] {
        assert_eq!(chain.charged(order), (1, 1), "{order}");
    }
    chain.settled();
}

#[test]
fn a_first_gateway_that_dies_finds_what_was_done_and_the_plan_goes_on_without_a_second_charge() {
    let mut chain = Chain::start(Told::default());
    let mut agent = Agent::of(&chain.first);
    let n = begin(&mut agent, &plan());
    eventually("the charge arrives", || chain.charged("ord_late") == (1, 1));
    // Without a name nobody could ask the agent what became of it, and it would be in doubt for good.
    eventually("the task has a name", || chain.above.events_named("work_named").len() == 2);
    chain.restart_first("");
    // The stream just breaks: the client knows no end of the run, and nothing that comes after the break.
    let went = agent.finish(n);
    assert!(!["RUN_FINISHED", "RUN_ERROR"].contains(&last(&went)["type"].as_str().unwrap_or_default()), "{went:#}");
    let carried = went["state"].clone();
    drop(agent);
    // Once with what the client carried, once with the plan alone, as a client would that lost everything.
    let mut agent = Agent::of(&chain.first);
    let went = agent.run(json!({ "thread": "t", "state": carried, "amends": { "calls": plan() } }));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done", "done", "done"]), "{went:#}");
    let again = agent.run(json!({ "thread": "t", "fresh": true, "amends": { "calls": plan() } }));
    assert_eq!(statuses(&again), ["done", "done", "done"], "{again:#}");
    assert!(results(&again).into_iter().all(|result| envelope(result)["replayed"] == true), "{again:#}");
    for order in ["ord_1", "ord_late", "ord_2"] {
        assert_eq!(chain.charged(order), (1, 1), "{order}");
    }
    assert_eq!(chain.noted("calls charge_card"), 3);
    chain.settled();
}

#[test]
fn an_agent_that_dies_leaves_a_doubt_that_is_never_sent_again() {
    let mut chain = Chain::start(Told { first_within: "timeout = \"10s\"\ndeadline = \"14s\"", ..Told::default() });
    let mut agent = Agent::of(&chain.first);
    let n = begin(&mut agent, &plan());
    eventually("the charge arrives", || chain.charged("ord_late") == (1, 1));
    chain.kill_clerk();
    let went = agent.finish(n);
    is_in_doubt(&went, "ProviderTransient", "ConnectionLost");
    assert_eq!(statuses(&went), ["done", "failed", "pending"], "{went:#}");
    // What it had begun below goes to its end.
    chain.below.settled();
    chain.start_clerk();
    // While the agent is left alone for having failed, nothing of the plan is looked up either.
    let mut again = Value::Null;
    eventually("the agent is called again", || {
        let n = begin(&mut agent, &plan());
        again = agent.finish(n);
        statuses(&again)[0] == "done"
    });
    assert_eq!(statuses(&again)[..2], ["done", "failed"], "{again:#}");
    assert_eq!((chain.charged("ord_1"), chain.charged("ord_late"), chain.charged("ord_2")), ((1, 1), (1, 1), (0, 0)));
    chain.settled();
}

#[test]
fn a_second_gateway_that_dies_takes_its_tool_with_it_and_leaves_a_doubt() {
    let mut chain = Chain::start(Told::default());
    assert!(!running(&chain.below).is_empty());
    let mut agent = Agent::of(&chain.first);
    let n = begin(&mut agent, &plan());
    eventually("the charge arrives", || chain.charged("ord_late") == (1, 1));
    chain.second.kill();
    let went = agent.finish(n);
    // All that the agent knows is that its tool does not answer.
    is_in_doubt(&went, "ToolTerminal", "ActionError");
    no_tool_runs(&chain.below);
    chain.start_second();
    chain.settled();
    let n = begin(&mut agent, &plan());
    let again = agent.finish(n);
    assert_eq!(statuses(&again)[..2], ["done", "failed"], "{again:#}");
    assert_eq!((chain.charged("ord_1"), chain.charged("ord_late"), chain.charged("ord_2")), ((1, 1), (1, 1), (0, 0)));
}

#[test]
fn a_tool_that_dies_after_its_effect_leaves_a_doubt_with_the_code_of_the_second_gateway() {
    let chain = Chain::start(Told::default());
    let mut agent = Agent::of(&chain.first);
    let crash = json!([with_id(charge("ord_crash"), "a"), with_id(charge("ord_2"), "b")]);
    let n = begin(&mut agent, &crash);
    let went = agent.finish(n);
    is_in_doubt(&went, "ProviderTransient", "ConnectionLost");
    assert_eq!(error(&went)["certainty"], "in_doubt");
    let n = begin(&mut agent, &crash);
    let again = agent.finish(n);
    assert_eq!(statuses(&again), ["failed", "pending"], "{again:#}");
    assert_eq!((chain.charged("ord_crash"), chain.charged("ord_2")), ((1, 1), (0, 0)));
    chain.settled();
}
