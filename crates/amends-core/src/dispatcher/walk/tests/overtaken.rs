//! What becomes known when something else was said before, or is being done.

use super::*;
use crate::attempt::Undo;
use crate::gates::Patience;
use crate::playbook::PlaybookSpec;

fn says(world: &mut World, pick: &str) {
    let interaction = world.dispatcher.state.questions.keys().next().expect("a person is asked").clone();
    let answer = PersonAnswer { choice: pick.into(), by: "ann".into(), note: None, at: world.now, content: None };
    world.put(Input::Answer { interaction, answer: Box::new(answer) });
}

fn put(world: &mut World, attempt: &AttemptId, report: Report) {
    world.put(Input::Result { attempt: attempt.clone(), report: Box::new(report) });
}

#[test]
fn a_late_success_counts_though_a_person_said_that_it_did_not_happen() {
    let mut world = World::new(order());
    world.of_effect(EffectKind::Write, true);
    world.undoable = true;
    world.wish("take_order");
    world.wish("pay");
    let paying = world.sent.last().expect("it is sent").clone();
    world.ticks();
    says(&mut world, choice::DID_NOT_HAPPEN);
    assert_eq!(world.standing(), Standing::Free);
    world.claims.clear();
    let undo = Some(Box::new(Undo { tool: "refund".into(), within_ms: 1_000 }));
    for _ in 0..2 {
        put(&mut world, &paying, Report { undo: undo.clone(), ..Report::success(Some(payload())) });
    }
    // Whoever takes it again finds what it gave by the key of its call.
    let complete = |change: &&ClaimChange| matches!(change, ClaimChange::Settle { call, state: ClaimState::Complete, .. } if *call == paying.call);
    assert_eq!(world.claims.iter().filter(complete).count(), 1, "{:?}", world.claims);
    let kept = world.replies.iter().rfind(|reply| reply.call == paying.call).expect("what it gave is kept");
    assert!(matches!(kept.answer, Answer::Forward { .. }));
    assert_eq!((world.count("doubt_resolved"), world.count("reversal_armed")), (2, 1), "once");
    let told: Vec<&str> =
        world.dispatcher.state.questions.values().map(|asked| asked.interaction.question.as_str()).collect();
    assert!(told.len() == 1 && told[0].contains("`charge_card` happened after all"), "{told:?}");
    assert_eq!(world.dispatcher.state.walk.as_ref().map(|walk| walk.deeds.undoing().undoing), Some(1));
    says(&mut world, choice::SEEN);
    assert_eq!(world.dispatcher.open_questions(), 0);
}

/// A walk of which an earlier wish was done, and told only when its time was over; what it gave is judged by its action.
fn done_before(retry: Value) -> World {
    let mut world = World::new(json!({ "order": {
        "initial": "created", "terminal": ["paid", "left"],
        "actions": {
            "pay": { "from": ["created"], "to": "paid", "tool": "charge_card", "timeout": "20s", "assert": "result.ok ? 'ok' : 'fail'", "retry": retry },
            "leave": { "from": ["created"], "to": "left" },
        },
    }}));
    world.of_effect(EffectKind::Write, true);
    world.wish("pay");
    world.ticks();
    world.done();
    assert_eq!(world.standing(), Standing::Done(&"pay".into()));
    world
}

#[test]
fn what_is_gone_on_with_and_judged_stands_in_nobodys_way() {
    let mut world = done_before(Value::Null);
    world.says = vec![Weighed::Fail];
    let pay = world.wish("pay");
    assert!(world.message(&pay).contains("did not do what it should"), "{}", world.message(&pay));
    assert_eq!(world.standing(), Standing::Free, "its agent knows");
    let sent = world.count("attempt_started");
    world.put(Input::Delivery { call: pay });
    world.wish("pay");
    assert_eq!(world.count("attempt_started"), sent + 1, "who was told so wants it done again");
    world.done();
    assert_eq!(world.state().as_str(), "paid");
}

#[test]
fn what_is_tried_again_is_not_gone_on_with_twice() {
    let mut world = done_before(json!({ "max_attempts": 2, "backoff": "fixed", "initial": "1s" }));
    world.says = vec![Weighed::Retry];
    let pay = world.wish("pay");
    world.now = world.dispatcher.deadline().expect("it is tried again").at;
    world.put(Input::Tick);
    world.put(Input::Cancel { call: pay.clone(), reason: CancelReason::TurnEnded });
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    assert_eq!(world.kind(&pay), "turn_cancelled", "{}", world.message(&pay));
    assert_eq!(world.standing(), Standing::Free);
    assert_ne!(world.keys[0], world.keys[1], "what was not well done is done anew");
    world.wish("pay");
    assert_eq!(world.keys[1], world.keys[2], "and what was stopped is the same intention");
    let left = world.wish_with("leave", "{}", None);
    assert_eq!(world.kind(&left), "in_flight", "it is being made");
}

