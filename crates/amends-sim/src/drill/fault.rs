//! What can befall one attempt, by the names that the demo shop's scripts use where it knows them too.

use amends_core::{Contract, EffectKind};

macro_rules! faults {
    ($($fault:ident: $name:literal, $means:literal;)*) => {
        /// What befalls one attempt.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $(#[doc = $means] $fault,)*
        }

        impl Fault {
            /// Every fault, in the order of the table.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$fault),*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$fault => $name,)* }
            }

            /// What happens, in words.
            pub const fn means(self) -> &'static str {
                match self { $(Self::$fault => $means,)* }
            }
        }
    };
}

faults! {
    Ok: "ok", "Nothing goes wrong.";
    LoseRequest: "lose_request", "The request is lost; nothing happens and nobody answers.";
    LoseResponse: "lose_response", "It happens, and the answer is lost.";
    ResetBefore: "reset_before", "The line breaks before it happens.";
    ResetAfter: "reset_after", "It happens, and the line breaks before the answer.";
    Refused: "refused", "The upstream cannot be reached.";
    Late: "late", "It happens, and the answer comes after the attempt's time.";
    LateEffect: "late_effect", "It happens after the attempt's time, and nobody answers.";
    PastDeadline: "past_deadline", "It happens, and the answer comes after the agent's deadline.";
    Status500: "status_500", "500 before it happens.";
    ErrorAfterEffect: "error_after_effect", "It happens, and the answer is a 500.";
    Status503: "status_503", "503 with a Retry-After of a second.";
    Status503Bare: "status_503_bare", "503 without a Retry-After.";
    RateLimited: "rate_limited", "429 with a Retry-After of a second.";
    RateLimitedBare: "rate_limited_bare", "429 without a Retry-After.";
    RateLimitedLong: "rate_limited_long", "429 with a Retry-After beyond the agent's deadline.";
    ConflictInFlight: "conflict_in_flight", "409: a request with this key is at work.";
    ConflictDone: "conflict_done", "It is done by then, and the answer is 409: this key was processed.";
    ConflictReused: "conflict_reused", "409: this key was used with other arguments.";
    Precondition: "precondition", "412, and the evidence has changed.";
    PreconditionSame: "precondition_same", "412, and the evidence is as it was.";
    Forbidden: "forbidden", "403.";
    NotFound: "not_found", "404.";
    Unprocessable: "unprocessable", "422.";
    Malformed: "malformed", "It happens, and the result is not a tool's result.";
    PlainError: "plain_error", "An error that is only a sentence, before it happens.";
    PlainErrorAfter: "plain_error_after", "It happens, and the answer is an error that is only a sentence.";
    CrashBefore: "crash_before", "The upstream dies before it happens, and starts again.";
    CrashAfter: "crash_after", "It happens, and the upstream dies before the answer, and starts again.";
    AnswerLost: "answer_lost", "Our answer does not reach the agent, which asks again.";
    KillAfterIntent: "kill_after_intent", "The gateway is killed when the intent is recorded and nothing is sent.";
    KillInFlight: "kill_in_flight", "The gateway is killed when it has happened and nobody has answered.";
    KillAfterResult: "kill_after_result", "The gateway is killed when the answer is there and not recorded.";
    KillBeforeReply: "kill_before_reply", "The gateway is killed when the end is recorded and not told.";
    CancelBefore: "cancel_before", "The agent cancels before it happens, and the upstream obeys.";
    CancelAfter: "cancel_after", "The agent cancels when it has happened, before the answer.";
    ReaderFails: "reader_fails", "It happens, the answer is lost, and the status can never be read.";
    ReaderLate: "reader_late", "It happens, the answer is lost, and the status shows it only later.";
    LedgerAway: "ledger_away", "The ledger is away for three seconds when the intent should be recorded.";
}

impl Fault {
    /// The fault of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Whether it can befall a tool with that contract, and differs there from one that comes before it.
    pub fn concerns(self, contract: &Contract) -> bool {
        match self {
            Self::ConflictInFlight | Self::ConflictDone | Self::ConflictReused => contract.effect == EffectKind::Keyed,
            Self::ReaderFails | Self::ReaderLate => contract.status.is_some(),
            // Without evidence there is nothing that could have changed.
            Self::PreconditionSame => !contract.evidence.is_empty(),
            // What is said to reject before the effect does not do so after it.
            Self::ErrorAfterEffect if contract.rejects_before_effect.contains(&500) => false,
            // A read has no effect, so there is no before and after.
            Self::LoseRequest
            | Self::ResetAfter
            | Self::LateEffect
            | Self::ErrorAfterEffect
            | Self::PlainErrorAfter
            | Self::CrashAfter
            | Self::CancelAfter => !contract.effect.is_read(),
            _ => true,
        }
    }

    /// The status it is answered with by an upstream that says it did nothing, where it is one that may be believed.
    pub const fn rejection(self) -> Option<u16> {
        match self {
            Self::Status500 => Some(500),
            Self::Status503 | Self::Status503Bare => Some(503),
            Self::RateLimited | Self::RateLimitedBare | Self::RateLimitedLong => Some(429),
            _ => None,
        }
    }

    /// Whether it can befall a read that comes before the first send.
    pub const fn befalls_reading(self) -> bool {
        matches!(
            self,
            Self::LoseResponse
                | Self::ResetBefore
                | Self::Refused
                | Self::Late
                | Self::Status500
                | Self::Status503
                | Self::RateLimited
                | Self::RateLimitedLong
                | Self::Forbidden
                | Self::NotFound
                | Self::Malformed
                | Self::PlainError
                | Self::CrashBefore
                | Self::KillAfterIntent
                | Self::KillAfterResult
                | Self::CancelBefore
                | Self::LedgerAway
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_found_by_its_name() {
        for fault in Fault::ALL {
            assert_eq!(Fault::named(fault.name()), Some(fault));
        }
    }
}
