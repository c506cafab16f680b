//! The name of a released version of the rules.

use serde::{Deserialize, Serialize};

use crate::id::Digest;

/// A version of the rules that a person released. It is part of the playbook, so every call's rules lead to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// Its number.
    pub version: u64,
    /// The digest of its rules.
    pub hash: Digest,
}
