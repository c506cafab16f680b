//! Claims: how a repeat finds the call it repeats, across sessions, processes and restarts.

use serde::{Deserialize, Serialize};

use crate::id::{CallId, Digest, SessionId};
use crate::time::Timestamp;

/// A name that a write holds while it is in flight, in doubt, or done and perhaps not delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// A keyed digest of what it names, so that the ledger never holds the arguments in the clear.
    pub name: Digest,
    /// The digest of the arguments, to tell a repeat from another use of the same key.
    pub fingerprint: Digest,
    /// What it names.
    pub kind: ClaimKind,
}

/// What a claim names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimKind {
    /// The agent's own key. It must be free, or the call is a repeat.
    Key,
    /// The principal, tool and arguments. It must be free, or the call is a repeat.
    Arguments,
    /// The same for a call that brought its own key: taken if it is free, left alone if not, since another key is
    /// another call.
    ArgumentsIfFree,
    /// What is written. While another write to it is on its way or in doubt, this one is refused.
    Object,
}

/// Where a claim stands. Past its `until` it is expired, and counts as free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimState {
    /// The call is open.
    InFlight,
    /// The call ended, and whether it happened is not known. A person is asked, or nobody can tell.
    InDoubt,
    /// The call ended, and whether it happened is not known; an equal call may go on with it, since the upstream does it
    /// only once.
    Resumable,
    /// The call ended, and its answer may not have arrived.
    Complete,
}

/// A claim that another call holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The name.
    pub name: Digest,
    /// The holder's session.
    pub session: SessionId,
    /// The holder.
    pub call: CallId,
    /// Where it stands.
    pub state: ClaimState,
    /// The digest of the holder's arguments.
    pub fingerprint: Digest,
    /// The key minted for the holder's effect.
    pub effect_key: String,
    /// When the holder took it: no attempt was sent before.
    pub since: Timestamp,
}

/// What a step does to the claims, in the same transaction as its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimChange {
    /// Take a claim that is free or expired. If it is held, the whole step fails with the holder, unless the holder is `over`.
    Take {
        /// The claim.
        claim: Claim,
        /// The call that takes it.
        call: CallId,
        /// The key minted for its effect.
        effect_key: String,
        /// Since when; earlier than now where a doubt is taken over.
        since: Timestamp,
        /// A holder it may be taken from.
        over: Option<CallId>,
    },
    /// Move a claim this call holds to another state. A claim it does not hold is left alone.
    Settle {
        /// The name.
        name: Digest,
        /// The call that must hold it.
        call: CallId,
        /// Where it stands from now on.
        state: ClaimState,
        /// Until when; for good where nothing is said.
        until: Option<Timestamp>,
    },
    /// Give up a claim this call holds. A claim it does not hold is left alone.
    Release {
        /// The name.
        name: Digest,
        /// The call that must hold it.
        call: CallId,
    },
}
