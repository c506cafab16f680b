//! One rule: what is done about a verdict, as an operator writes it and as it is settled.

use serde::{Deserialize, Serialize};

use super::{Origin, PlaybookError};
use crate::compensation::{Compensation, Ladder};
use crate::limits::{LADDER_STEPS_MAX, WAIT_MS_MAX};
use crate::nearest::nearest;
use crate::registry::{Class, Code};
use crate::verdict::Verdict;

/// What is done about one verdict, and who said so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// What is done.
    #[serde(flatten)]
    pub compensation: Compensation,
    /// Who said so.
    pub origin: Origin,
}

/// One rule as an operator writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSpec {
    /// The compensation's name.
    pub compensation: String,
    /// The waits of a ladder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_ms: Option<Vec<u64>>,
    /// How far a wait may differ, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_percent: Option<u8>,
    /// The queue of an escalation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
}

/// The table we ship.
pub(super) fn default_compensation(verdict: Verdict) -> Compensation {
    match verdict {
        Verdict::TransientTimeout => Compensation::RetryWithBackoff(Ladder::of(&[200, 600, 1800])),
        Verdict::ServerError5xx => Compensation::RetryWithBackoff(Ladder::of(&[500, 2000])),
        Verdict::RateLimited => Compensation::Wait(Ladder {
            last_ms: Some(160_000),
            ..Ladder::of(&[5_000, 10_000, 20_000, 40_000, 80_000])
        }),
        Verdict::UpstreamUnavailable => Compensation::RetryWithBackoff(Ladder::of(&[1000, 2000, 4000])),
        Verdict::IdempotencyConflict | Verdict::InDoubt => Compensation::Reconcile,
        Verdict::EvidenceStale => Compensation::RefreshEvidence,
        Verdict::PolicyDenied => Compensation::EscalateToHuman { queue: "policy_review".into() },
        Verdict::SchemaMismatch => Compensation::DeprecateToolCall,
        Verdict::InputRejected | Verdict::Cancelled | Verdict::Unclassified => Compensation::Surface,
        Verdict::CapabilityMissing => Compensation::FailFast,
        Verdict::StoreUnavailable => {
            Compensation::RetryWithBackoff(Ladder { jitter_percent: 0, ..Ladder::of(&[2000, 4000, 6000]) })
        }
    }
}

/// What the table says of one code where that differs from the rest of its verdict: a tool that is troubled itself knows
/// best whether asking again helps, so it is sent again only where its own section says so.
pub(super) fn default_exception(code: Code) -> Option<Compensation> {
    (code.class() == Class::ToolTransient).then_some(Compensation::Surface)
}

/// The ladder of a verdict that is sent again: its own in the table, else that of a timeout.
pub(super) fn default_ladder(verdict: Verdict) -> Ladder {
    match default_compensation(verdict) {
        Compensation::RetryWithBackoff(ladder) | Compensation::Wait(ladder) => ladder,
        Compensation::RefreshEvidence
        | Compensation::Reconcile
        | Compensation::EscalateToHuman { .. }
        | Compensation::IssueReversal
        | Compensation::DeprecateToolCall
        | Compensation::Surface
        | Compensation::FailFast => Ladder::of(&[200, 600, 1800]),
    }
}

impl RuleSpec {
    /// What it means for that verdict.
    pub(super) fn compensation(&self, verdict: Verdict) -> Result<Compensation, PlaybookError> {
        Ok(match self.compensation.as_str() {
            "retry_with_backoff" => Compensation::RetryWithBackoff(self.ladder(verdict)?),
            "wait" => Compensation::Wait(self.ladder(verdict)?),
            "refresh_evidence" => Compensation::RefreshEvidence,
            "reconcile" => Compensation::Reconcile,
            "escalate_to_human" => {
                Compensation::EscalateToHuman { queue: self.queue.clone().unwrap_or_else(|| "default".into()) }
            }
            "issue_reversal" => Compensation::IssueReversal,
            "deprecate_tool_call" => Compensation::DeprecateToolCall,
            "surface" => Compensation::Surface,
            "fail_fast" => Compensation::FailFast,
            other => {
                return Err(PlaybookError::UnknownCompensation {
                    name: other.to_owned(),
                    nearest: nearest(other, Compensation::WORDS),
                });
            }
        })
    }

    fn ladder(&self, verdict: Verdict) -> Result<Ladder, PlaybookError> {
        let endless = |reason| PlaybookError::Endless { verdict: verdict.as_str(), reason };
        let default = default_ladder(verdict);
        let ladder = Ladder {
            backoff_ms: self.backoff_ms.clone().unwrap_or(default.backoff_ms),
            jitter_percent: self.jitter_percent.unwrap_or(default.jitter_percent),
            last_ms: if self.backoff_ms.is_some() { None } else { default.last_ms },
            sends_max: None,
        };
        if ladder.backoff_ms.is_empty() {
            return Err(endless("has no steps; use `surface` to send only once"));
        }
        if ladder.backoff_ms.len() > LADDER_STEPS_MAX {
            return Err(endless("has more than 16 steps"));
        }
        if ladder.backoff_ms.iter().any(|wait| *wait > WAIT_MS_MAX) {
            return Err(endless("waits longer than a day"));
        }
        if ladder.jitter_percent > 100 {
            return Err(endless("has a jitter above 100 %"));
        }
        Ok(ladder)
    }
}
