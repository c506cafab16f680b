//! The playbook: verdict to compensation, per tool, with forbidden pairs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::compensation::{Compensation, Ladder};
use crate::contract::{Contract, EffectKind};
use crate::limits::{LADDER_STEPS_MAX, WAIT_MS_MAX};
use crate::nearest::nearest;
use crate::verdict::Verdict;

/// A playbook that has a rule for every verdict, no forbidden pair, and no rule that never ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Playbook {
    rules: BTreeMap<Verdict, Rule>,
}

/// What is done about one verdict, and who said so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// What is done.
    #[serde(flatten)]
    pub compensation: Compensation,
    /// Who said so.
    pub origin: Origin,
}

/// Where a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The table we ship.
    Default,
    /// The tool's own section of the config.
    Tool,
}

impl Origin {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Tool => "tool",
        }
    }
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

/// Rules as an operator writes them, by the verdict's name.
pub type PlaybookSpec = BTreeMap<String, RuleSpec>;

/// Why a playbook was not taken.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PlaybookError {
    /// There is no such verdict.
    #[error("`{name}` is not a verdict{}", hint(.nearest))]
    UnknownVerdict {
        /// What was written.
        name: String,
        /// What may have been meant.
        nearest: Vec<String>,
    },
    /// There is no such compensation.
    #[error("`{name}` is not a compensation{}", hint(.nearest))]
    UnknownCompensation {
        /// What was written.
        name: String,
        /// What may have been meant.
        nearest: Vec<String>,
    },
    /// The pair would break a promise.
    #[error("`{compensation}` on `{verdict}` is forbidden: {reason}")]
    Forbidden {
        /// The verdict.
        verdict: &'static str,
        /// The compensation.
        compensation: &'static str,
        /// What it would break.
        reason: &'static str,
    },
    /// The rule has no end, or none that is near enough.
    #[error("the ladder of `{verdict}` {reason}")]
    Endless {
        /// The verdict.
        verdict: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
}

