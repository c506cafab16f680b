//! What lives outside a session, as it was when an input arrived.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::UpstreamName;
use crate::refusal::Refusal;

/// A run that stands for an upstream whose restarts are not ours to see.
pub const UNSEEN_RUN: u64 = 0;

/// What lives outside a session, sampled by the driver and recorded with the input, so that deciding again sees what was
/// seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gates {
    /// A No from outside the session: an unknown tool, arguments that do not fit, a limit, a ledger that is away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Box<Refusal>>,
    /// Which run of each upstream that matters would be sent to: another one after it restarted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runs: BTreeMap<UpstreamName, u64>,
}

impl Gates {
    /// Whether they say nothing.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// Which run of that upstream would be sent to.
    pub fn run(&self, upstream: &UpstreamName) -> Option<u64> {
        self.runs.get(upstream).copied()
    }
}
