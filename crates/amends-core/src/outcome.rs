//! How a call ended, after all compensation.

use serde::{Deserialize, Serialize};

/// How a call ended, after all compensation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The first attempt did it.
    Succeeded,
    /// It was done, and it took more than the first attempt to know it.
    SucceededAfterCompensation,
    /// The agent should plan again.
    Deprecated,
    /// A person has it.
    Escalated,
    /// It was done and undone.
    Reversed,
    /// Nothing is left to try.
    Exhausted,
    /// Somebody stopped it.
    Cancelled,
    /// We said no before anything was sent.
    Refused,
    /// It may have happened, and nobody knows.
    Unresolved,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Succeeded,
        Self::SucceededAfterCompensation,
        Self::Deprecated,
        Self::Escalated,
        Self::Reversed,
        Self::Exhausted,
        Self::Cancelled,
        Self::Refused,
        Self::Unresolved,
    ];

    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::SucceededAfterCompensation => "succeeded_after_compensation",
            Self::Deprecated => "deprecated",
            Self::Escalated => "escalated",
            Self::Reversed => "reversed",
            Self::Exhausted => "exhausted",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
            Self::Unresolved => "unresolved",
        }
    }
}
