//! What a tool looked like when it was first seen or last approved, kept so that a later change is noticed.

use amends_core::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

/// A tool as it is pinned, and as it is since, where that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedTool {
    /// A digest of what tells its upstream from any other: its command or its address.
    pub place: Digest,
    /// The upstream's name, as whoever saw the tool last calls it.
    pub upstream: String,
    /// The tool's name at its upstream.
    pub tool: String,
    /// The tool's name as agents knew it when it was last seen.
    pub served: String,
    /// How often this was written, from 1. One that is kept must follow the one before it.
    pub version: u64,
    /// What it is pinned to.
    pub pinned: Definition,
    /// What it was last seen to be, where that is something else.
    pub seen: Option<Definition>,
}

/// What a tool says of itself: its description, its schemas, its annotations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The digest of its canonical form.
    pub digest: Digest,
    /// Its canonical form; nothing where that is too long to be kept.
    pub text: Option<String>,
    /// When it was first seen so, or approved.
    pub at: Timestamp,
}
