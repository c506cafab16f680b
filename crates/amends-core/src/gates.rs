//! What lives outside a session, as it was when an input arrived.

use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// What lives outside a session, sampled by the driver and recorded with the input, so that deciding again sees what was
/// seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gates {
    /// A No from outside the session: an unknown tool, arguments that do not fit, a limit, a ledger that is away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Box<Refusal>>,
    /// Which run of the upstream would be sent to: another one after it restarted. Nothing while it is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_run: Option<u64>,
}

impl Gates {
    /// Whether they say nothing.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }
}
