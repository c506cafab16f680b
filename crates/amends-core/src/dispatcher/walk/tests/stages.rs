//! What is called last, and who is told what while a person is asked.

use super::*;
use crate::claim::{ClaimState, Held};
use crate::contract::StatusReader;
use crate::expression::Expression;
use crate::gates::{Approval, Patience};
use crate::walk::Part;

/// An action that is cleared up after twice.
fn cleared(timeout: &str) -> Value {
    json!({ "order": {
        "initial": "created", "terminal": ["paid"],
        "actions": { "pay": {
            "from": ["created"], "to": "paid", "tool": "charge_card", "timeout": timeout,
            "retry": { "max_attempts": 2, "backoff": "fixed", "initial": "1s" },
            "exit": [{ "tool": "charge_card", "as": "unlock" }, { "tool": "charge_card", "as": "log" }],
        }},
    }})
}

/// A write of which the status tells what became, after a while.
fn told_by_status() -> Arc<Rules> {
    let status = StatusReader {
        tool: "get_charge".into(),
        args: BTreeMap::new(),
        happened: Expression::parse("result.found").unwrap(),
        by_key: true,
    };
    let contract = Contract { status: Some(status), ..rules().contract.clone() };
    Arc::new(Rules { playbook: Playbook::parse(&PlaybookSpec::default(), &contract).unwrap(), contract })
}

/// The calls that were made last, by their names, with the time that each had.
fn exits(world: &World) -> Vec<(String, u64)> {
    let received = |event: &Event| match &event.fact {
        Fact::CallReceived { received, .. } => {
            let leg = received.leg.as_ref().filter(|leg| leg.part == Part::Exit)?;
            Some((leg.name.clone(), received.deadline.since_ms(event.at)))
        }
        _ => None,
    };
    world.trace.iter().filter_map(received).collect()
}

#[test]
fn what_is_called_last_is_called_though_the_time_is_over() {
    let mut world = World::new(cleared("3s"));
    world.rules = told_by_status();
    let pay = world.wish("pay");
    world.sent.clear();
    while exits(&world).is_empty() {
        world.now = world.dispatcher.deadline().expect("something is due").at;
        world.put(Input::Tick);
    }
    assert!(world.replies.iter().all(|reply| reply.call != pay), "it is not over yet");
    // Whatever becomes of the first, the second is called.
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    world.done();
    assert_eq!(exits(&world), [("unlock".to_owned(), 5_000), ("log".to_owned(), 5_000)]);
    assert_eq!(world.kind(&pay), "action_timeout");
    assert_eq!(world.standing(), Standing::InDoubt(&"pay".into()));
}

#[test]
fn a_person_may_settle_a_doubt_while_what_is_called_last_is_made() {
    for (pick, state) in [(choice::HAPPENED, "paid"), (choice::DID_NOT_HAPPEN, "created")] {
        let mut world = World::new(cleared("60s"));
        let pay = world.wish("pay");
        world.result(failed(Code::ConnectionLost, Certainty::InDoubt));
        assert_eq!(exits(&world).len(), 1);
        says(&mut world, pick);
        world.done();
        world.done();
        if pick == choice::DID_NOT_HAPPEN {
            world.put(Input::Cancel { call: pay.clone(), reason: CancelReason::Asked });
        }
        assert_eq!((world.state().as_str(), world.standing()), (state, Standing::Free));
    }
}

#[test]
fn a_move_that_is_stopped_is_told_so_though_stopping_it_broke_its_connection() {
    for (code, certainty, word) in [
        (Code::ConnectionLost, Certainty::InDoubt, "may have happened"),
        (Code::ConnectRefused, Certainty::NotSent, "nothing was sent"),
    ] {
        let mut world = World::new(cleared("60s"));
        let pay = world.wish("pay");
        let act = world.sent.pop().expect("it was sent");
        world.put(Input::Cancel { call: pay.clone(), reason: CancelReason::TurnEnded });
        assert_eq!(exits(&world).len(), 1, "it is cleared up after");
        world.put(Input::Result { attempt: act, report: Box::new(failed(code, certainty)) });
        world.done();
        world.done();
        assert_eq!(world.kind(&pay), "turn_cancelled", "{}", world.message(&pay));
        assert!(world.message(&pay).contains(word), "{}", world.message(&pay));
        assert_eq!(world.answer(&pay).error().map(|error| error.certainty), Some(certainty));
    }
}

