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
    /// Arguments to which a person said yes for good. No call holds it: it says that nobody is asked.
    Grant,
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
    /// The call is open, and a person is asked whether it is sent. Nothing was.
    Awaiting,
    /// A person said yes when nobody waited for it any more: the next equal call is sent without asking.
    Granted,
}

impl Held {
    /// Whether it says that nobody is asked about such arguments, rather than that a call is under way.
    pub fn is_standing(&self) -> bool {
        self.name.as_str().starts_with(STANDING)
    }
}

/// What the names of claims of the kind `Grant` begin with, before the name of the arguments.
const STANDING: &str = "grant:";

/// The claim under which a yes for good to a call's arguments is found; nothing for a call that has no names.
pub fn standing(claims: &[Claim]) -> Option<Claim> {
    let arguments = |claim: &&Claim| matches!(claim.kind, ClaimKind::Arguments | ClaimKind::ArgumentsIfFree);
    let claim = claims.iter().find(arguments)?;
    let name = Digest::new(format!("{STANDING}{}", claim.name));
    Some(Claim { name, fingerprint: claim.fingerprint.clone(), kind: ClaimKind::Grant })
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
    /// The key minted for the holder's effect; for a yes that was granted, what it was based on.
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
    /// Let the next equal call be sent without asking. A claim it does not hold is left alone.
    Grant {
        /// The name.
        name: Digest,
        /// The call that must hold it.
        call: CallId,
        /// What the yes is based on.
        basis: String,
        /// Until when; for good where nothing is said.
        until: Option<Timestamp>,
    },
    /// Nobody must hold that claim. If somebody does, the whole step fails with the holder.
    Absent {
        /// The name.
        name: Digest,
    },
    /// Give up a claim this call holds. A claim it does not hold is left alone.
    Release {
        /// The name.
        name: Digest,
        /// The call that must hold it.
        call: CallId,
    },
}
