//! What people say of a move, and the time they take for it.

use super::*;
use crate::gates::{Approval, Patience};

fn asked() -> World {
    let mut world = World::new(json!({ "order": {
        "initial": "created", "terminal": ["paid"], "limits": { "time": "40s", "loops": 9 },
        "actions": {
            "look": { "from": ["created"], "to": "created" },
            "pay": { "from": ["created"], "to": "paid", "tool": "charge_card", "queue": "finance", "timeout": "20s" },
        },
    }}));
    world.wish("pay");
    world
}

fn says(world: &mut World, pick: &str) {
    let interaction = world.dispatcher.state.questions.keys().next().expect("a person is asked").clone();
    let answer = PersonAnswer { choice: pick.into(), by: "ann".into(), note: None, at: world.now, content: None };
    world.put(Input::Answer { interaction, answer: Box::new(answer) });
}

#[test]
fn a_no_is_heard_by_every_equal_wish_while_the_walk_stays_where_it_is() {
    for told_before in [false, true] {
        let mut world = asked();
        if told_before {
            world.now = world.now + 20_000;
            world.put(Input::Tick);
        }
        says(&mut world, choice::DENY);
        for _ in 0..2 {
            let again = world.wish("pay");
            assert_eq!(world.kind(&again), "approval_denied");
            assert!(world.message(&again).contains("a person said no to `pay`"), "{}", world.message(&again));
        }
        assert_eq!((world.dispatcher.open_questions(), world.count("interaction_opened")), (0, 1));
        let other = world.wish_with("pay", "less", None);
        assert_eq!(world.dispatcher.open_questions(), 1, "other inputs are another question");
        says(&mut world, choice::DENY);
        assert_eq!(world.kind(&other), "approval_denied");
        world.wish("look");
        world.wish("pay");
        assert_eq!(world.dispatcher.open_questions(), 1, "the walk has gone on since");
    }
}

#[test]
fn what_is_due_waits_for_its_tick_where_there_is_nothing_to_decide() {
    let mut world = asked();
    world.now = world.now + 20_000;
    let answer =
        PersonAnswer { choice: choice::APPROVE.into(), by: "ann".into(), note: None, at: world.now, content: None };
    world.put(Input::Answer { interaction: "int_gone".into(), answer: Box::new(answer) });
    assert_eq!((world.count("ignored"), world.count("interim_answered")), (1, 0));
    assert_eq!(world.dispatcher.deadline().map(|due| due.at), Some(world.now), "a tick is wanted at once");
    world.put(Input::Tick);
    assert_eq!(world.count("interim_answered"), 1);
}

#[test]
fn people_who_are_asked_at_once_take_their_time_once() {
    let mut world = World::new(json!({ "fan": {
        "initial": "a", "terminal": ["b"], "limits": { "time": "40s" },
        "actions": { "both": {
            "from": ["a"], "to": "b", "timeout": "20s",
            "parallel": { "one": { "tool": "charge_card" }, "two": { "tool": "charge_card" } },
        } },
    }}));
    let approval =
        Approval { queue: "ops".into(), persons: 1, policy: String::new(), requester_may: false, form: None };
    let patience = Patience { hold_ms: 3_600_000, ..Patience::default() };
    world.gates = Gates { approval: Some(Box::new(approval)), patience: Some(Box::new(patience)), ..Gates::default() };
    let began = world.now;
    world.wish("both");
    assert_eq!(world.dispatcher.open_questions(), 2);
    for took_ms in [10_000, 13_000] {
        world.now = began + took_ms;
        says(&mut world, choice::APPROVE);
    }
    assert_eq!(world.dispatcher.walk().unwrap().ends, Some(began + 53_000));
    let open = world.dispatcher.state.walk.as_ref().unwrap().open.as_ref().unwrap();
    assert_eq!(open.deadline, began + 33_000);
}

#[test]
fn that_nobody_said_anything_is_told_once() {
    let mut world = asked();
    world.now = world.now + 20_000;
    world.put(Input::Tick);
    world.now = world.now + 48 * 60 * 60 * 1000;
    world.put(Input::Tick);
    assert_eq!(world.count("interaction_lapsed"), 1);
    let told = world.wish("pay");
    assert_eq!(world.kind(&told), "approval_expired");
    world.wish("pay");
    assert_eq!(world.dispatcher.open_questions(), 1);
}

#[test]
fn a_question_that_was_taken_back_took_no_time_of_the_walk() {
    let mut world = asked();
    world.now = world.now + 50_000;
    let of = world.dispatcher.walk().unwrap().open.unwrap().id.clone();
    world.put(Input::Cancel { call: of, reason: CancelReason::Asked });
    assert_eq!(world.dispatcher.open_questions(), 0);
    let look = world.wish("look");
    assert_eq!(world.kind(&look), "none");
}