fn hint(nearest: &[String]) -> String {
    nearest.first().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

const COMPENSATIONS: [&str; 9] = [
    "retry_with_backoff",
    "wait",
    "refresh_evidence",
    "reconcile",
    "escalate_to_human",
    "issue_reversal",
    "deprecate_tool_call",
    "surface",
    "fail_fast",
];

impl Default for Playbook {
    fn default() -> Self {
        let rule = |verdict| (verdict, Rule { compensation: default_compensation(verdict), origin: Origin::Default });
        Self { rules: Verdict::ALL.into_iter().map(rule).collect() }
    }
}

fn default_compensation(verdict: Verdict) -> Compensation {
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

impl Playbook {
    /// The default playbook with an operator's rules for one tool laid over it.
    pub fn parse(spec: &PlaybookSpec, contract: &Contract) -> Result<Self, PlaybookError> {
        let mut playbook = Self::default();
        for (name, rule) in spec {
            let verdict =
                Verdict::ALL.into_iter().find(|v| v.as_str() == name).ok_or_else(|| PlaybookError::UnknownVerdict {
                    name: name.clone(),
                    nearest: nearest(name, Verdict::ALL.map(Verdict::as_str)),
                })?;
            let compensation = compensation(verdict, rule)?;
            allowed(verdict, &compensation, contract)?;
            playbook.rules.insert(verdict, Rule { compensation, origin: Origin::Tool });
        }
        Ok(playbook)
    }

    /// The rule for a verdict.
    pub fn rule(&self, verdict: Verdict) -> &Rule {
        &self.rules[&verdict]
    }

    /// Every rule, in the order of the table.
    pub fn rules(&self) -> impl Iterator<Item = (Verdict, &Rule)> {
        self.rules.iter().map(|(verdict, rule)| (*verdict, rule))
    }
}

fn compensation(verdict: Verdict, spec: &RuleSpec) -> Result<Compensation, PlaybookError> {
    let ladder = |default: Ladder| -> Result<Ladder, PlaybookError> {
        let endless = |reason| PlaybookError::Endless { verdict: verdict.as_str(), reason };
        let ladder = Ladder {
            backoff_ms: spec.backoff_ms.clone().unwrap_or(default.backoff_ms),
            jitter_percent: spec.jitter_percent.unwrap_or(default.jitter_percent),
            last_ms: if spec.backoff_ms.is_some() { None } else { default.last_ms },
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
    };
    let own = match default_compensation(verdict) {
        Compensation::RetryWithBackoff(ladder) | Compensation::Wait(ladder) => ladder,
        Compensation::RefreshEvidence
        | Compensation::Reconcile
        | Compensation::EscalateToHuman { .. }
        | Compensation::IssueReversal
        | Compensation::DeprecateToolCall
        | Compensation::Surface
        | Compensation::FailFast => Ladder::of(&[200, 600, 1800]),
    };
    Ok(match spec.compensation.as_str() {
        "retry_with_backoff" => Compensation::RetryWithBackoff(ladder(own)?),
        "wait" => Compensation::Wait(ladder(own)?),
        "refresh_evidence" => Compensation::RefreshEvidence,
        "reconcile" => Compensation::Reconcile,
        "escalate_to_human" => {
            Compensation::EscalateToHuman { queue: spec.queue.clone().unwrap_or_else(|| "default".into()) }
        }
        "issue_reversal" => Compensation::IssueReversal,
        "deprecate_tool_call" => Compensation::DeprecateToolCall,
        "surface" => Compensation::Surface,
        "fail_fast" => Compensation::FailFast,
        other => {
            return Err(PlaybookError::UnknownCompensation {
                name: other.to_owned(),
                nearest: nearest(other, COMPENSATIONS),
            });
        }
    })
}

/// Refuses the pairs that would break a promise.
fn allowed(verdict: Verdict, compensation: &Compensation, contract: &Contract) -> Result<(), PlaybookError> {
    let forbidden = |reason| {
        Err(PlaybookError::Forbidden { verdict: verdict.as_str(), compensation: compensation.as_str(), reason })
    };
    if compensation.sends_again() {
        match verdict {
            Verdict::IdempotencyConflict => {
                return forbidden(
                    "the upstream has this already, or is at it; a resend is how a refund goes out twice",
                );
            }
            Verdict::PolicyDenied => {
                return forbidden("a denial stays a denial until a person changes the policy");
            }
            Verdict::InDoubt => {
                return forbidden("it may have happened; only a status read or a person can tell");
            }
            Verdict::SchemaMismatch if !contract.effect.is_read() => {
                return forbidden("the write was done, only its answer is malformed");
            }
            Verdict::Cancelled => return forbidden("somebody stopped it"),
            Verdict::InputRejected | Verdict::CapabilityMissing => {
                return forbidden("the same call meets the same answer");
            }
            Verdict::TransientTimeout
            | Verdict::ServerError5xx
            | Verdict::RateLimited
            | Verdict::UpstreamUnavailable
            | Verdict::EvidenceStale
            | Verdict::SchemaMismatch
            | Verdict::StoreUnavailable
            | Verdict::Unclassified => {}
        }
        if matches!(verdict, Verdict::Unclassified) && matches!(contract.effect, EffectKind::Write) {
            return forbidden("nobody knows what happened, and the tool is a plain write");
        }
    }
    if matches!(compensation, Compensation::IssueReversal) {
        if contract.reverse.is_none() {
            return forbidden("the contract declares no `reverse`, so there is no token");
        }
        match verdict {
            Verdict::SchemaMismatch | Verdict::Cancelled => {}
            Verdict::InDoubt => {
                return forbidden("nothing is undone while it is in doubt; `reconcile` finds out first");
            }
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
            | Verdict::Unclassified => return forbidden("nothing is known to have been done that could be undone"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract(effect: EffectKind) -> Contract {
        Contract { effect, declared: true, ..Contract::undeclared(5000, 50_000, 600_000) }
    }

    fn parse(verdict: &str, compensation: &str, effect: EffectKind) -> Result<Playbook, PlaybookError> {
        let rule = RuleSpec { compensation: compensation.into(), ..RuleSpec::default() };
        Playbook::parse(&BTreeMap::from([(verdict.to_owned(), rule)]), &contract(effect))
    }

    #[test]
    fn forbidden_pairs_are_refused_with_the_reason() {
        for verdict in ["idempotency_conflict", "policy_denied", "in_doubt", "schema_mismatch"] {
            let refused = parse(verdict, "retry_with_backoff", EffectKind::Write);
            assert!(matches!(refused, Err(PlaybookError::Forbidden { .. })), "{verdict}");
        }
        assert!(parse("schema_mismatch", "retry_with_backoff", EffectKind::Read).is_ok());
        assert!(parse("transient_timeout", "issue_reversal", EffectKind::Write).is_err());
    }

    #[test]
    fn a_typo_is_answered_with_the_nearest_name() {
        let unknown = parse("transient_timout", "surface", EffectKind::Read).unwrap_err();
        assert_eq!(unknown.to_string(), "`transient_timout` is not a verdict; did you mean `transient_timeout`?");
    }

    #[test]
    fn a_ladder_without_an_end_is_refused() {
        let rule = RuleSpec {
            compensation: "retry_with_backoff".into(),
            backoff_ms: Some(vec![1; 17]),
            ..RuleSpec::default()
        };
        let spec = BTreeMap::from([("transient_timeout".to_owned(), rule)]);
        assert!(matches!(Playbook::parse(&spec, &contract(EffectKind::Read)), Err(PlaybookError::Endless { .. })));
    }
}
