//! What an agent in the program is told.

use amends_core::{Certainty, Code};
use serde_json::Value;
use thiserror::Error;

/// The envelope of a call: what happened, whether anything changed, and the next move.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    envelope: Value,
    trace: Option<String>,
    hash: Option<String>,
}

/// The gateway stops, and no longer answers. What was sent is on its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the gateway stops; what was sent is on its ledger")]
pub struct Stopping;

impl Told {
    pub(super) fn new(told: amends_gateway::door::inside::Told) -> Self {
        let (trace, hash) = told.receipt.map_or((None, None), |receipt| (Some(receipt.trace), receipt.hash));
        Self { envelope: told.envelope, trace, hash }
    }

    /// All of it.
    pub fn envelope(&self) -> &Value {
        &self.envelope
    }

    /// Whether the call did what it should: `success`, `empty`, `partial` or `degraded`.
    pub fn is_done(&self) -> bool {
        self.error().is_none()
    }

    /// What the tool gave.
    pub fn data(&self) -> Option<&Value> {
        self.envelope.get("data")
    }

    /// What went wrong, or why it was refused.
    pub fn error(&self) -> Option<&Value> {
        self.envelope.get("error")
    }

    /// What kind of error or refusal it is.
    pub fn kind(&self) -> Option<&str> {
        self.error()?.get("kind")?.as_str()
    }

    /// The code of the error.
    pub fn code(&self) -> Option<Code> {
        self.error()?.get("code")?.as_str().and_then(Code::parse)
    }

    /// What is known of the effect of a call that went wrong.
    pub fn certainty(&self) -> Option<Certainty> {
        serde_json::from_value(self.error()?.get("certainty")?.clone()).ok()
    }

    /// The trace on which it is, and the hash of its last event where that is recorded.
    pub fn receipt(&self) -> (Option<&str>, Option<&str>) {
        (self.trace.as_deref(), self.hash.as_deref())
    }
}
