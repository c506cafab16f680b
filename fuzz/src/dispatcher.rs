//! The dispatcher: any inputs at any times, with its promises checked after each of them.

pub mod inputs;
mod promises;
pub mod walker;

use amends_core::dispatcher::redecide::redecide;
use amends_core::{Dispatcher, Event, Gates, Input, Step, Timestamp};

use crate::bytes::Bytes;
use inputs::World;
use promises::Promises;

/// How many inputs one run hands in at most.
const INPUTS_MAX: usize = 96;
/// How many ticks a call may need to come to its end when nothing else happens: one for each attempt and each wait.
const TICKS_MAX: usize = 200;
/// Times after this one are no times of this world: arithmetic stops at the end of the numbers.
const LATEST: Timestamp = Timestamp::from_ms(1 << 60);

/// Reads the bytes as inputs for one session.
pub fn target(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let mut world = World::new(&mut bytes);
    let mut session = Session::open(bytes.number());
    for _ in 0..INPUTS_MAX {
        if bytes.is_empty() {
            break;
        }
        let (at, gates, input) = world.next(&mut bytes, session.dispatcher.deadline());
        let step = session.hand_in(&world, at, &gates, input);
        world.learn(&step);
        session.ticks_are_in_their_time(world.now, &gates);
    }
    let difference = redecide(&session.events, world.rules_of());
    assert!(matches!(difference, Ok(None)) || session.events.is_empty(), "decided otherwise: {difference:?}");
    session.comes_to_its_end(&mut world);
}

/// A session, its trace, and what it promised.
pub(crate) struct Session {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) events: Vec<Event>,
    promises: Promises,
}

impl Session {
    pub(crate) fn open(seed: u64) -> Self {
        let dispatcher = Dispatcher::open("session".into(), seed, "local".into(), "fuzz");
        Self { dispatcher, events: Vec::new(), promises: Promises::default() }
    }

    /// Hands one input in. Afterwards the trace still folds to the live state.
    pub(crate) fn hand_in(&mut self, world: &World, at: Timestamp, gates: &Gates, input: Input) -> Step {
        let said = format!("{input:?}");
        let step = self.dispatcher.handle(at, gates, input);
        self.events.extend(step.events.iter().cloned());
        self.promises.check(&step, world);
        if !self.events.is_empty() {
            let folded = Dispatcher::restore(&self.events, world.rules_of());
            let folded = folded.unwrap_or_else(|error| panic!("after {said}: {error}"));
            assert_eq!(folded, self.dispatcher, "after {said}");
        }
        step
    }

    /// A tick before the deadline changes nothing; a tick at it moves it.
    pub(crate) fn ticks_are_in_their_time(&self, now: Timestamp, gates: &Gates) {
        let deadline = self.dispatcher.deadline();
        let early = match &deadline {
            Some(deadline) if deadline.at > now => Some(deadline.at - 1),
            Some(_) => None,
            None => Some(now + 1_000_000),
        };
        if let Some(early) = early {
            let mut probe = self.dispatcher.clone();
            let step = probe.handle(early, gates, Input::Tick);
            assert!(step == Step::default() && probe == self.dispatcher, "a tick at {early:?} gives {step:?}");
        }
        if let Some(due) = deadline.filter(|deadline| deadline.at < LATEST) {
            let at = due.at.max(now);
            let mut probe = self.dispatcher.clone();
            let step = probe.handle(at, gates, Input::Tick);
            let after = probe.deadline();
            assert!(after.as_ref().is_none_or(|after| after.at > at), "{due:?}, then {after:?}, by {step:?}");
        }
    }

    /// When nothing more arrives and time runs on, every call ends.
    fn comes_to_its_end(&mut self, world: &mut World) {
        for _ in 0..TICKS_MAX {
            let Some(deadline) = self.dispatcher.deadline().filter(|deadline| deadline.at < LATEST) else {
                break;
            };
            world.now = world.now.max(deadline.at);
            let step = self.hand_in(world, world.now, &Gates::default(), Input::Tick);
            world.learn(&step);
        }
        let open = self.dispatcher.deadline();
        assert!(open.as_ref().is_none_or(|deadline| deadline.at >= LATEST), "open for good: {open:?}");
        assert!(open.is_some() || self.dispatcher.open_calls() == 0, "open without a deadline");
    }
}
