//! The inbox: what arrives at one process and can only be acted upon by another.

use std::fmt;

use amends_core::SessionId;
use serde_json::Value;

/// How long a letter is kept after it was replied to.
pub(crate) const REPLIED_KEPT_MS: u64 = 24 * 60 * 60 * 1_000;

/// Something for a process that can act on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The identity of the upstream that whoever takes it must have; anybody's where none is named.
    pub place: Option<String>,
    /// The session it is about.
    pub session: Option<SessionId>,
    /// What it says.
    pub body: Value,
}

/// A letter in the inbox. Later letters have greater ones, and none is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LetterId(pub u64);

impl fmt::Display for LetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Where a letter stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LetterState {
    /// Whether a node has taken it. It may have died since.
    pub taken: bool,
    /// The reply, once it is done.
    pub reply: Option<Value>,
}
