//! Reversals: single-use tokens that say how a finished write can be undone, and until when.

use serde::{Deserialize, Serialize};

use crate::id::{CallId, Digest, SessionId};
use crate::time::Timestamp;

/// Where a token stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReversalState {
    /// Its write was sent, and how that ended is not known yet.
    Minted,
    /// Its write was done: it can be redeemed.
    Armed,
    /// A call is redeeming it.
    Redeeming,
    /// Its write was undone.
    Redeemed,
    /// Its write was not done: there is nothing to undo.
    Void,
}

/// What a step does to a token, in the same transaction as its events. Tokens are known by their digest only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReversalChange {
    /// The token exists: its write is about to be sent.
    Mint {
        /// The token's digest.
        token: Digest,
        /// The write's call.
        call: CallId,
    },
    /// The write was done.
    Arm {
        /// The token's digest.
        token: Digest,
        /// Until when it can be undone.
        until: Timestamp,
    },
    /// The write was not done, or can no longer be undone.
    Void {
        /// The token's digest.
        token: Digest,
    },
    /// A call begins to redeem it. Fails the step if the token is not armed, unless it is being redeemed by that call, or
    /// by the one that it goes on with.
    Redeem {
        /// The token's digest.
        token: Digest,
        /// The call that redeems it.
        by: CallId,
        /// The call that it goes on with.
        over: Option<CallId>,
    },
    /// The redeeming call ended without undoing anything: it is armed again.
    Rearm {
        /// The token's digest.
        token: Digest,
        /// The call that tried.
        by: CallId,
    },
    /// The write was undone.
    Spend {
        /// The token's digest.
        token: Digest,
        /// The call that undid it.
        by: CallId,
    },
}

/// The token that a call redeems.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redeems {
    /// Its digest.
    pub token: Digest,
    /// The session of the write it undoes.
    pub session: SessionId,
    /// The write it undoes.
    pub call: CallId,
}
