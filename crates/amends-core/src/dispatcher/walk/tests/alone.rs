//! What becomes of a move whose agent is gone, or that came to less than it should.

use super::*;
use crate::walk::Part;

fn staged(stage: Value) -> World {
    let mut pay = json!({ "from": ["created"], "to": "paid", "tool": "charge_card", "timeout": "20s" });
    pay.as_object_mut().unwrap().extend(stage.as_object().unwrap().clone());
    World::new(json!({ "order": {
        "initial": "created", "terminal": ["paid"], "actions": { "pay": pay },
    }}))
}

/// The agent goes while its call runs: it leaves, or the gateway does and comes back.
fn goes(world: &mut World, crashes: bool) {
    let of = world.dispatcher.walk().unwrap().open.unwrap().id.clone();
    match crashes {
        true => world.put(Input::Resume),
        false => world.put(Input::Cancel { call: of, reason: CancelReason::Disconnected }),
    }
}

fn no() -> Report {
    failed(Code::Forbidden, Certainty::NotProcessed)
}

#[test]
fn a_failure_that_nobody_waits_for_has_the_same_consequences() {
    let mut later = staged(json!({ "resolution": "retry_later", "later": "1h" }));
    later.wish("pay");
    goes(&mut later, false);
    later.result(no());
    let again = later.wish("pay");
    assert_eq!(later.kind(&again), "retry_later");

    let mut skips = staged(json!({ "resolution": "skip" }));
    skips.wish("pay");
    goes(&mut skips, false);
    skips.result(no());
    assert_eq!(skips.state().as_str(), "paid");

    let mut aborts = staged(json!({ "resolution": "abort_workflow" }));
    aborts.wish("pay");
    goes(&mut aborts, false);
    aborts.result(no());
    assert!(aborts.unwound && aborts.dispatcher.walk().unwrap().over);
}

#[test]
fn nothing_is_tried_again_for_an_agent_that_is_gone_and_the_same_wish_goes_on() {
    let stage =
        json!({ "resolution": "abort_workflow", "retry": { "max_attempts": 2, "backoff": "fixed", "initial": "1s" } });
    let mut world = staged(stage);
    world.wish("pay");
    goes(&mut world, false);
    world.result(no());
    assert_eq!((world.standing(), world.unwound), (Standing::Free, false), "there is a try left");
    world.wish("pay");
    world.result(no());
    world.now = world.dispatcher.deadline().unwrap().at;
    world.put(Input::Tick);
    goes(&mut world, false);
    world.result(no());
    assert!(world.unwound, "that was the last one");
    assert!(world.keys.windows(2).all(|keys| keys[0] == keys[1]), "one intention: {:?}", world.keys);
}

#[test]
fn what_a_crash_or_a_wish_cut_short_is_no_failure() {
    let mut crashed = staged(json!({ "resolution": "abort_workflow" }));
    crashed.of_effect(EffectKind::Read, true);
    crashed.wish("pay");
    goes(&mut crashed, true);
    assert_eq!((crashed.standing(), crashed.unwound), (Standing::Free, false));

    let mut stopped = staged(json!({ "resolution": "abort_workflow" }));
    let pay = stopped.wish("pay");
    stopped.put(Input::Cancel { call: pay, reason: CancelReason::Asked });
    stopped.result(no());
    assert!(!stopped.unwound);
}