fn cleared(timeout: &str) -> World {
    let mut world = World::new(json!({ "order": {
        "initial": "created", "terminal": ["paid"],
        "actions": { "pay": {
            "from": ["created"], "to": "paid", "tool": "charge_card", "timeout": timeout,
            "exit": [{ "tool": "charge_card", "as": "unlock" }],
        }},
    }}));
    world.of_effect(EffectKind::Write, true);
    world
}

#[test]
fn what_comes_while_a_move_that_is_over_is_cleared_up_after_does_not_make_it() {
    for stopped in [false, true] {
        let mut world = cleared(if stopped { "20s" } else { "3s" });
        let pay = world.wish("pay");
        let act = world.sent.last().expect("it is sent").clone();
        if stopped {
            world.put(Input::Cancel { call: pay.clone(), reason: CancelReason::TurnEnded });
        } else {
            while world.sent.len() == 1 {
                world.now = world.dispatcher.deadline().expect("its time is over").at;
                world.put(Input::Tick);
            }
        }
        let unlock = world.sent.last().expect("it is cleared up after").clone();
        assert_ne!(unlock.call, act.call);
        put(&mut world, &act, Report::success(Some(payload())));
        assert_eq!(world.count("move_weighed"), 0, "stopped: {stopped}; it moves nothing");
        put(&mut world, &unlock, Report::success(Some(payload())));
        let kind = if stopped { "turn_cancelled" } else { "action_timeout" };
        assert_eq!((world.kind(&pay), world.state().as_str()), (kind, "created"), "{}", world.message(&pay));
        let error = world.answer(&pay).error().expect("it failed");
        assert_eq!((error.certainty, error.who_must_act.as_str()), (Certainty::Processed, "agent"));
        assert!(error.message.contains("it was done all the same: take it again"), "{}", error.message);
        assert_eq!(world.standing(), Standing::Done(&"pay".into()));
        let sent = world.count("attempt_started");
        world.wish("pay");
        assert_eq!((world.state().as_str(), world.count("attempt_started")), ("paid", sent), "it goes on from that");
    }
}

#[test]
fn a_no_that_comes_while_a_stopped_move_is_cleared_up_after_leaves_it_stopped() {
    let mut world = cleared("20s");
    let pay = world.wish("pay");
    let act = world.sent.last().expect("it is sent").clone();
    world.put(Input::Cancel { call: pay.clone(), reason: CancelReason::TurnEnded });
    let unlock = world.sent.last().expect("it is cleared up after").clone();
    put(&mut world, &act, failed(Code::Forbidden, Certainty::NotProcessed));
    put(&mut world, &unlock, Report::success(Some(payload())));
    assert_eq!((world.kind(&pay), world.standing()), ("turn_cancelled", Standing::Free), "{}", world.message(&pay));
}

#[test]
fn whoever_is_asked_whether_a_call_of_a_move_is_sent_again_takes_none_of_its_time() {
    for pick in [choice::APPROVE, choice::DENY] {
        let mut world = World::new(order());
        let contract = rules().contract.clone();
        let asks: PlaybookSpec =
            serde_json::from_value(json!({ "server_error_5xx": { "compensation": "escalate_to_human" } })).unwrap();
        world.rules = Arc::new(Rules { playbook: Playbook::parse(&asks, &contract).unwrap(), contract });
        world.gates.patience = Some(Box::new(Patience { hold_ms: 15_000, ..Patience::default() }));
        world.wish("take_order");
        let pay = world.wish("pay");
        world.now = world.now + 4_000;
        world.result(failed(Code::Provider5xx, Certainty::NotProcessed));
        world.now = world.now + 14_000;
        world.put(Input::Tick);
        assert!(world.replies.iter().all(|reply| reply.call != pay), "it is still waited for");
        says(&mut world, pick);
        if pick == choice::DENY {
            let error = world.answer(&pay).error().expect("it is over");
            assert_eq!((error.certainty, world.standing()), (Certainty::NotProcessed, Standing::Free));
            continue;
        }
        world.now = world.now + 4_000;
        world.done();
        assert_eq!(world.state().as_str(), "paid", "the time of its action stood still meanwhile");
    }
}

#[test]
fn who_waits_for_a_yes_to_a_move_is_told_when_it_was_held_for_long_enough() {
    let mut world = World::new(json!({ "order": {
        "initial": "created", "terminal": ["paid"],
        "actions": { "pay": { "from": ["created"], "to": "paid", "tool": "charge_card", "queue": "finance", "timeout": "20s" } },
    }}));
    let patience = Patience { hold_ms: 2_000, ..Patience::default() };
    let gates = Gates { patience: Some(Box::new(patience)), ..Gates::default() };
    let taking = world.taking("pay", "pay");
    world.put_with(&gates, Input::Move(Box::new(taking)));
    assert_eq!(world.dispatcher.deadline().map(|due| due.at), Some(world.now + 2_000));
    world.now = world.now + 2_000;
    world.put(Input::Tick);
    assert_eq!(world.kind(&"pay".into()), "awaiting_person");
}
