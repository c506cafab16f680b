//! What a ledger gives back.

use amends_core::{Digest, Event, Principal, SessionId, Timestamp};

/// A session's events, in order, with their hashes.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The session.
    pub session: SessionId,
    /// The epoch of its lease.
    pub epoch: u64,
    /// Its events.
    pub events: Vec<StoredEvent>,
}

/// An event with its place in the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    /// The event.
    pub event: Event,
    /// The chain's head after it, in hexadecimal.
    pub hash: Digest,
}

/// One session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub session: SessionId,
    /// Whose it is.
    pub principal: Principal,
    /// The door it came through.
    pub door: String,
    /// When it began.
    pub opened: Timestamp,
    /// When its last event was.
    pub updated: Timestamp,
    /// How many events it has.
    pub events: u64,
    /// How many calls are open.
    pub open_calls: u32,
}

/// The right to append to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The epoch to append under.
    pub epoch: u64,
    /// The session's last event.
    pub seq: u64,
}

/// A process that drives sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id, new for every process.
    pub id: String,
    /// Where and as what it runs, so that its death can be seen from the same machine.
    pub place: String,
    /// How long a heartbeat counts.
    pub lease_ms: u64,
}
