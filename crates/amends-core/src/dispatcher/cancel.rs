//! Somebody wants a call stopped.

use serde::{Deserialize, Serialize};

/// Why a call should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// The agent said so.
    Asked,
    /// The agent's connection is gone. What was sent goes on, so that the repeat finds its answer.
    Disconnected,
}