#[test]
fn what_failed_before_its_move_was_stopped_is_told_as_what_it_was() {
    let mut world = World::new(cleared("60s"));
    let pay = world.wish("pay");
    world.result(failed(Code::ConnectionLost, Certainty::InDoubt));
    world.put(Input::Cancel { call: pay.clone(), reason: CancelReason::TurnEnded });
    world.done();
    world.done();
    assert_eq!(world.kind(&pay), "action_error", "{}", world.message(&pay));
}

#[test]
fn a_move_of_which_nobody_can_tell_any_more_what_it_writes_is_not_made() {
    let mut world = World::new(cleared("60s"));
    let pay = world.wish("pay");
    world.done();
    assert_eq!(exits(&world).len(), 1, "it was weighed, and is cleared up after");
    let why = "what it gave is not kept any more".to_owned();
    world.put(Input::Weighed { of: pay.clone(), weighed: Weighed::Unclear { why } });
    world.done();
    world.done();
    assert_eq!((world.count("move_made"), world.state().as_str()), (0, "created"));
    assert_eq!(world.standing(), Standing::Unclear(&"pay".into()));
    assert_eq!(world.answer(&pay).error().map(|error| error.certainty), Some(Certainty::Processed));
    assert!(world.message(&pay).contains("what it gave is not kept any more"), "{}", world.message(&pay));
    assert_eq!(world.dispatcher.state.questions.len(), 1, "a person hears of it");
}

#[test]
fn each_try_clears_up_after_itself() {
    let mut world = World::new(cleared("60s"));
    world.wish("pay");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    world.done();
    world.done();
    world.now = world.dispatcher.deadline().unwrap().at;
    world.put(Input::Tick);
    world.done();
    world.done();
    world.done();
    assert_eq!(world.state().as_str(), "paid");
    assert_eq!(exits(&world).len(), 4);
    let (first, second) = (&world.keys[1..3], &world.keys[4..6]);
    assert!(first.iter().all(|key| !second.contains(key)), "{first:?} {second:?}");
    assert_eq!(world.keys[0], world.keys[3], "the act is the same intention");
}

#[test]
fn a_doubt_that_nobody_settled_in_time_leaves_ways_on() {
    for late in [false, true] {
        let mut world = World::new(order());
        world.wish("take_order");
        world.wish("pay");
        world.ticks();
        assert_eq!(world.standing(), Standing::InDoubt(&"pay".into()));
        let reset = |world: &World, id| Taking { reset: true, ..world.taking(id, "reset") };
        let early = reset(&world, "early");
        world.put(Input::Move(Box::new(early)));
        assert_eq!(world.kind(&"early".into()), "in_flight", "a person has time left to say so");
        let due = world.dispatcher.state.questions.first_key_value().unwrap().1.interaction.due;
        world.now = due;
        world.put(Input::Tick);
        assert_eq!(world.standing(), Standing::Unknown(&"pay".into()));
        let other = world.wish_with("pay", "other", None);
        assert_eq!(world.kind(&other), "in_flight");
        if late {
            let id = world.dispatcher.state.questions.keys().next().unwrap().clone();
            let by = PersonAnswer {
                choice: choice::DID_NOT_HAPPEN.into(),
                by: "ann".into(),
                note: None,
                at: world.now,
                content: None,
            };
            world.put(Input::Answer { interaction: id, answer: Box::new(by) });
            assert_eq!((world.state().as_str(), world.standing()), ("ordered", Standing::Free));
        } else {
            let reset = reset(&world, "late");
            world.put(Input::Move(Box::new(reset)));
            assert_eq!((world.state().as_str(), world.standing()), ("created", Standing::Free));
        }
    }
}

