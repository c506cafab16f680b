//! Effects: what the core asks the driver to do, once the step's events are durable.

use crate::attempt::Attempt;
use crate::envelope::Envelope;
use crate::id::{AttemptId, CallId, InteractionId};
use crate::inquiry::{Asking, Telling};
use crate::interaction::Interaction;
use crate::time::Timestamp;
use crate::walk::{LegWish, Weighing};

/// What the core asks the driver to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send an attempt.
    Send(Box<Attempt>),
    /// Stop waiting for an attempt, and tell the upstream.
    Abort(AttemptId),
    /// Answer the agent.
    Reply(Box<Reply>),
    /// Ask a person.
    Ask(Box<Interaction>),
    /// A question is over.
    Withdraw(InteractionId),
    /// Bring what an upstream asks before the agent.
    Inquire(Box<Asking>),
    /// Tell an upstream that waits what became of its inquiry.
    Tell(Box<Telling>),
    /// Make a call for a move. It touches nothing outside: the call does, once it is admitted.
    Begin(Box<LegWish>),
    /// Evaluate what a move hangs on.
    Weigh {
        /// The move.
        of: CallId,
        /// What to evaluate.
        what: Weighing,
    },
    /// A move repeats another one: its answer is the other's.
    Join {
        /// The move.
        of: CallId,
        /// The one it repeats.
        first: CallId,
    },
    /// Undo what the session's calls did, newest first.
    Unwind {
        /// The move that failed.
        of: CallId,
        /// When the walk began, or began again: what was done before that stays.
        since: Timestamp,
    },
    /// An inquiry is pointless by now, wherever it is.
    Retract {
        /// The call.
        call: CallId,
        /// Its number in the call.
        inquiry: u32,
    },
}

/// An answer to the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The call it answers.
    pub call: CallId,
    /// The answer.
    pub answer: Answer,
    /// Whether the call is over. An interim answer leaves it open.
    pub last: bool,
}

/// What an answer is made of. Payloads pass by the core, so it names the attempt that carries them.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The upstream's own result, untouched, with the envelope beside it.
    Forward {
        /// The attempt that carries it.
        attempt: AttemptId,
        /// What goes beside it.
        envelope: Envelope,
    },
    /// The answer recorded for the call that this one repeats.
    Recorded {
        /// The join that fetched it.
        attempt: AttemptId,
    },
    /// What the upstream of the call that this one repeats asks of the agent.
    Asked {
        /// The join that found it.
        attempt: AttemptId,
    },
    /// An answer of our own.
    Envelope(Envelope),
}
