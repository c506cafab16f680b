//! The bounds of a document.

/// How large a document may be.
pub(super) const DOCUMENT_BYTES_MAX: u64 = 32 << 20;
/// How deep it may nest.
pub(super) const DEPTH_MAX: usize = 128;
/// How many values it may hold, the copies that aliases stand for included.
pub(super) const NODES_MAX: usize = 2_000_000;
/// How many references may lead from one to the next.
pub(super) const REFERENCES_MAX: usize = 32;
/// How many operations it may have.
pub(super) const OPERATIONS_MAX: usize = 4_096;
/// How many schemas what an operation takes may refer to.
pub(super) const TAKEN_SCHEMAS_MAX: usize = 512;
/// How many schemas what an operation gives may refer to, before it is left unsaid.
pub(super) const GIVEN_SCHEMAS_MAX: usize = 64;
/// How large the schema of what an operation gives may be, before it is left unsaid.
pub(super) const GIVEN_BYTES_MAX: usize = 64 * 1024;
/// How long a tool's description may be, in characters.
pub(super) const DESCRIPTION_CHARS_MAX: usize = 2_048;
/// How long a tool's name may be.
pub(super) const NAME_MAX: usize = 64;
