//! The closed set of situations a failed attempt can be.

use serde::{Deserialize, Serialize};

use crate::certainty::Certainty;
use crate::contract::EffectKind;
use crate::registry::Code;

/// Which of the closed set of situations a failed attempt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No answer in time, or the connection broke, where sending again is safe.
    TransientTimeout,
    /// The upstream said that it failed itself.
    #[serde(rename = "server_error_5xx")]
    ServerError5xx,
    /// The upstream asks for less.
    RateLimited,
    /// Nothing could be sent.
    UpstreamUnavailable,
    /// The upstream knows this key already.
    IdempotencyConflict,
    /// What the call was based on has changed.
    EvidenceStale,
    /// A policy, ours or the upstream's, says no.
    PolicyDenied,
    /// The answer does not fit what the tool declares.
    SchemaMismatch,
    /// The arguments are not acceptable as they are.
    InputRejected,
    /// Something the call needs does not exist here.
    CapabilityMissing,
    /// It may have happened.
    InDoubt,
    /// Somebody stopped it.
    Cancelled,
    /// Our own ledger cannot record.
    StoreUnavailable,
    /// Nothing we know.
    Unclassified,
}

impl Verdict {
    /// All of them, in the order of the default playbook.
    pub const ALL: [Self; 14] = [
        Self::TransientTimeout,
        Self::ServerError5xx,
        Self::RateLimited,
        Self::UpstreamUnavailable,
        Self::IdempotencyConflict,
        Self::EvidenceStale,
        Self::PolicyDenied,
        Self::SchemaMismatch,
        Self::InputRejected,
        Self::CapabilityMissing,
        Self::InDoubt,
        Self::Cancelled,
        Self::StoreUnavailable,
        Self::Unclassified,
    ];

    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TransientTimeout => "transient_timeout",
            Self::ServerError5xx => "server_error_5xx",
            Self::RateLimited => "rate_limited",
            Self::UpstreamUnavailable => "upstream_unavailable",
            Self::IdempotencyConflict => "idempotency_conflict",
            Self::EvidenceStale => "evidence_stale",
            Self::PolicyDenied => "policy_denied",
            Self::SchemaMismatch => "schema_mismatch",
            Self::InputRejected => "input_rejected",
            Self::CapabilityMissing => "capability_missing",
            Self::InDoubt => "in_doubt",
            Self::Cancelled => "cancelled",
            Self::StoreUnavailable => "store_unavailable",
            Self::Unclassified => "unclassified",
        }
    }

    /// Judges one failed attempt.
    ///
    /// The certainty outranks the code: a plain write that ends in doubt is `InDoubt` whatever the upstream called it.
    /// Tools that can be sent again safely keep the code's own verdict while its ladder is a safe one; anything else in
    /// doubt is `InDoubt` for them too.
    pub const fn judge(code: Code, certainty: Certainty, effect: EffectKind) -> Self {
        let by_code = code.verdict();
        match (certainty, effect) {
            (Certainty::InDoubt, EffectKind::Write) => Self::InDoubt,
            (Certainty::InDoubt, EffectKind::Keyed | EffectKind::Idempotent) => match by_code {
                Self::TransientTimeout
                | Self::ServerError5xx
                | Self::RateLimited
                | Self::UpstreamUnavailable
                | Self::IdempotencyConflict => by_code,
                Self::EvidenceStale
                | Self::PolicyDenied
                | Self::SchemaMismatch
                | Self::InputRejected
                | Self::CapabilityMissing
                | Self::InDoubt
                | Self::Cancelled
                | Self::StoreUnavailable
                | Self::Unclassified => Self::InDoubt,
            },
            (_, EffectKind::Read)
            | (
                Certainty::NotSent | Certainty::NotProcessed | Certainty::Processed,
                EffectKind::Keyed | EffectKind::Idempotent | EffectKind::Write,
            ) => by_code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_write_in_doubt_is_in_doubt_whatever_the_code_says() {
        for code in Code::ALL {
            assert_eq!(Verdict::judge(code, Certainty::InDoubt, EffectKind::Write), Verdict::InDoubt);
        }
    }

    #[test]
    fn a_keyed_timeout_keeps_its_ladder_and_an_unknown_error_does_not() {
        let judge = |code| Verdict::judge(code, Certainty::InDoubt, EffectKind::Keyed);
        assert_eq!(judge(Code::NetworkTimeout), Verdict::TransientTimeout);
        assert_eq!(judge(Code::ActionError), Verdict::InDoubt);
    }
}
