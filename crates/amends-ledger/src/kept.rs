//! Something small that a gateway keeps for itself beside the traces, such as what an upstream gave to whoever signed in there.

use amends_core::Digest;
use bytes::Bytes;

/// Something small that is kept under a name. The version says how often it was written: whoever writes says which one they follow,
/// so that of two who replace the same one, one is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub name: Digest,
    /// How often it was written, from 1.
    pub version: u64,
    /// What it is, sealed like payloads.
    pub body: Bytes,
}
