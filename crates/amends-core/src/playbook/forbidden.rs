//! The pairs of verdict and compensation that would break a promise.

use super::PlaybookError;
use crate::compensation::Compensation;
use crate::contract::{Contract, EffectKind};
use crate::verdict::Verdict;

/// Refuses the pairs that would break a promise.
pub(super) fn allowed(verdict: Verdict, compensation: &Compensation, contract: &Contract) -> Result<(), PlaybookError> {
    let reason = match compensation {
        Compensation::RetryWithBackoff(_) | Compensation::Wait(_) => against_sending(verdict, contract.effect),
        Compensation::IssueReversal => against_reversing(verdict, contract),
        Compensation::RefreshEvidence
        | Compensation::Reconcile
        | Compensation::EscalateToHuman { .. }
        | Compensation::DeprecateToolCall
        | Compensation::Surface
        | Compensation::FailFast => None,
    };
    match reason {
        Some(reason) => {
            Err(PlaybookError::Forbidden { verdict: verdict.as_str(), compensation: compensation.as_str(), reason })
        }
        None => Ok(()),
    }
}

fn against_sending(verdict: Verdict, effect: EffectKind) -> Option<&'static str> {
    match verdict {
        Verdict::IdempotencyConflict => {
            Some("the upstream has this already, or is at it; a resend is how a refund goes out twice")
        }
        Verdict::PolicyDenied => Some("a denial stays a denial until a person changes the policy"),
        Verdict::InDoubt => Some("it may have happened; only a status read or a person can tell"),
        Verdict::SchemaMismatch if !effect.is_read() => Some("the write was done, only its answer is malformed"),
        Verdict::Cancelled => Some("somebody stopped it"),
        Verdict::InputRejected | Verdict::CapabilityMissing => Some("the same call meets the same answer"),
        Verdict::Unclassified if effect == EffectKind::Write => {
            Some("nobody knows what happened, and the tool is a plain write")
        }
        Verdict::TransientTimeout
        | Verdict::ServerError5xx
        | Verdict::RateLimited
        | Verdict::UpstreamUnavailable
        | Verdict::EvidenceStale
        | Verdict::SchemaMismatch
        | Verdict::StoreUnavailable
        | Verdict::Unclassified => None,
    }
}

fn against_reversing(verdict: Verdict, contract: &Contract) -> Option<&'static str> {
    if contract.reverse.is_none() {
        return Some("the contract declares no `reverse`, so there is no token");
    }
    match verdict {
        Verdict::InDoubt => Some("nothing is undone while it is in doubt; `reconcile` finds out first"),
        Verdict::SchemaMismatch | Verdict::Cancelled => None,
        Verdict::TransientTimeout
        | Verdict::ServerError5xx
        | Verdict::RateLimited
        | Verdict::UpstreamUnavailable
        | Verdict::IdempotencyConflict
        | Verdict::EvidenceStale
        | Verdict::PolicyDenied
        | Verdict::InputRejected
        | Verdict::CapabilityMissing
        | Verdict::StoreUnavailable
        | Verdict::Unclassified => Some("nothing is known to have been done that could be undone"),
    }
}
