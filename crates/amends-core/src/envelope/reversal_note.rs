//! What an envelope says of how a finished write can be undone.

use serde::Serialize;

use crate::time::Timestamp;

/// How a finished write can be undone: the token, the tool that undoes it, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReversalNote {
    /// The single-use token.
    pub token: String,
    /// The tool that undoes it, by its served name.
    pub tool: String,
    /// Until when, in milliseconds since 1970.
    pub until: Timestamp,
}
