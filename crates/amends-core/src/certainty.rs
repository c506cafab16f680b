//! What is known of an attempt's effect.

use serde::{Deserialize, Serialize};

/// What is known of an attempt's effect. Four-valued on purpose: `InDoubt` is not a kind of no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// No byte of it left us.
    NotSent,
    /// It was sent, and it is proven that nothing was done.
    NotProcessed,
    /// It was done.
    Processed,
    /// It may have been done, or may still be.
    InDoubt,
}

impl Certainty {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::NotSent, Self::NotProcessed, Self::Processed, Self::InDoubt];

    /// Whether it is proven that nothing was done.
    pub const fn nothing_happened(self) -> bool {
        matches!(self, Self::NotSent | Self::NotProcessed)
    }

    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::NotProcessed => "not_processed",
            Self::Processed => "processed",
            Self::InDoubt => "in_doubt",
        }
    }
}