fn asks(world: &mut World, hold_ms: u64) {
    let approval =
        Approval { queue: "ops".into(), persons: 1, policy: String::new(), requester_may: false, form: None };
    let patience = Patience { hold_ms, ..Patience::default() };
    world.gates = Gates { approval: Some(Box::new(approval)), patience: Some(Box::new(patience)), ..Gates::default() };
}

fn says(world: &mut World, pick: &str) {
    let id = world.dispatcher.state.questions.keys().next().expect("a person is asked").clone();
    let answer = PersonAnswer { choice: pick.into(), by: "ann".into(), note: None, at: world.now, content: None };
    world.put(Input::Answer { interaction: id, answer: Box::new(answer) });
}

#[test]
fn whoever_waits_for_a_move_is_told_that_a_person_is_asked_about_a_call_of_it() {
    let mut world = World::new(order());
    world.wish("take_order");
    asks(&mut world, 5_000);
    let pay = world.wish("pay");
    assert_eq!(world.dispatcher.deadline().unwrap().at, world.now + 5_000);
    world.now = world.now + 5_000;
    world.put(Input::Tick);
    assert_eq!(world.kind(&pay), "awaiting_person");
    let error = world.answer(&pay).error().unwrap().clone();
    assert!(error.interaction.is_some() && error.certainty == Certainty::NotSent, "{error:?}");
    let again = world.wish("pay");
    assert_eq!(world.kind(&again), "awaiting_person");
    let other = world.wish_with("pay", "other", None);
    assert_eq!(world.kind(&other), "in_flight");
    says(&mut world, choice::APPROVE);
    assert!(world.sent.is_empty(), "nobody waits for it any more");
    assert_eq!((world.state().as_str(), world.standing()), ("ordered", Standing::Free));
    // The next equal wish finds the yes by the key of its call.
    world.held = Some(Held {
        name: "n".into(),
        session: "s".into(),
        call: "call_2".into(),
        state: ClaimState::Granted,
        fingerprint: "f".into(),
        effect_key: String::new(),
        since: world.now,
    });
    world.wish("pay");
    world.done();
    assert_eq!(world.state().as_str(), "paid");
    assert_eq!(world.count("interaction_opened"), 1);
}

#[test]
fn a_no_to_a_call_of_a_move_ends_it_and_a_yes_in_time_makes_it() {
    for (pick, state, kind) in [(choice::APPROVE, "paid", "none"), (choice::DENY, "ordered", "action_error")] {
        let mut world = World::new(order());
        world.wish("take_order");
        asks(&mut world, 5_000);
        let pay = world.wish("pay");
        world.now = world.now + 4_000;
        says(&mut world, pick);
        if pick == choice::APPROVE {
            world.done();
        }
        assert_eq!((world.state().as_str(), world.kind(&pay)), (state, kind));
        assert_eq!(world.standing(), Standing::Free);
    }
}

#[test]
fn what_is_to_be_taken_later_is_not_taken_earlier_after_another_move() {
    let mut world = World::new(json!({ "order": {
        "initial": "created", "terminal": ["paid"], "limits": { "loops": 4 },
        "actions": {
            "look": { "from": ["created"], "to": "created" },
            "pay": { "from": ["created"], "to": "paid", "tool": "charge_card", "resolution": "retry_later", "later": "1m" },
        },
    }}));
    world.wish("pay");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    world.wish("look");
    let soon = world.wish("pay");
    assert_eq!(world.kind(&soon), "retry_later");
    world.now = world.now + 60_000;
    world.wish("pay");
    world.done();
    assert_eq!(world.state().as_str(), "paid");
}

#[test]
fn what_is_undone_is_heard_of_once() {
    let mut world = World::new(json!({ "order": {
        "initial": "created", "terminal": ["paid"],
        "actions": { "pay": {
            "from": ["created"], "to": "paid", "tool": "charge_card", "assert": "'ok'", "resolution": "abort_workflow",
        }},
    }}));
    let pay = world.wish("pay");
    world.says = vec![Weighed::Fail];
    world.done();
    for _ in 0..2 {
        world.put(Input::Unwound { of: pay.clone(), undone: 1, failed: Vec::new(), doubtful: Vec::new() });
    }
    assert_eq!(world.count("walk_unwound"), 1);
}

