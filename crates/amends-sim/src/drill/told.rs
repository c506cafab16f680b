//! What an agent is told, as far as the drill looks at it.

use amends_core::envelope::{Body, DegradationReason};
use amends_core::{Certainty, Envelope, Outcome, WhoMustAct};

/// What an agent is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// How it ended, in a word: an outcome, `interim` while it is being settled, or a refusal's kind.
    pub outcome: &'static str,
    /// What is said of the effect.
    pub certainty: Certainty,
    /// Whether sending the same call again is said to do no harm.
    pub safe_to_repeat: bool,
    /// Whose move it is said to be; nothing for a success.
    pub who: Option<WhoMustAct>,
    /// Whether a question to a person is named.
    pub question: bool,
    /// When to come back.
    pub retry_after_ms: Option<u64>,
    /// Whether it is the recorded answer of an earlier call.
    pub replayed: bool,
}

impl Told {
    /// What an envelope says.
    pub fn of(envelope: &Envelope) -> Self {
        let outcome = match &envelope.body {
            Body::Success { outcome, .. } => outcome.as_str(),
            Body::Empty { .. } | Body::Partial { .. } => Outcome::Succeeded.as_str(),
            Body::Degraded { reason: DegradationReason::SettledByPerson, .. } => "settled_by_person",
            Body::Degraded { .. } => "degraded",
            Body::Error { outcome: Some(outcome), .. } => outcome.as_str(),
            Body::Error { outcome: None, .. } => "interim",
            Body::Refused { error } => error.kind,
        };
        let Some(error) = envelope.error() else {
            return Self::done(outcome);
        };
        Self {
            outcome,
            certainty: error.certainty,
            safe_to_repeat: error.safe_to_repeat,
            who: Some(error.who_must_act),
            question: error.interaction.is_some(),
            retry_after_ms: error.retry_after_ms,
            replayed: envelope.replayed,
        }
    }

    /// The refusal that a driver gives by itself when it cannot record.
    pub fn unrecorded() -> Self {
        Self {
            outcome: "store_unavailable",
            certainty: Certainty::NotSent,
            safe_to_repeat: true,
            who: Some(WhoMustAct::Operator),
            question: false,
            retry_after_ms: Some(5_000),
            replayed: false,
        }
    }

    const fn done(outcome: &'static str) -> Self {
        Self {
            outcome,
            certainty: Certainty::Processed,
            safe_to_repeat: false,
            who: None,
            question: false,
            retry_after_ms: None,
            replayed: false,
        }
    }

    /// Whether it is an error or a refusal.
    pub const fn failed(&self) -> bool {
        self.who.is_some()
    }
}
