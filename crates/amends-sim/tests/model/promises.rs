//! What holds in every state of every world, and what must be reachable so that this says something.

use std::collections::BTreeMap;

use amends_core::{Dispatcher, Fact, Purpose};
use stateright::Property;

use crate::driver::Driver;
use crate::tools::{Tool, own_key};
use crate::world::{State, Told, World};

/// The promises of a world, and what can be reached in it.
pub(crate) fn of(world: &World) -> Vec<Property<World>> {
    let mut promises = vec![
        Property::always("at most once", at_most_once),
        Property::always("success means an effect", |world: &World, state: &State| {
            is_true(world, state, Told::Done, true)
        }),
        Property::always("nothing done means no effect", |world: &World, state: &State| {
            is_true(world, state, Told::Nothing, false)
        }),
        Property::always("the intent is durable first", |_, state: &State| !state.unrecorded),
        Property::always("the end is durable before the answer", |_, state: &State| !state.unfounded),
        Property::always("a call ends once", one_end),
        Property::always("the trace folds to the live state", folds),
        Property::always("one write at a time on an object", one_at_a_time),
        Property::sometimes("success is told", |_, state: &State| {
            state.told.iter().any(|(_, told)| *told == Told::Done)
        }),
    ];
    let tools = |wanted: fn(Tool) -> bool| world.calls.iter().any(|wish| wanted(wish.tool));
    if tools(|tool| tool != Tool::Read) {
        let doubt = |_: &World, state: &State| state.told.iter().any(|(_, told)| *told == Told::Doubt);
        promises.push(Property::sometimes("doubt is told", doubt));
    }
    if tools(|tool| tool == Tool::Write) {
        let fact = |_: &World, state: &State| any(state, |fact| matches!(fact, Fact::DoubtResolved { .. }));
        promises.push(Property::sometimes("a person settles a doubt", fact));
    }
    if tools(|tool| tool == Tool::WriteWithStatus) {
        let fact = |_: &World, state: &State| any(state, |fact| matches!(fact, Fact::DoubtSettled { .. }));
        promises.push(Property::sometimes("a status read settles a doubt", fact));
    }
    if tools(|tool| tool == Tool::Undo) {
        let undone = |_: &World, state: &State| any(state, |fact| matches!(fact, Fact::ReversalRedeemed { .. }));
        let refused = |_: &World, state: &State| any(state, |fact| matches!(fact, Fact::ReversalRefused { .. }));
        promises.push(Property::sometimes("a write is undone", undone));
        promises.push(Property::sometimes("a spent token is refused", refused));
    }
    let unnamed = world.calls.iter().all(|wish| wish.key.is_none());
    if world.calls.len() > 1 && unnamed && tools(|tool| tool != Tool::Read) {
        promises.push(Property::sometimes("the second call meets the first", met));
    }
    promises
}

fn met(_: &World, state: &State) -> bool {
    any(state, |fact| match fact {
        Fact::CallReceived { received, .. } => received.repeat_of.is_some(),
        Fact::CallRefused { .. } => true,
        _ => false,
    })
}

fn any(state: &State, wanted: impl Fn(&Fact) -> bool) -> bool {
    state.drivers.iter().flat_map(Driver::facts).any(wanted)
}

/// What was wished for once, however often it was asked for, takes effect at most once.
fn at_most_once(world: &World, state: &State) -> bool {
    let mut count = BTreeMap::new();
    for (index, wish) in world.calls.iter().enumerate() {
        *count.entry(wish.wish).or_insert(0) += state.effects.get(&own_key(index)).copied().unwrap_or_default();
    }
    count.into_iter().all(|(wish, effects)| {
        // What may be repeated without harm is counted by its end state.
        let harmless = |tool: Tool| matches!(tool, Tool::Idempotent | Tool::Read);
        effects <= 1 || world.calls.iter().any(|its| its.wish == wish && harmless(its.tool))
    })
}

/// Whatever was told of an effect is the truth, and stays it.
fn is_true(world: &World, state: &State, told: Told, happened: bool) -> bool {
    let read = |key: &str| world.calls.iter().enumerate().any(|(n, wish)| own_key(n) == key && wish.tool == Tool::Read);
    let of_it = state.told.iter().filter(|(key, its)| *its == told && !read(key));
    of_it.into_iter().all(|(key, _)| state.effects.contains_key(key) == happened)
}

fn one_end(world: &World, state: &State) -> bool {
    (0..world.calls.len()).map(crate::tools::call_id).all(|id| {
        let ends = state.drivers.iter().flat_map(Driver::facts).filter(|fact| match fact {
            Fact::CallEnded { call, .. } | Fact::CallRefused { call, .. } => *call == id,
            _ => false,
        });
        ends.count() <= 1
    })
}

fn folds(world: &World, state: &State) -> bool {
    state.drivers.iter().filter(|driver| driver.events().next().is_some()).all(|driver| {
        let folded = Dispatcher::restore(driver.events(), |hash| world.rules(hash));
        folded.is_ok_and(|folded| driver.live.as_ref().is_none_or(|live| folded == **live))
    })
}

/// While a write to the object may still arrive, no other one is sent.
fn one_at_a_time(world: &World, state: &State) -> bool {
    let on_object = |call: usize| world.calls[call].object && world.calls[call].tool != Tool::Idempotent;
    let writes = state.wire.iter().filter(|request| request.purpose == Purpose::Act && on_object(request.call));
    let mut calls: Vec<usize> = writes.map(|request| request.call).collect();
    calls.dedup();
    calls.len() <= 1
}
