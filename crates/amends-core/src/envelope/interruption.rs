//! What an agent is told when we cannot follow its call to its end ourselves.

use super::{Body, Envelope, Trouble};
use crate::certainty::Certainty;
use crate::refusal::{Refusal, RefusalKind};
use crate::registry::Code;

/// What keeps a node from following a call to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// The ledger cannot record.
    LedgerAway,
    /// Another node drives the session now, and goes on with what is open in it.
    LeaseLost,
    /// What the ledger holds of the session is not what was recorded of it: it was replaced, or put back to an earlier time.
    ResumeMismatch,
    /// Something of ours failed.
    Failed,
}

impl Interruption {
    /// Its code in the registry.
    pub const fn code(self) -> Code {
        match self {
            Self::LedgerAway => Code::StoreUnavailable,
            Self::LeaseLost => Code::LeaseLost,
            Self::ResumeMismatch => Code::ResumeMismatch,
            Self::Failed => RefusalKind::InternalError.code(),
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::LedgerAway | Self::LeaseLost | Self::ResumeMismatch => self.code().kind(),
            Self::Failed => RefusalKind::InternalError.as_str(),
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::LedgerAway => "the ledger cannot record what became of this call",
            Self::LeaseLost => "another node drives the session of this call now, and goes on with it",
            Self::ResumeMismatch => "the ledger no longer holds what was recorded of this call",
            Self::Failed => "something of ours failed while this was being done",
        }
    }

    /// When it may be over.
    const fn retry_after_ms(self) -> Option<u64> {
        match self {
            Self::LedgerAway => Some(5_000),
            Self::LeaseLost => Some(1_000),
            Self::ResumeMismatch | Self::Failed => None,
        }
    }
}

impl Envelope {
    /// The answer of a call that is not followed to its end here. Whether it happened is no longer ours to say, unless nothing can
    /// have: what was not sent is `NotSent`, and what only reads changes nothing.
    pub fn interrupted(requested: &str, by: Interruption, certainty: Certainty) -> Self {
        if (by, certainty) == (Interruption::LedgerAway, Certainty::NotSent) {
            let refusal = Refusal::of(RefusalKind::StoreUnavailable, "the ledger cannot record, so nothing is sent");
            let refusal = Refusal { retry_after_ms: by.retry_after_ms(), ..refusal };
            return Self::of(Body::Refused { error: Box::new(Trouble::refused(requested, &refusal)) });
        }
        let safe = certainty.nothing_happened();
        let consequence = match certainty {
            Certainty::NotSent => "nothing was sent",
            Certainty::NotProcessed => "nothing was changed",
            Certainty::Processed => "it was done, do not repeat it",
            Certainty::InDoubt => "it may have happened",
        };
        let code = by.code();
        let error = Trouble {
            kind: by.kind(),
            code,
            verdict: None,
            requested: requested.to_owned(),
            message: format!("{}; {consequence}", by.words()),
            certainty,
            retryable: safe && code.retryable(),
            safe_to_repeat: safe,
            who_must_act: code.who_must_act(),
            retry_after_ms: by.retry_after_ms(),
            details: Vec::new(),
            recovery: None,
            upstream: None,
            upstream_result: None,
            item: None,
            changed: Vec::new(),
            interaction: None,
            timeout_ms: None,
            advice: None,
        };
        Self::of(Body::Error { outcome: None, error: Box::new(error) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_happened_is_never_called_safe_to_repeat() {
        for by in
            [Interruption::LedgerAway, Interruption::LeaseLost, Interruption::ResumeMismatch, Interruption::Failed]
        {
            for certainty in [Certainty::NotSent, Certainty::NotProcessed, Certainty::Processed, Certainty::InDoubt] {
                let envelope = Envelope::interrupted("pay", by, certainty);
                let error = envelope.error().expect("an error");
                assert_eq!((error.code, error.certainty), (by.code(), certainty));
                assert_eq!(error.safe_to_repeat, certainty.nothing_happened(), "{by:?} {certainty:?}");
                assert!(!error.retryable || error.safe_to_repeat, "{by:?} {certainty:?}");
            }
        }
    }
}
