//! An answer of which a part is missing.

use super::{Data, Trouble};
use crate::outcome::Outcome;

/// An answer of which a part is missing: an item of it failed, or it was cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Partial {
    outcome: Outcome,
    data: Data,
    errors: Vec<Trouble>,
    left_out: u64,
    truncated: bool,
}

impl Partial {
    /// A partial answer; nothing where no item failed and nothing was cut, since such an answer is whole. `left_out` says
    /// how many further items failed than are listed.
    pub fn new(outcome: Outcome, data: Data, errors: Vec<Trouble>, left_out: u64, truncated: bool) -> Option<Self> {
        (!errors.is_empty() || truncated).then_some(Self { outcome, data, errors, left_out, truncated })
    }

    /// How it came to that.
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// What it gave.
    pub const fn data(&self) -> &Data {
        &self.data
    }

    /// One error for each item that failed.
    pub fn errors(&self) -> &[Trouble] {
        &self.errors
    }

    /// How many further items failed than are listed.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Whether it was cut.
    pub const fn truncated(&self) -> bool {
        self.truncated
    }
}
