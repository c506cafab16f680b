//! What a failure or a refusal means to whoever runs an agent: who can do something about it, and whether the model should hear.

use super::{Class, Code, WhoMustAct};
use crate::certainty::Certainty;
use crate::refusal::RefusalKind;
use crate::verdict::Verdict;

/// What it means to whoever runs an agent. Every protocol and every framework has its own word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The model can correct it: nothing happened, and another call may work.
    Correct,
    /// It is final. The model should hear it, and do something else.
    Permanent,
    /// Something is away or out of order. The model cannot help; the same call may work later.
    Infrastructure,
    /// Somebody stopped it.
    Cancelled,
    /// Somebody has to give something, such as a credential.
    Input,
    /// Somebody has to say yes.
    Approval,
    /// It is not known whether it happened. No code means this: what is known of an effect outranks every code.
    Doubt,
}

impl Meaning {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Correct,
        Self::Permanent,
        Self::Infrastructure,
        Self::Cancelled,
        Self::Input,
        Self::Approval,
        Self::Doubt,
    ];

    /// Its name as data.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Correct => "correct",
            Self::Permanent => "permanent",
            Self::Infrastructure => "infrastructure",
            Self::Cancelled => "cancelled",
            Self::Input => "input",
            Self::Approval => "approval",
            Self::Doubt => "doubt",
        }
    }

    /// What it is, in a sentence.
    pub const fn means(self) -> &'static str {
        match self {
            Self::Correct => "The model can correct it: nothing happened, and another call may work.",
            Self::Permanent => "It is final. The model should hear it, and do something else.",
            Self::Infrastructure => {
                "Something is away or out of order. The model cannot help; the same call may work later."
            }
            Self::Cancelled => "Somebody stopped it.",
            Self::Input => "Somebody has to give something, such as a credential.",
            Self::Approval => "Somebody has to say yes.",
            Self::Doubt => "It is not known whether it happened.",
        }
    }

    /// What PydanticAI calls it, by the package `amends-pydantic-ai`.
    pub const fn pydantic_ai(self) -> &'static str {
        match self {
            Self::Correct => "ModelRetry",
            Self::Permanent => "ToolFailed",
            Self::Infrastructure => "Unavailable, an AgentRunError",
            Self::Cancelled => "RunCancelled",
            Self::Input => "CallDeferred",
            Self::Approval => "ApprovalRequired",
            Self::Doubt => "CallDeferred where a person is asked, else ToolFailed",
        }
    }
}

impl Code {
    /// What it means to whoever runs an agent, when nothing is in doubt.
    pub fn meaning(self) -> Meaning {
        let house = matches!(self.class(), Class::Validation | Class::Session | Class::ExtensionHost);
        match (self.class(), self.verdict(), self.who_must_act()) {
            (Class::Cancellation, ..) => Meaning::Cancelled,
            (_, Verdict::InputRejected | Verdict::EvidenceStale, _) => Meaning::Correct,
            // Something was done, and the model has to go on from that.
            _ if self.implies() == Some(Certainty::Processed) => Meaning::Permanent,
            (_, _, WhoMustAct::Nobody) => Meaning::Infrastructure,
            _ if house || self.retryable() => Meaning::Infrastructure,
            (_, _, WhoMustAct::Agent | WhoMustAct::Operator | WhoMustAct::Person) => Meaning::Permanent,
        }
    }
}

impl RefusalKind {
    /// What it means to whoever runs an agent: what its code means, unless somebody other than for its code can do something.
    pub fn meaning(self) -> Meaning {
        match self {
            Self::AwaitingPerson => Meaning::Approval,
            Self::MissingCredential => Meaning::Input,
            // What must not go out can be left out.
            Self::PiiBlocked => Meaning::Correct,
            // The model has no other token, and no other key.
            Self::Duplicate | Self::ReversalRefused => Meaning::Permanent,
            Self::InvalidTransition
            | Self::UnknownAction
            | Self::ValidationFailed
            | Self::ActionTimeout
            | Self::ActionError
            | Self::UnknownName
            | Self::MalformedName
            | Self::InvalidArgument
            | Self::PolicyBlocked
            | Self::AllowlistViolation
            | Self::CostCapExceeded
            | Self::RateLimited
            | Self::SchemaDrift
            | Self::IndexNotReady
            | Self::ApprovalDenied
            | Self::ApprovalExpired
            | Self::StaleState
            | Self::InFlight
            | Self::RetryLater
            | Self::BreakerOpen
            | Self::TooLarge
            | Self::StoreUnavailable
            | Self::InternalError => self.code().meaning(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{A2a, AgUi};

    #[test]
    fn only_what_proves_that_nothing_happened_is_for_the_model_to_correct() {
        for code in Code::ALL.into_iter().filter(|code| code.meaning() == Meaning::Correct) {
            assert!(code.implies().is_some_and(Certainty::nothing_happened), "{}", code.as_str());
            assert_eq!(code.who_must_act(), WhoMustAct::Agent, "{}", code.as_str());
        }
    }

    #[test]
    fn the_same_kind_means_the_same_as_a_code_and_as_a_refusal() {
        for kind in RefusalKind::ALL {
            let code = Code::ALL.into_iter().find(|code| code.kind() == kind.as_str());
            assert!(code.is_none_or(|code| code.meaning() == kind.meaning()), "{}", kind.as_str());
        }
    }

    #[test]
    fn the_words_of_the_protocols_fit_the_meaning() {
        let fits = |meaning: Meaning, a2a: A2a, ag_ui: AgUi| match meaning {
            Meaning::Cancelled => (a2a, ag_ui) == (A2a::Canceled, AgUi::Cancelled),
            Meaning::Input | Meaning::Approval => {
                matches!(a2a, A2a::InputRequired | A2a::AuthRequired) && ag_ui == AgUi::Interrupt
            }
            Meaning::Correct | Meaning::Permanent | Meaning::Infrastructure => {
                !matches!(a2a, A2a::Canceled | A2a::InputRequired | A2a::AuthRequired)
                    && !matches!(ag_ui, AgUi::Interrupt | AgUi::Cancelled)
            }
            Meaning::Doubt => false,
        };
        for code in Code::ALL {
            assert!(fits(code.meaning(), code.a2a(), code.ag_ui()), "{}", code.as_str());
        }
        for kind in RefusalKind::ALL {
            assert!(fits(kind.meaning(), kind.a2a(), kind.ag_ui()), "{}", kind.as_str());
        }
    }
}
