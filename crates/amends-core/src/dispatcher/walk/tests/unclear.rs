//! What was done, and its machine cannot tell what follows from it.

use super::*;
use crate::interaction::Subject;
use crate::registry::WhoMustAct;

fn unclear() -> Weighed {
    Weighed::Unclear { why: "no such key: id".into() }
}

/// An order that is paid for, of which nobody can tell where it leads.
fn paid(spec: Value) -> (World, CallId) {
    let mut world = World::new(spec);
    world.wish("take_order");
    let pay = world.wish("pay");
    world.says = vec![unclear()];
    world.done();
    (world, pay)
}

#[test]
fn what_was_done_and_cannot_be_judged_is_told_and_the_walk_may_begin_again() {
    let (mut world, pay) = paid(order());
    let error = world.answer(&pay).error().unwrap().clone();
    assert_eq!(
        (error.kind, error.certainty, error.who_must_act),
        ("action_error", Certainty::Processed, WhoMustAct::Operator)
    );
    assert!(error.message.contains("`pay` was done") && error.message.contains("no such key: id"), "{}", error.message);
    assert!(!error.safe_to_repeat);
    assert_eq!(world.standing(), Standing::Unclear(&"pay".into()));
    let (_, notice) = world.dispatcher.state.questions.first_key_value().expect("a person hears of it");
    assert_eq!(notice.interaction.subject, Subject::Notice);
    assert!(notice.interaction.question.contains("no such key: id"));

    let other = world.wish_with("pay", "other", None);
    assert_eq!(world.kind(&other), "in_flight");
    assert!(
        world.message(&other).contains("cannot tell what follows") && !world.message(&other).contains("time was over")
    );
    world.says = vec![unclear()];
    let again = world.wish("pay");
    assert_eq!(world.kind(&again), "action_error");
    assert_eq!(world.count("attempt_started"), 1, "nothing is done twice");
    assert_eq!(world.dispatcher.open_questions(), 1, "nobody is told twice");

    let reset = world.reset("reset_1");
    assert_eq!((world.kind(&reset), world.state().as_str(), world.standing()), ("none", "created", Standing::Free));
}

#[test]
fn a_machine_that_was_mended_goes_on_from_what_was_done() {
    let (mut world, _) = paid(order());
    let mut other = order();
    other["order"]["actions"]["pay"] = json!({ "from": ["ordered"], "to": "paid" });
    world.put(Input::Migrate { definition: machines(other), hash: "other".into() });
    assert_eq!(world.count("walk_migrated"), 0, "its action does not want that call any more");
    world.put(Input::Migrate { definition: machines(order()), hash: "mended".into() });
    assert_eq!(world.standing(), Standing::Done(&"pay".into()));
    let pay = world.wish("pay");
    assert!(matches!(world.answer(&pay).body, Body::Success { .. }));
    assert_eq!((world.state().as_str(), world.count("attempt_started")), ("paid", 1));
}

#[test]
fn what_is_in_doubt_is_settled_under_the_declaration_it_was_begun_with() {
    let mut world = World::new(order());
    world.wish("take_order");
    world.wish("pay");
    world.ticks();
    assert_eq!(world.standing(), Standing::InDoubt(&"pay".into()));
    world.put(Input::Migrate { definition: machines(order()), hash: "mended".into() });
    assert_eq!(world.count("walk_migrated"), 0);
}

#[test]
fn what_only_read_is_never_left_unsettled() {
    let mut world = World::new(order());
    world.of_effect(EffectKind::Read, true);
    world.wish("take_order");
    let pay = world.wish("pay");
    world.says = vec![unclear()];
    world.done();
    let error = world.answer(&pay).error().unwrap();
    assert!(error.safe_to_repeat && error.message.contains("nothing was changed"), "{}", error.message);
    assert_eq!((world.standing(), world.dispatcher.open_questions()), (Standing::Free, 0));
    world.wish("pay");
    world.done();
    assert_eq!((world.state().as_str(), world.count("attempt_started")), ("paid", 2));
}

#[test]
fn a_resolution_counts_for_what_cannot_be_judged_unless_it_would_do_it_again() {
    let mut spec = order();
    spec["order"]["actions"]["pay"]["resolution"] = json!("retry_later");
    let (world, pay) = paid(spec);
    assert_eq!((world.kind(&pay), world.standing()), ("action_error", Standing::Unclear(&"pay".into())));

    let mut spec = order();
    spec["order"]["actions"]["pay"]["resolution"] = json!("abort_workflow");
    let (mut world, pay) = paid(spec);
    assert!(world.unwound);
    assert_eq!(world.dispatcher.open_questions(), 0);
    world.put(Input::Unwound { of: pay, undone: 1, failed: Vec::new(), doubtful: Vec::new() });
    let reset = world.reset("reset_1");
    assert_eq!((world.kind(&reset), world.state().as_str()), ("none", "created"));
}
