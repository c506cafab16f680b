//! What is told of a move of which one call was done and another one is in doubt.

use super::*;
use crate::failure::UpstreamWords;
use crate::registry::WhoMustAct;
use crate::verdict::Verdict;

fn both() -> World {
    World::new(json!({ "shop": {
        "initial": "open", "terminal": ["shut"],
        "actions": {
            "both": { "from": ["open"], "to": "paid", "parallel": {
                "p": { "tool": "charge_card" }, "q": { "tool": "charge_card" },
            }},
            "close": { "from": ["open", "paid"], "to": "shut" },
        },
    }}))
}

/// `q` answers first, with an error that says nothing of what was done, and `p` is done.
fn half_done() -> (World, CallId) {
    let mut world = both();
    let both = world.wish("both");
    let words = UpstreamWords { text: Some("no such card".into()), ..UpstreamWords::default() };
    let failure = Failure { upstream: Some(words), ..Failure::of(Code::ActionError) };
    world.result(Report::answered(failure, Certainty::InDoubt, None));
    world.done();
    (world, both)
}

/// A person says that it did not happen; when it cannot arrive any more.
fn did_not_happen(world: &mut World) -> Timestamp {
    let (id, question) = world.dispatcher.state.questions.first_key_value().expect("a person is asked");
    let (interaction, arrives_by) = (id.clone(), question.interaction.arrives_by.expect("it can still arrive"));
    let choice = choice::DID_NOT_HAPPEN.into();
    let answer = PersonAnswer { choice, by: "ann".into(), note: None, at: world.now, content: None };
    world.put(Input::Answer { interaction, answer: Box::new(answer) });
    arrives_by
}

fn halves(world: &World) -> Vec<(String, Vec<String>)> {
    let halves = world.dispatcher.walk().unwrap().halves;
    halves.into_iter().map(|half| (half.action.to_string(), half.done)).collect()
}

const NOT_AGAIN: &str = "`p` was done, and is not done again where the same is taken again";

#[test]
fn a_doubt_that_a_person_settles_is_a_persons_move_and_tells_all_that_its_call_told() {
    let (mut world, both) = half_done();
    let error = world.answer(&both).error().unwrap().clone();
    assert_eq!((error.certainty, error.who_must_act), (Certainty::InDoubt, WhoMustAct::Person));
    assert_eq!(error.verdict, Some(Verdict::InDoubt));
    assert_eq!(error.upstream.and_then(|said| said.text).as_deref(), Some("no such card"));
    let asked = world.dispatcher.state.questions.keys().next().cloned();
    assert_eq!((error.interaction.is_some(), error.interaction), (true, asked));
    assert!(error.message.contains("a person is asked") && error.message.contains("in `q`"), "{}", error.message);
    let other = world.wish("close");
    assert_eq!(world.kind(&other), "in_flight");
    assert!(world.message(&other).contains("a person is asked"), "{}", world.message(&other));
    assert!(world.dispatcher.walk().unwrap().asked);
}

#[test]
fn what_was_done_beside_a_doubt_is_told_until_its_action_is_made() {
    let (mut world, both) = half_done();
    assert!(world.message(&both).contains(NOT_AGAIN), "{}", world.message(&both));
    let known = vec![("both".to_owned(), vec!["p".to_owned()])];
    assert_eq!(halves(&world), known);
    let arrives_by = did_not_happen(&mut world);
    assert_eq!((world.standing(), halves(&world)), (Standing::Free, known));
    let early = world.wish("both");
    assert_eq!(world.kind(&early), "retry_later");
    assert!(world.message(&early).contains(NOT_AGAIN), "{}", world.message(&early));
    world.now = arrives_by;
    world.wish("both");
    world.done();
    world.done();
    assert_eq!((world.state().as_str(), halves(&world)), ("paid", Vec::new()));
}

#[test]
fn what_was_done_of_a_move_that_was_not_made_is_known_when_the_walk_is_over_and_gone_when_it_begins_again() {
    let (mut world, _) = half_done();
    did_not_happen(&mut world);
    world.wish("close");
    assert!(world.dispatcher.walk().unwrap().over);
    assert_eq!(halves(&world).len(), 1);
    world.reset("reset_1");
    assert_eq!(halves(&world), Vec::new(), "taken again it is done again");
}

#[test]
fn what_was_done_beside_what_certainly_failed_is_told_as_well() {
    let mut world = both();
    let both = world.wish("both");
    world.result(failed(Code::Forbidden, Certainty::NotProcessed));
    world.done();
    assert!(world.message(&both).contains(NOT_AGAIN), "{}", world.message(&both));
    assert_eq!(halves(&world).len(), 1);
}
