//! Evidence: the facts a call was based on.

use serde::{Deserialize, Serialize};

use crate::id::{Digest, ToolName};

/// A fact a call was based on: what was read, and the hash of what it said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The read tool.
    pub tool: ToolName,
    /// The digest of the tool and its arguments.
    pub reference: Digest,
    /// The hash of what was read, where somebody read it before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Digest>,
    /// Who says so.
    pub from: EvidenceSource,
}

/// Where the hash of a piece of evidence comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceSource {
    /// The call names it.
    Call,
    /// The session read it last.
    Session,
    /// Nobody read it yet: it is read just before sending.
    Fresh,
}

/// A piece of evidence that says something else than it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The tool that reads it.
    pub reference: String,
    /// The hash of what it said.
    pub was: Digest,
    /// The hash of what it says.
    pub is: Digest,
}
