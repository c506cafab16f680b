//! Small worlds around the real dispatcher, in which every order of events is visited.
//!
//! The states that a world has are printed, and each world must have at least about as many as it has now: a model that
//! explores nothing would hold every promise.

mod driver;
mod ledger;
mod promises;
mod tools;
mod turn;
mod world;

use stateright::{Checker as _, Expectation, HasDiscoveries, Model as _};

use tools::{Tool, Wish};
use world::{Flaw, Left, World};

/// What may happen to one call.
const ONE: Left = Left { crashes: 2, cancels: 1, ticks: 6, refusals: 1 };
/// What may happen to one call whose status is read: each read can be late, so there is less of everything else.
const READ_BACK: Left = Left { crashes: 1, cancels: 1, ticks: 4, refusals: 0 };
/// What may happen to two calls.
const TWO: Left = Left { crashes: 1, cancels: 0, ticks: 2, refusals: 0 };
/// What may happen to a write and two calls that would undo it.
const THREE: Left = Left { crashes: 1, cancels: 0, ticks: 2, refusals: 0 };

fn one(tool: Tool) -> Vec<Wish> {
    vec![Wish { tool, session: 0, wish: 0, args: 0, key: None, object: false }]
}

/// The same call twice: in the same session, or from another.
fn twice(tool: Tool, session: usize) -> Vec<Wish> {
    let first = one(tool)[0];
    vec![first, Wish { session, ..first }]
}

#[expect(clippy::print_stdout, reason = "the number of states is what a reader asks first")]
fn check(world: World, at_least: usize) {
    let name =
        format!("{:?}, {:?}", world.calls.iter().map(|wish| (wish.tool, wish.session)).collect::<Vec<_>>(), world.left);
    let began = std::time::Instant::now();
    let checker = world.checker().threads(2).spawn_bfs().join();
    let states = checker.unique_state_count();
    println!("{name}: {states} states, depth {}, {:?}", checker.max_depth(), began.elapsed());
    let found = checker.discoveries();
    for property in checker.model().properties() {
        match (property.expectation, found.get(property.name)) {
            (Expectation::Always, Some(path)) => {
                panic!("`{}` is broken by {:#?}", property.name, path.clone().into_actions())
            }
            (Expectation::Sometimes, None) => panic!("`{}` cannot be reached", property.name),
            _ => {}
        }
    }
    assert!(states >= at_least, "only {states} states were visited");
}

/// Explores a world until it breaks a promise, and says which.
fn caught(world: World) -> Vec<&'static str> {
    let checker = world.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let properties = checker.model().properties();
    let broken = |name: &str| properties.iter().any(|p| p.name == name && p.expectation == Expectation::Always);
    checker.discoveries().into_keys().filter(|name| broken(name)).collect()
}

/// Two calls with equal arguments, each with the agent's own key.
fn with_keys(tool: Tool) -> Vec<Wish> {
    let first = Wish { key: Some("first"), ..one(tool)[0] };
    vec![first, Wish { key: Some("second"), session: 1, wish: 1, ..first }]
}

/// Two calls that write something else to the same object.
fn on_one_object(tool: Tool) -> Vec<Wish> {
    let first = Wish { object: true, ..one(tool)[0] };
    vec![first, Wish { args: 1, session: 1, wish: 1, ..first }]
}

/// A write, and two calls that redeem its token; what tells them apart is the agents' keys.
fn undone_twice() -> Vec<Wish> {
    let write = one(Tool::Reversible)[0];
    let undo = Wish { tool: Tool::Undo, wish: 1, args: 1, key: Some("first"), ..write };
    vec![write, undo, Wish { session: 1, key: Some("second"), ..undo }]
}

#[test]
fn one_plain_write() {
    check(World::new(one(Tool::Write), ONE, None), 17_000);
}

#[test]
fn one_write_whose_status_can_be_read() {
    check(World::new(one(Tool::WriteWithStatus), READ_BACK, None), 110_000);
}

#[test]
fn one_keyed_write() {
    check(World::new(one(Tool::Keyed), ONE, None), 85_000);
}

