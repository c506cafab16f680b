//! Agents: they wish, wait, lose patience or their connection, and ask again.

use amends_core::{CallId, SessionId};

/// An agent: one connection at a time, which is one session.
#[derive(Debug)]
pub struct Agent {
    /// The session of its connection, while it has one.
    pub session: Option<SessionId>,
    /// The node it is connected to, and in which of its lives.
    pub at: (usize, u32),
}

/// What an agent wants done, and how often it will still ask.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Its number; asking again for what was never answered keeps it.
    pub id: u64,
    /// Whose it is.
    pub agent: usize,
    /// The tool, as an index.
    pub tool: usize,
    /// The arguments, as a number.
    pub args: u64,
    /// The agent's own key.
    pub key: Option<String>,
    /// How often it will still be asked for.
    pub left: u32,
    /// When it was first asked for.
    pub first: Option<u64>,
    /// The call that stands for it now.
    pub call: Option<CallId>,
    /// The call whose write it wants undone, with its token.
    pub undoes: Option<CallId>,
    /// How long the agent waits.
    pub patience_ms: u64,
}