#[test]
fn a_walk_has_its_time_and_peoples_time_does_not_count() {
    let mut world = World::new(json!({ "order": {
        "initial": "created", "terminal": ["done"], "limits": { "time": "1m", "loops": 9 },
        "actions": {
            "ask": { "from": ["created"], "to": "created", "queue": "finance" },
            "look": { "from": ["created"], "to": "created" },
            "end": { "from": ["created"], "to": "done" },
        },
    }}));
    let began = world.now;
    world.wish("ask");
    world.now = began + 50_000;
    says(&mut world, choice::APPROVE);
    assert_eq!(world.dispatcher.walk().unwrap().ends, Some(began + 110_000));
    world.now = began + 109_999;
    let in_time = world.wish("look");
    assert_eq!(world.kind(&in_time), "none");
    world.now = began + 110_000;
    for action in ["look", "end"] {
        let late = world.wish_with(action, "late", None);
        assert_eq!(world.kind(&late), "invalid_transition");
        assert!(world.answer(&late).error().unwrap().message.contains("gone on for the 60000 ms"));
    }
    let reset = Taking { reset: true, ..world.taking("reset_1", "reset") };
    world.put(Input::Move(Box::new(reset)));
    let again = world.wish_with("end", "again", None);
    assert_eq!((world.kind(&again), world.state().as_str()), ("none", "done"));
}

#[test]
fn what_was_done_when_its_walks_time_was_over_is_gone_on_with() {
    let mut spec = order();
    spec["order"]["limits"] = json!({ "time": "10s" });
    let mut world = World::new(spec);
    world.wish("take_order");
    world.wish("pay");
    world.ticks();
    assert_eq!(world.standing(), Standing::InDoubt(&"pay".into()));
    world.now = world.dispatcher.walk().unwrap().ends.unwrap() + 1;
    says(&mut world, choice::HAPPENED);
    assert_eq!(world.standing(), Standing::Done(&"pay".into()));
    world.wish("pay");
    assert_eq!(world.state().as_str(), "paid");
}

#[test]
fn tries_of_a_stage_are_made_of_whole_calls_and_each_retry_is_counted_once() {
    let ends = |retry: Value| {
        let mut world = World::new(json!({ "order": {
            "initial": "created", "terminal": ["paid"],
            "actions": { "pay": {
                "from": ["created"], "to": "paid", "tool": "charge_card", "timeout": "10m", "assert": "'ok'", "retry": retry,
            }},
        }}));
        world.rules = Arc::new(Rules {
            contract: Contract { effect: EffectKind::Idempotent, ..rules().contract.clone() },
            playbook: rules().playbook.clone(),
        });
        let pay = Taking { deadline: world.now + 600_000, ..world.taking("pay_1", "pay") };
        world.put(Input::Move(Box::new(pay)));
        while world.dispatcher.walk().unwrap().open.is_some() {
            while !world.sent.is_empty() {
                world.result(failed(Code::ConnectRefused, Certainty::NotSent));
            }
            if let Some(deadline) = world.dispatcher.deadline() {
                world.now = world.now.max(deadline.at);
                world.put(Input::Tick);
            }
        }
        assert_eq!(world.kind(&"pay_1".into()), "action_error");
        (world.count("attempt_started"), world.count("call_received"), world.count("move_waits"))
    };
    let (sends, calls, waits) = ends(Value::Null);
    assert_eq!((calls, waits), (1, 0));
    assert!(sends > 1, "the call itself is sent again");
    let tried_again = json!({ "max_attempts": 3, "backoff": "fixed", "initial": "1s" });
    assert_eq!(ends(tried_again), (3 * sends, 3, 2));
}

fn siblings() -> Value {
    json!({ "fan": {
        "initial": "a", "terminal": ["b"],
        "actions": { "both": {
            "from": ["a"], "to": "b", "timeout": "20s",
            "parallel": { "one": { "tool": "charge_card" }, "two": { "tool": "charge_card" } },
        } },
    }})
}