#[test]
fn one_idempotent_write() {
    check(World::new(one(Tool::Idempotent), ONE, None), 85_000);
}

#[test]
fn one_read() {
    check(World::new(one(Tool::Read), ONE, None), 8_000);
}

#[test]
fn a_plain_write_and_its_repeat_in_the_same_session() {
    check(World::new(twice(Tool::Write, 0), Left { cancels: 1, ..TWO }, None), 140_000);
}

#[test]
fn a_plain_write_and_its_repeat_from_another_session() {
    check(World::new(twice(Tool::Write, 1), TWO, None), 210_000);
}

#[test]
fn a_write_with_a_status_and_its_repeat() {
    check(World::new(twice(Tool::WriteWithStatus, 1), TWO, None), 110_000);
}

#[test]
fn a_keyed_write_and_its_repeat() {
    check(World::new(twice(Tool::Keyed, 1), Left { ticks: 3, ..TWO }, None), 200_000);
}

#[test]
fn an_idempotent_write_and_its_repeat() {
    check(World::new(twice(Tool::Idempotent, 1), TWO, None), 37_000);
}

#[test]
fn two_equal_reads() {
    check(World::new(twice(Tool::Read, 1), Left { crashes: 0, ..TWO }, None), 4_000);
}

#[test]
fn two_equal_writes_with_keys_of_their_own() {
    check(World::new(with_keys(Tool::Write), Left { ticks: 1, ..TWO }, None), 38_000);
}

#[test]
fn two_writes_to_the_same_object() {
    check(World::new(on_one_object(Tool::Write), TWO, None), 94_000);
}

#[test]
fn one_token_and_two_that_redeem_it() {
    check(World::new(undone_twice(), THREE, None), 100_000);
}

#[test]
fn sending_again_on_a_timeout_is_found() {
    let broken = caught(World::new(one(Tool::Write), ONE, Some(Flaw::ResendOnTimeout)));
    assert!(broken.contains(&"at most once"), "{broken:?}");
}

#[test]
fn sending_before_the_intent_is_durable_is_found() {
    let broken = caught(World::new(one(Tool::Write), ONE, Some(Flaw::SendBeforeAppend)));
    assert!(broken.contains(&"the intent is durable first"), "{broken:?}");
}

#[test]
fn answering_before_the_end_is_durable_is_found() {
    let broken = caught(World::new(one(Tool::Write), ONE, Some(Flaw::ReplyBeforeAppend)));
    assert!(broken.contains(&"the end is durable before the answer"), "{broken:?}");
}

#[test]
fn ignoring_a_held_claim_is_found() {
    let broken = caught(World::new(twice(Tool::Write, 1), TWO, Some(Flaw::IgnoreHeld)));
    assert!(broken.contains(&"at most once"), "{broken:?}");
    let broken = caught(World::new(on_one_object(Tool::Write), TWO, Some(Flaw::IgnoreHeld)));
    assert!(broken.contains(&"one write at a time on an object"), "{broken:?}");
}

#[test]
fn redeeming_a_spent_token_is_found() {
    let broken = caught(World::new(undone_twice(), THREE, Some(Flaw::IgnoreHeld)));
    assert!(broken.contains(&"at most once"), "{broken:?}");
}

#[test]
fn ending_a_call_again_is_found() {
    let broken = caught(World::new(one(Tool::Write), ONE, Some(Flaw::EndAgain)));
    assert!(broken.contains(&"a call ends once"), "{broken:?}");
}

#[test]
fn believing_a_status_too_soon_is_found() {
    let broken = caught(World::new(one(Tool::WriteWithStatus), READ_BACK, Some(Flaw::NegativeAtOnce)));
    assert!(broken.contains(&"nothing done means no effect"), "{broken:?}");
}

#[test]
fn keys_that_are_not_honoured_are_found() {
    let broken = caught(World::new(one(Tool::Keyed), ONE, Some(Flaw::KeysForgotten)));
    assert!(broken.contains(&"at most once"), "{broken:?}");
}
