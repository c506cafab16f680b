//! One session in the hands of a driver: what is durable, what is on its way to the ledger, what may be done.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use amends_core::{AttemptId, CallId, Dispatcher, Effect, Event, Fact, Gates, Input, Step};

use crate::world::World;

/// A value that is hashed and compared by how it prints, once.
#[derive(Clone, Debug)]
pub(crate) struct Known<T> {
    pub(crate) value: Arc<T>,
    print: u64,
}

impl<T: std::fmt::Debug> Known<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { print: print(&value), value: Arc::new(value) }
    }
}

impl<T> PartialEq for Known<T> {
    fn eq(&self, other: &Self) -> bool {
        self.print == other.print
    }
}

impl<T> Hash for Known<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.print.hash(state);
    }
}

fn print(value: &impl std::fmt::Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{value:?}").hash(&mut hasher);
    hasher.finish()
}

/// A step that was handled and is not durable yet.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) input: Input,
    pub(crate) gates: Gates,
    pub(crate) step: Step,
}

/// One session. The dispatcher follows from its events, so it is neither hashed nor compared.
#[derive(Clone, Debug)]
pub(crate) struct Driver {
    /// How often it was begun; what is sent to an earlier life is lost.
    pub(crate) life: u8,
    pub(crate) live: Option<Arc<Dispatcher>>,
    pub(crate) durable: Known<Vec<Event>>,
    pub(crate) queue: VecDeque<Known<Waiting>>,
    pub(crate) justified: VecDeque<Known<Effect>>,
    /// The repeats that wait for another call's answer.
    pub(crate) joins: Vec<(AttemptId, CallId)>,
}

impl PartialEq for Driver {
    fn eq(&self, other: &Self) -> bool {
        self.life == other.life
            && self.live.is_some() == other.live.is_some()
            && self.durable == other.durable
            && self.queue == other.queue
            && self.justified == other.justified
            && self.joins == other.joins
    }
}

impl Hash for Driver {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.life.hash(state);
        self.live.is_some().hash(state);
        self.durable.hash(state);
        self.queue.hash(state);
        self.justified.hash(state);
        self.joins.hash(state);
    }
}

impl Driver {
    pub(crate) fn new(session: usize) -> Self {
        Self {
            life: 0,
            live: Some(Arc::new(open(session))),
            durable: Known::new(Vec::new()),
            queue: VecDeque::new(),
            justified: VecDeque::new(),
            joins: Vec::new(),
        }
    }

    /// Every event there is: those that are durable, then those on their way.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.durable.value.iter().chain(self.queue.iter().flat_map(|waiting| &waiting.value.step.events))
    }

    /// The facts that are durable.
    pub(crate) fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.durable.value.iter().map(|event| &event.fact)
    }

    /// Folds what is durable; nothing where it does not fold, and a promise is broken.
    pub(crate) fn restored(&self, session: usize, world: &World) -> Option<Arc<Dispatcher>> {
        if self.durable.value.is_empty() {
            return Some(Arc::new(open(session)));
        }
        Dispatcher::restore(self.durable.value.iter(), |hash| world.rules(hash)).ok().map(Arc::new)
    }

    /// The process dies: whatever was not durable is gone.
    pub(crate) fn crash(&mut self) {
        self.live = None;
        self.life += 1;
        self.queue.clear();
        self.justified.clear();
        self.joins.clear();
    }

    /// Adds events that are durable from now on.
    pub(crate) fn record(&mut self, events: &[Event]) {
        let mut all = (*self.durable.value).clone();
        all.extend(events.iter().cloned());
        // Printing only what is new is enough: the earlier print stands for the earlier events.
        self.durable = Known { print: print(&(self.durable.print, events)), value: Arc::new(all) };
    }
}

pub(crate) fn open(session: usize) -> Dispatcher {
    Dispatcher::open(crate::tools::session_id(session), 7, "agent".into(), "model")
}