#[test]
fn of_two_calls_at_once_it_is_said_which_was_done_and_that_one_is_not_done_again() {
    let mut world = World::new(siblings());
    let both = world.wish("both");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    world.done();
    let error = world.answer(&both).error().unwrap();
    assert_eq!((error.kind, error.certainty), ("action_error", Certainty::Processed));
    assert!(error.message.contains("failed in `two`") && error.message.contains("`one` was done"), "{}", error.message);
    assert_eq!((world.state().as_str(), world.standing()), ("a", Standing::Free));
    world.wish("both");
    assert_eq!(world.keys[..2], world.keys[2..], "what was done is found by its key");
}

#[test]
fn a_call_that_is_over_its_time_holds_the_walk_up_until_it_is_settled_though_the_other_was_done() {
    let mut world = World::new(siblings());
    let both = world.wish("both");
    let two = world.sent.pop().unwrap();
    world.done();
    world.ticks();
    assert_eq!(world.answer(&both).error().unwrap().certainty, Certainty::InDoubt);
    assert_eq!(world.standing(), Standing::InDoubt(&"both".into()));
    world.sent.push(two);
    world.done();
    assert_eq!((world.state().as_str(), world.standing()), ("a", Standing::Done(&"both".into())));
    let sent = world.count("attempt_started");
    world.wish("both");
    assert_eq!((world.state().as_str(), world.count("attempt_started")), ("b", sent));
}

fn staged(more: Value) -> World {
    let mut action = json!({ "from": ["created"], "to": "paid", "tool": "charge_card" });
    action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    World::new(json!({ "order": { "initial": "created", "terminal": ["paid"], "actions": { "pay": action } } }))
}

#[test]
fn a_failure_that_is_skipped_leads_on_with_nothing_to_show_unless_it_is_in_doubt() {
    let mut world = staged(json!({ "resolution": "skip" }));
    let pay = world.wish("pay");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    assert!(matches!(world.answer(&pay).body, Body::Success { .. }));
    assert_eq!((world.state().as_str(), world.count("move_made")), ("paid", 1));

    let mut world = staged(json!({ "resolution": "skip" }));
    let pay = world.wish("pay");
    world.result(failed(Code::ConnectionLost, Certainty::InDoubt));
    assert_eq!(world.answer(&pay).error().unwrap().certainty, Certainty::InDoubt);
    assert_eq!(world.state().as_str(), "created");
}

#[test]
fn an_assert_may_pass_over_what_was_done() {
    let mut world = staged(json!({ "assert": "'ok'" }));
    let pay = world.wish("pay");
    world.says = vec![Weighed::Skip];
    world.done();
    assert!(matches!(world.answer(&pay).body, Body::Success { .. }));
    assert_eq!((world.state().as_str(), world.count("attempt_started")), ("paid", 1));
}

#[test]
fn a_gate_that_says_retry_is_asked_again_and_nothing_is_done_before_it_opens() {
    let gate = json!({
        "setup": [{ "tool": "charge_card", "as": "look" }], "gate": "'proceed'",
        "retry": { "max_attempts": 3, "backoff": "fixed", "initial": "1s" },
    });
    for opens in [true, false] {
        let mut world = staged(gate.clone());
        world.of_effect(EffectKind::Read, true);
        world.says = vec![Weighed::Retry, Weighed::Retry];
        if !opens {
            world.says.push(Weighed::Retry);
        }
        let pay = world.wish("pay");
        for _ in 0..2 {
            world.done();
            world.now = world.dispatcher.deadline().expect("the next try is due").at;
            world.put(Input::Tick);
        }
        world.done();
        if opens {
            world.done();
            assert_eq!((world.state().as_str(), world.count("attempt_started")), ("paid", 4));
        } else {
            assert_eq!((world.kind(&pay), world.state().as_str()), ("action_error", "created"));
            assert_eq!((world.count("attempt_started"), world.standing()), (3, Standing::Free));
        }
    }
}
