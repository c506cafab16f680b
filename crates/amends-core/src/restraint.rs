//! Restraint: what keeps an upstream in trouble from being called more, because it is in trouble.
//!
//! These structures live outside a session, one set for each upstream, and are sampled as [`Gates`](crate::Gates). They read
//! no clock: time is an argument, so that the same story always ends in the same way.

pub mod breaker;
pub mod bucket;
pub mod budget;

pub use breaker::{Breaker, BreakerRules, Errand};
pub use bucket::{Bucket, Rate};
pub use budget::{Budget, BudgetRules};

use crate::attempt::Report;
use crate::registry::Code;

/// What an attempt says of its upstream, whatever it says of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It is there: it answered, if only with a No.
    Up,
    /// It could not be reached, did not answer, or failed by itself.
    Down,
    /// Neither: it asks for less, somebody stopped the attempt, or the trouble is ours.
    Nothing,
}

impl Sign {
    /// What a report says of the upstream.
    pub fn of(report: &Report) -> Self {
        match &report.failure {
            None => Self::Up,
            // It does not know our session any more: it was started anew, and is there.
            Some(failure) if failure.code == Code::ConnectionLost && report.answered => Self::Up,
            Some(failure) => Self::of_code(failure.code),
        }
    }

    /// What a failure code says of the upstream. Only trouble with being there at all is `Down`.
    pub const fn of_code(code: Code) -> Self {
        match code {
            Code::NetworkTimeout
            | Code::ConnectionLost
            | Code::ConnectRefused
            | Code::Provider5xx
            | Code::LifecycleFailure => Self::Down,
            Code::RateLimited
            | Code::ResourceBusy
            | Code::BreakerOpen
            | Code::StoreUnavailable
            | Code::LeaseLost
            | Code::ManifestDrift
            | Code::ResumeMismatch
            | Code::SessionCancelled
            | Code::TurnCancelled
            | Code::ToolCancelled
            | Code::ConfigSchemaViolation
            | Code::DependencyCycle
            | Code::DependencyMissing => Self::Nothing,
            Code::ShapeInvalid
            | Code::ContractVersionMismatch
            | Code::MissingStreaming
            | Code::MissingToolCalling
            | Code::ContextWindowTooSmall
            | Code::MissingCapability
            | Code::ExecutionTimeout
            | Code::InputInvalid
            | Code::OutputMalformed
            | Code::Forbidden
            | Code::NotFound
            | Code::ActionError
            | Code::KeyInFlight
            | Code::KeyReused
            | Code::AlreadyProcessed
            | Code::EvidenceStale => Self::Up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certainty::Certainty;
    use crate::failure::Failure;

    #[test]
    fn a_no_shows_that_the_upstream_is_there() {
        for code in [Code::InputInvalid, Code::Forbidden, Code::NotFound, Code::EvidenceStale, Code::ActionError] {
            assert_eq!(Sign::of_code(code), Sign::Up, "{code:?}");
        }
    }

    #[test]
    fn a_limit_and_a_cancellation_say_nothing() {
        for code in [Code::RateLimited, Code::ResourceBusy, Code::ToolCancelled, Code::StoreUnavailable] {
            assert_eq!(Sign::of_code(code), Sign::Nothing, "{code:?}");
        }
    }

    #[test]
    fn a_forgotten_session_is_an_answer_and_a_broken_line_is_none() {
        let lost = || Failure::of(Code::ConnectionLost);
        assert_eq!(Sign::of(&Report::answered(lost(), Certainty::NotProcessed, None)), Sign::Up);
        assert_eq!(Sign::of(&Report::silent(lost(), Certainty::InDoubt)), Sign::Down);
        assert_eq!(Sign::of(&Report::success(None)), Sign::Up);
    }
}
