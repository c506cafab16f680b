//! The log of session heads: an append-only list, over which a Merkle tree is kept and checkpoints are signed.

use amends_core::{SessionId, Timestamp};

use crate::chain::Link;

/// One entry of the log: how far a session's chain had come.
///
/// Invariant: of two entries of one session the later one has the greater sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The session.
    pub session: SessionId,
    /// The sequence of its last event then.
    pub seq: u64,
    /// The head of its chain then.
    pub head: Link,
}

/// A checkpoint of the log as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// How many entries the log had.
    pub size: u64,
    /// When it was signed.
    pub at: Timestamp,
    /// The signed note, byte for byte.
    pub note: String,
}
