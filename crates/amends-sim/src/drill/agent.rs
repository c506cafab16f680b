//! The agent: one wish, and the ways to ask for it again.

use amends_core::{CallId, SessionId};

use super::told::Told;

/// How an agent takes an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It acknowledges its answer, and asks again only if that is said to do no harm.
    Polite,
    /// It acknowledges nothing, and always asks once more with equal arguments.
    Rude,
}

/// The agent with its one wish.
#[derive(Debug)]
pub(super) struct Agent {
    /// The call it waits for.
    pub(super) call: Option<(CallId, SessionId)>,
    /// The call whose answer it heard last.
    pub(super) heard_of: Option<CallId>,
    /// How often it has asked.
    pub(super) asked: u32,
    /// How often it may still ask again of its own accord.
    pub(super) repeats_left: u32,
    /// How often it may still ask again because its connection broke.
    pub(super) cuts_left: u32,
    /// Since when it has been without an answer.
    pub(super) waiting_since: Option<u64>,
    /// The longest it was without one.
    pub(super) wait_ms: u64,
    /// What it was told, in order.
    pub(super) told: Vec<Told>,
}

impl Agent {
    pub(super) const fn new() -> Self {
        Self {
            call: None,
            heard_of: None,
            asked: 0,
            repeats_left: 1,
            cuts_left: 4,
            waiting_since: None,
            wait_ms: 0,
            told: Vec::new(),
        }
    }

    /// It has an answer.
    pub(super) fn hears(&mut self, now: u64, told: Told) {
        if let Some(since) = self.waiting_since.take() {
            self.wait_ms = self.wait_ms.max(now - since);
        }
        self.call = None;
        self.told.push(told);
    }
}