#[test]
fn what_did_not_happen_so_far_is_taken_again_once_it_cannot_arrive_any_more() {
    for (staged_as, resets) in
        [(json!({}), false), (json!({}), true), (json!({ "exit": [{ "tool": "charge_card", "as": "unlock" }] }), false)]
    {
        let mut world = staged(staged_as.clone());
        world.wish("pay");
        world.result(failed(Code::ConnectionLost, Certainty::InDoubt));
        let exits = world.trace.iter().any(|event| {
            matches!(&event.fact, Fact::CallReceived { received, .. } if received.leg.as_ref().is_some_and(|leg| leg.part == Part::Exit))
        });
        assert_eq!(exits, staged_as.get("exit").is_some());
        let (id, question) = world.dispatcher.state.questions.first_key_value().expect("a person is asked");
        let (interaction, arrives_by) = (id.clone(), question.interaction.arrives_by.expect("it can still arrive"));
        let choice = choice::DID_NOT_HAPPEN.into();
        let answer = PersonAnswer { choice, by: "ann".into(), note: None, at: world.now, content: None };
        world.put(Input::Answer { interaction, answer: Box::new(answer) });
        if exits {
            world.done();
        }
        if resets {
            world.reset("reset_1");
        }
        assert_eq!((world.state().as_str(), world.standing()), ("created", Standing::Free));
        let sent = world.count("attempt_started");
        let early = world.wish("pay");
        assert_eq!(world.kind(&early), "retry_later");
        let not_before = world.answer(&early).error().unwrap().recovery.as_ref().unwrap().not_before;
        assert_eq!(not_before, Some(arrives_by.ms()));
        assert_eq!(world.count("attempt_started"), sent);
        world.now = arrives_by;
        world.wish("pay");
        assert_eq!(world.count("attempt_started"), sent + 1);
    }
}

#[test]
fn who_only_takes_notice_of_a_call_settles_nothing() {
    let mut world = staged(json!({}));
    world.of_effect(EffectKind::Idempotent, true);
    let pay = world.wish("pay");
    world.result(failed(Code::ConnectionLost, Certainty::InDoubt));
    while world.sent.is_empty() {
        world.now = world.dispatcher.deadline().unwrap().at;
        world.put(Input::Tick);
    }
    // What is sent again, since that is harmless, is turned away by a rule that a person may change.
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    assert_eq!(world.dispatcher.open_questions(), 1, "somebody takes notice");
    assert_eq!(world.standing(), Standing::Unknown(&"pay".into()));
    let message = world.message(&pay).to_owned();
    assert!(message.contains("nobody finds out any more") && !message.contains("is being settled"), "{message}");
    world.wish("pay");
    world.done();
    assert_eq!(world.state().as_str(), "paid");
}

fn skipped(world: &World, of: &CallId) -> Value {
    match &world.answer(of).body {
        Body::Success { data: crate::envelope::Data::Value(data), .. } => data["skipped"].clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn whoever_hears_that_a_move_was_made_hears_that_it_was_passed_over_and_what_of_it_was_done() {
    let mut fails = staged(json!({ "resolution": "skip" }));
    let pay = fails.wish("pay");
    fails.result(no());
    let told =
        json!({ "message": "it failed and was passed over: The upstream refused it", "code": "Forbidden", "done": [] });
    assert_eq!(skipped(&fails, &pay), told);

    let mut badly = staged(json!({ "assert": "result.well ? 'ok' : 'fail'", "resolution": "skip" }));
    badly.says = vec![Weighed::Fail];
    let pay = badly.wish("pay");
    badly.done();
    let told = json!({ "message": "it was done, and passed over by its `assert`", "done": ["act"] });
    assert_eq!(skipped(&badly, &pay), told);

    let mut gated = staged(json!({
        "input": { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] },
        "gate": "inputs.n == 1 ? 'skip' : 'proceed'",
    }));
    gated.says = vec![Weighed::Skip];
    let pay = gated.wish("pay");
    let told = json!({ "message": "it need not be done, as its `gate` says", "done": [] });
    assert_eq!(skipped(&gated, &pay), told);

    let mut half = World::new(json!({ "order": {
        "initial": "created", "terminal": ["paid"], "actions": { "pay": {
            "from": ["created"], "to": "paid", "resolution": "skip",
            "parallel": { "a": { "tool": "charge_card" }, "b": { "tool": "charge_card" } },
        }},
    }}));
    let pay = half.wish("pay");
    half.result(no());
    half.done();
    let told = json!({ "message": "it failed and was passed over: `b`: The upstream refused it", "code": "Forbidden", "done": ["a"] });
    assert_eq!(skipped(&half, &pay), told);

    let mut well = staged(json!({ "resolution": "skip" }));
    let pay = well.wish("pay");
    well.done();
    assert_eq!(skipped(&well, &pay), Value::Null);
}
