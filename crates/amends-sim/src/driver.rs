//! One session in the hands of one node: its dispatcher, and the steps that are on their way to the ledger.

use std::collections::VecDeque;

use amends_core::{AttemptId, Dispatcher, Effect, Event, Input, SessionId, Step, Timestamp};
use amends_ledger::OpenWork;

/// A session in the hands of a node.
#[derive(Debug)]
pub struct Driver {
    /// Which one.
    pub session: SessionId,
    /// Where its jitter comes from.
    pub seed: u64,
    /// What decides.
    pub dispatcher: Dispatcher,
    /// The epoch it appends under.
    pub epoch: u64,
    /// Every event that was handled, durable or not.
    pub history: Vec<Event>,
    /// The sequence of the last event that is durable.
    pub durable: u64,
    /// The steps that are not durable yet, in order.
    pub queue: VecDeque<Waiting>,
    /// Inputs that arrived while the ledger was away.
    pub backlog: Vec<Input>,
    /// Whether an append failed and the ledger must be asked what it holds.
    pub stuck: bool,
    /// When the timer is set to.
    pub armed: Option<Timestamp>,
    /// When the last append, the last commit and the last effect are due: each kind stays in order.
    pub due: Due,
}

/// The times that keep appends, commits and effects in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Due {
    /// Of the last append.
    pub append: u64,
    /// Of the last commit that is known, and of the last effect.
    pub act: u64,
}

/// A step on its way to the ledger.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Its number.
    pub ticket: u64,
    /// What led to it.
    pub input: Input,
    /// What it is.
    pub step: Step,
    /// What it leaves open. Later steps may have been handled before this one is durable.
    pub open: OpenWork,
    /// Until when the node held its lease when the step was handled.
    pub lease_until: u64,
}

/// A step that is durable, on its way to be acted on.
#[derive(Clone, Debug)]
pub struct Justified {
    /// The effects.
    pub effects: Vec<Effect>,
    /// For each attempt that may be sent: the run it was meant for.
    pub runs: Vec<(AttemptId, Option<u64>)>,
    /// Until when the node held its lease when the step was handled.
    pub lease_until: u64,
}

impl Driver {
    /// A driver of a dispatcher that stands where those events led.
    pub fn new(session: SessionId, seed: u64, dispatcher: Dispatcher, epoch: u64, history: Vec<Event>) -> Self {
        Self {
            session,
            seed,
            dispatcher,
            epoch,
            durable: history.len() as u64,
            history,
            queue: VecDeque::new(),
            backlog: Vec::new(),
            stuck: false,
            armed: None,
            due: Due::default(),
        }
    }
}
