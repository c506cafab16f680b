//! What we do about a verdict.

use serde::{Deserialize, Serialize};

/// What we do about a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "compensation", rename_all = "snake_case")]
pub enum Compensation {
    /// Send again after each of these waits.
    RetryWithBackoff(Ladder),
    /// Send again when the upstream says, else after each of these waits.
    Wait(Ladder),
    /// Read the evidence again; unchanged, send once more; changed, plan again.
    RefreshEvidence,
    /// Find out what happened.
    Reconcile,
    /// Ask a person.
    EscalateToHuman {
        /// The queue it goes to.
        queue: String,
    },
    /// Undo it with its token.
    IssueReversal,
    /// Give it up; the agent plans again.
    DeprecateToolCall,
    /// Tell the agent.
    Surface,
    /// Give up at once; the choice belongs to the user.
    FailFast,
}

impl Compensation {
    /// The word of each, as events and configurations say it.
    pub const WORDS: [&str; 9] = [
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
}

/// The waits before each further send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ladder {
    /// The waits in milliseconds, one for each further send.
    pub backoff_ms: Vec<u64>,
    /// How far a wait may differ from its step, in percent.
    pub jitter_percent: u8,
    /// The wait an agent is told after the last send, where it is longer than the last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ms: Option<u64>,
    /// How many sends there may be in all, the first included, whatever each was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sends_max: Option<u32>,
}

impl Ladder {
    /// The ladder with those waits, jittered by a fifth.
    pub fn of(backoff_ms: &[u64]) -> Self {
        Self { backoff_ms: backoff_ms.to_vec(), jitter_percent: 20, last_ms: None, sends_max: None }
    }

    /// Whether there may be another send after so many.
    pub fn allows(&self, sends: usize) -> bool {
        self.sends_max.is_none_or(|max| sends < max as usize)
    }

    /// The wait before send number `n + 2`, that is, after `n` earlier further sends; nothing when the ladder is used up.
    ///
    /// `chance` is any number; the same number gives the same wait.
    pub fn step(&self, n: usize, chance: u64) -> Option<u64> {
        let base = *self.backoff_ms.get(n)?;
        let spread = base.saturating_mul(u64::from(self.jitter_percent.min(100))) / 100;
        if spread == 0 {
            return Some(base);
        }
        Some(base - spread + chance % (2 * spread + 1))
    }
}

impl Compensation {
    /// The word for it on the wire.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::RetryWithBackoff(_) => "retry_with_backoff",
            Self::Wait(_) => "wait",
            Self::RefreshEvidence => "refresh_evidence",
            Self::Reconcile => "reconcile",
            Self::EscalateToHuman { .. } => "escalate_to_human",
            Self::IssueReversal => "issue_reversal",
            Self::DeprecateToolCall => "deprecate_tool_call",
            Self::Surface => "surface",
            Self::FailFast => "fail_fast",
        }
    }

    /// Whether it sends the call again.
    pub const fn sends_again(&self) -> bool {
        matches!(self, Self::RetryWithBackoff(_) | Self::Wait(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_within_a_fifth_and_is_the_same_for_the_same_chance() {
        let ladder = Ladder::of(&[1000]);
        for chance in 0..5000 {
            let wait = ladder.step(0, chance).unwrap();
            assert!((800..=1200).contains(&wait));
            assert_eq!(ladder.step(0, chance), Some(wait));
        }
        assert_eq!(ladder.step(1, 0), None);
    }
}
