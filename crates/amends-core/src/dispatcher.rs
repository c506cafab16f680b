//! One session: it takes one input at a time and says what happened and what to do.

pub mod cancel;

use thiserror::Error;

use crate::attempt::Report;
use crate::call::Call;
use crate::claim::ClaimChange;
use crate::effect::Effect;
use crate::event::Event;
use crate::id::{AttemptId, CallId};
use crate::time::Timestamp;
use cancel::CancelReason;

/// One thing that arrives.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A call.
    Call(Box<Call>),
    /// What came of an attempt.
    Result {
        /// Which one.
        attempt: AttemptId,
        /// What came of it.
        report: Box<Report>,
    },
    /// Somebody wants a call stopped.
    Cancel {
        /// Which one.
        call: CallId,
        /// Why.
        reason: CancelReason,
    },
    /// The answer of a call is known to have arrived.
    Delivery {
        /// Which one.
        call: CallId,
    },
    /// A deadline passed.
    Tick,
    /// The session was taken up after a crash, or by another node.
    Resume,
}

/// What one input led to: the events, what must be true together with them, and what to do once they are durable.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a step that is dropped was never taken"]
pub struct Step {
    /// What happened.
    pub events: Vec<Event>,
    /// What happens to the claims, in the same transaction.
    pub claims: Vec<ClaimChange>,
    /// What to do, once the events are durable.
    pub effects: Vec<Effect>,
}

/// When the dispatcher wants a tick, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: &'static str,
}

/// A session.
#[derive(Clone, Debug)]
pub struct Dispatcher {}

/// Why a trace cannot be folded.
#[derive(Debug, Error)]
pub enum TraceError {
    /// It does not begin with the opening of a session.
    #[error("the trace does not begin with the opening of a session")]
    NoBeginning,
}
