//! Why a ledger did not do what it was asked.

use amends_core::{Digest, Held, InteractionId, PersonAnswer, ReversalState};
use thiserror::Error as ThisError;

/// Why a ledger did not do what it was asked. Callers match on the kind; the rest of the database stays inside.
#[derive(Clone, Debug, ThisError, PartialEq, Eq)]
pub enum Error {
    /// Somebody else appended to the session, or an earlier step of ours failed.
    #[error("the session is at event {actual}, not {expected}")]
    Conflict {
        /// What the step was decided on.
        expected: u64,
        /// What is there.
        actual: u64,
    },
    /// Another node holds the session's lease.
    #[error("the lease of epoch {epoch} is lost")]
    Fenced {
        /// The epoch that no longer counts.
        epoch: u64,
    },
    /// A claim is held by another call, of which this one is the repeat.
    #[error("the claim is held by `{}`", .0.call)]
    Held(Box<Held>),
    /// A reversal token cannot be redeemed: it is not armed, or another call redeems it.
    #[error("the reversal token `{token}` cannot be redeemed: {}", standing(*.state))]
    Spent {
        /// The token's digest.
        token: Digest,
        /// Where it stands; nothing where there is no such token.
        state: Option<ReversalState>,
    },
    /// A question lapses in this step, and a person has answered it in the meantime: the answer counts.
    #[error("the question `{interaction}` was answered before it lapsed")]
    Answered {
        /// The question.
        interaction: InteractionId,
        /// The answer.
        answer: Box<PersonAnswer>,
    },
    /// The store cannot be reached or cannot write.
    #[error("the ledger is unavailable: {reason}")]
    Unavailable {
        /// The store's words.
        reason: String,
    },
    /// What is stored, or was to be stored, makes no sense.
    #[error("the ledger's record makes no sense: {reason}")]
    Corrupt {
        /// What makes no sense.
        reason: String,
    },
}

impl Error {
    /// What whoever waits for a write is told when nobody writes any more.
    pub(crate) fn writer_stopped() -> Self {
        Self::Unavailable { reason: "the ledger's writer has stopped".into() }
    }
}

fn standing(state: Option<ReversalState>) -> &'static str {
    match state {
        None => "there is none",
        Some(ReversalState::Minted) => "it is not known yet how its write ended",
        Some(ReversalState::Armed) => "it is armed",
        Some(ReversalState::Redeeming) => "another call is redeeming it",
        Some(ReversalState::Redeemed) => "it was redeemed",
        Some(ReversalState::Void) => "there is nothing to undo",
    }
}
