//! A result that comes when the move it was for is over.

use super::*;
use crate::contract::StatusReader;
use crate::expression::Expression;

/// A walk whose payment nobody answered in time.
fn doubted(declared: bool) -> World {
    let mut world = World::new(order());
    world.of_effect(EffectKind::Write, declared);
    world.wish("take_order");
    world.wish("pay");
    world.ticks();
    assert_eq!(world.state().as_str(), "ordered");
    assert_eq!(world.dispatcher.open_questions(), usize::from(declared));
    world
}

fn goes_on(mut world: World) {
    assert_eq!((world.state().as_str(), world.standing()), ("ordered", Standing::Done(&"pay".into())));
    assert_eq!((world.dispatcher.open_questions(), world.count("doubt_resolved")), (0, 1));
    let sent = world.count("attempt_started");
    let pay = world.wish("pay");
    assert!(matches!(world.answer(&pay).body, Body::Success { .. }));
    assert_eq!(
        (world.state().as_str(), world.count("attempt_started")),
        ("paid", sent),
        "nothing is sent a second time"
    );
}

#[test]
fn a_late_success_settles_the_doubt_and_the_next_equal_wish_goes_on_from_it() {
    let mut world = doubted(true);
    world.done();
    assert_eq!(world.count("interaction_withdrawn"), 1);
    let of = world.trace.iter().rev().find_map(|event| match &event.fact {
        Fact::CallReceived { received, .. } => Some(received.call.clone()),
        _ => None,
    });
    let kept = world.replies.iter().rfind(|reply| Some(&reply.call) == of.as_ref()).unwrap();
    assert!(matches!(kept.answer, Answer::Forward { .. }), "what it gave is kept for that");
    goes_on(world);
}

#[test]
fn a_late_success_settles_the_doubt_where_nobody_is_asked() {
    let mut world = doubted(false);
    assert_eq!(world.standing(), Standing::Unknown(&"pay".into()));
    world.done();
    goes_on(world);
}

#[test]
fn a_late_refusal_proves_that_nothing_was_done_and_a_late_silence_proves_nothing() {
    let mut world = doubted(true);
    let attempt = world.sent.last().unwrap().clone();
    world.result(failed(Code::ConnectionLost, Certainty::InDoubt));
    assert_eq!(world.standing(), Standing::InDoubt(&"pay".into()));
    world.sent.push(attempt);
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    assert_eq!((world.standing(), world.dispatcher.open_questions()), (Standing::Free, 0));
    world.wish("pay");
    world.done();
    assert_eq!(world.state().as_str(), "paid");
}

#[test]
fn a_person_and_a_late_result_that_cross_settle_it_once() {
    for first in ["person", "result"] {
        let mut world = doubted(true);
        let interaction = world.dispatcher.state.questions.keys().next().unwrap().clone();
        let says = |world: &mut World| {
            let answer = PersonAnswer {
                choice: choice::HAPPENED.into(),
                by: "ann".into(),
                note: None,
                at: world.now,
                content: None,
            };
            world.put(Input::Answer { interaction: interaction.clone(), answer: Box::new(answer) });
        };
        if first == "person" {
            says(&mut world);
            world.done();
        } else {
            world.done();
            says(&mut world);
        }
        goes_on(world);
    }
}

#[test]
fn what_a_status_read_says_late_settles_nothing() {
    let mut world = World::new(order());
    let status = StatusReader {
        tool: "get_charge".into(),
        args: BTreeMap::new(),
        happened: Expression::parse("result.found").unwrap(),
        by_key: true,
    };
    let contract = Contract { status: Some(status), ..rules().contract.clone() };
    world.rules = Arc::new(Rules { playbook: Playbook::parse(&PlaybookSpec::default(), &contract).unwrap(), contract });
    world.wish("take_order");
    world.wish("pay");
    while world.dispatcher.open_calls() > 0 {
        world.now = world.dispatcher.deadline().expect("something is due").at;
        world.put(Input::Tick);
    }
    assert!(world.sent.len() > 1, "the status was read");
    world.done();
    assert_eq!((world.standing(), world.count("doubt_resolved")), (Standing::InDoubt(&"pay".into()), 0));
}

#[test]
fn whoever_goes_on_with_it_looks_at_nothing_again_and_clears_up_nothing_again() {
    let mut spec = order();
    spec["order"]["actions"]["pay"]["setup"] = json!([{ "tool": "look" }]);
    spec["order"]["actions"]["pay"]["exit"] = json!([{ "tool": "clear" }]);
    let mut world = World::new(spec);
    world.of_effect(EffectKind::Write, true);
    world.wish("take_order");
    world.wish("pay");
    world.done();
    let paying = world.sent.last().expect("the payment is sent").clone();
    world.ticks();
    assert_eq!((world.keys.len(), world.sent.len()), (3, 2), "it is over, and was cleared up after");
    world.done();
    world.put(Input::Result { attempt: paying, report: Box::new(Report::success(Some(payload()))) });
    assert_eq!(world.standing(), Standing::Done(&"pay".into()));
    let pay = world.wish("pay");
    assert!(matches!(world.answer(&pay).body, Body::Success { .. }));
    assert_eq!((world.state().as_str(), world.keys.len()), ("paid", 3));
}
