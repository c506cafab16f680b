//! The registry: one table of every failure code, from which everything else is generated.

use serde::{Deserialize, Serialize};

use crate::certainty::Certainty;
use crate::verdict::Verdict;

/// The eight families of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Class {
    /// What was declared is not well formed.
    Validation,
    /// The way to the upstream, or the upstream as a whole, is troubled for now.
    ProviderTransient,
    /// The upstream cannot do what is needed.
    ProviderCapability,
    /// The tool is troubled for now.
    ToolTransient,
    /// The tool answered, and asking again in the same way is pointless.
    ToolTerminal,
    /// Our own sessions and their store.
    Session,
    /// Somebody stopped it.
    Cancellation,
    /// What we host ourselves.
    ExtensionHost,
}

/// Whose move it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhoMustAct {
    /// The model that called.
    Agent,
    /// Whoever runs the gateway or the upstream.
    Operator,
    /// A person who can decide.
    Person,
    /// Nobody: it is over, or goes on by itself.
    Nobody,
}

macro_rules! registry {
    ($($code:ident: $class:ident, $verdict:ident, $who:ident, $retryable:literal, $certainty:expr, $kind:literal, $http:literal, $since:literal, $means:literal;)*) => {
        /// What went wrong, as the world reported it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Code {
            $(#[doc = $means] $code,)*
        }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: [Self; [$($kind),*].len()] = [$(Self::$code),*];

            /// The family it belongs to.
            pub const fn class(self) -> Class {
                match self { $(Self::$code => Class::$class,)* }
            }

            /// The situation it names when nothing is in doubt.
            pub const fn verdict(self) -> Verdict {
                match self { $(Self::$code => Verdict::$verdict,)* }
            }

            /// Whose move it is when nothing is in doubt.
            pub const fn who_must_act(self) -> WhoMustAct {
                match self { $(Self::$code => WhoMustAct::$who,)* }
            }

            /// Whether the same call can work later, when nothing is in doubt.
            pub const fn retryable(self) -> bool {
                match self { $(Self::$code => $retryable,)* }
            }

            /// What the code alone proves of the effect; `None` where only the signal can tell.
            pub const fn implies(self) -> Option<Certainty> {
                match self { $(Self::$code => $certainty,)* }
            }

            /// Its name as an envelope's `kind`.
            pub const fn kind(self) -> &'static str {
                match self { $(Self::$code => $kind,)* }
            }

            /// The HTTP status that fits it.
            pub const fn http_status(self) -> u16 {
                match self { $(Self::$code => $http,)* }
            }

            /// The version of the charter that first had it.
            pub const fn since(self) -> &'static str {
                match self { $(Self::$code => $since,)* }
            }

            /// One sentence on what it means.
            pub const fn means(self) -> &'static str {
                match self { $(Self::$code => $means,)* }
            }

            /// Its name as `code` on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$code => stringify!($code),)* }
            }
        }
    };
}

const NOT_SENT: Option<Certainty> = Some(Certainty::NotSent);
const NOT_PROCESSED: Option<Certainty> = Some(Certainty::NotProcessed);
const PROCESSED: Option<Certainty> = Some(Certainty::Processed);

registry! {
    ShapeInvalid: Validation, InputRejected, Agent, false, NOT_SENT, "shape_invalid", 400, "1.0", "The message is not one this protocol knows.";
    ContractVersionMismatch: Validation, CapabilityMissing, Operator, false, NOT_SENT, "contract_version_mismatch", 400, "1.0", "Two sides speak versions that do not meet.";
    ConfigSchemaViolation: Validation, CapabilityMissing, Operator, false, NOT_SENT, "config_schema_violation", 500, "1.0", "The configuration does not say what it must.";
    NetworkTimeout: ProviderTransient, TransientTimeout, Nobody, true, None, "network_timeout", 504, "1.0", "No answer came in time.";
    Provider5xx: ProviderTransient, ServerError5xx, Nobody, true, None, "provider_5xx", 502, "1.0", "The upstream said that it failed itself.";
    RateLimited: ProviderTransient, RateLimited, Nobody, true, None, "rate_limited", 429, "1.0", "The upstream asks for less.";
    ConnectionLost: ProviderTransient, TransientTimeout, Nobody, true, None, "connection_lost", 502, "1.0", "The connection broke, or the upstream died, before its answer.";
    ConnectRefused: ProviderTransient, UpstreamUnavailable, Operator, true, NOT_SENT, "connect_refused", 503, "1.0", "The upstream could not be reached; nothing was sent.";
    BreakerOpen: ProviderTransient, UpstreamUnavailable, Nobody, true, NOT_SENT, "breaker_open", 503, "1.0", "The upstream failed too often; we do not try for a while.";
    MissingStreaming: ProviderCapability, CapabilityMissing, Operator, false, NOT_PROCESSED, "missing_streaming", 501, "1.0", "The upstream does not stream.";
    MissingToolCalling: ProviderCapability, CapabilityMissing, Operator, false, NOT_PROCESSED, "missing_tool_calling", 501, "1.0", "The upstream has no tools.";
    ContextWindowTooSmall: ProviderCapability, CapabilityMissing, Operator, false, NOT_PROCESSED, "context_window_too_small", 413, "1.0", "The upstream cannot take that much.";
    MissingCapability: ProviderCapability, CapabilityMissing, Operator, false, NOT_PROCESSED, "missing_capability", 501, "1.0", "One side lacks something the other needs.";
    ExecutionTimeout: ToolTransient, TransientTimeout, Nobody, true, None, "execution_timeout", 504, "1.0", "The tool itself gave up on time.";
    ResourceBusy: ToolTransient, RateLimited, Nobody, true, None, "resource_busy", 503, "1.0", "What the tool needs is in use.";
    InputInvalid: ToolTerminal, InputRejected, Agent, false, NOT_PROCESSED, "input_invalid", 422, "1.0", "The tool does not take these arguments.";
    OutputMalformed: ToolTerminal, SchemaMismatch, Operator, false, PROCESSED, "output_malformed", 502, "1.0", "The tool's answer does not fit what it declares.";
    Forbidden: ToolTerminal, PolicyDenied, Person, false, NOT_PROCESSED, "forbidden", 403, "1.0", "A policy says no.";
    NotFound: ToolTerminal, InputRejected, Agent, false, NOT_PROCESSED, "not_found", 404, "1.0", "What the call names does not exist.";
    ActionError: ToolTerminal, Unclassified, Agent, false, None, "action_error", 500, "1.0", "The tool reported an error nobody has described to us.";
    KeyInFlight: ToolTerminal, IdempotencyConflict, Nobody, false, None, "key_in_flight", 409, "1.0", "The upstream is still working on an earlier request with this key.";
    KeyReused: ToolTerminal, IdempotencyConflict, Operator, false, NOT_PROCESSED, "key_reused", 422, "1.0", "The key was used before with other arguments.";
    AlreadyProcessed: ToolTerminal, IdempotencyConflict, Agent, false, PROCESSED, "already_processed", 409, "1.0", "The upstream has done this already.";
    EvidenceStale: ToolTerminal, EvidenceStale, Agent, false, NOT_PROCESSED, "evidence_stale", 412, "1.0", "What the call was based on has changed.";
    ManifestDrift: Session, CapabilityMissing, Operator, false, NOT_SENT, "manifest_drift", 409, "1.0", "The session was begun under another definition.";
    StoreUnavailable: Session, StoreUnavailable, Operator, true, NOT_SENT, "store_unavailable", 503, "1.0", "Our ledger cannot record, so nothing is sent.";
    ResumeMismatch: Session, CapabilityMissing, Operator, false, NOT_SENT, "resume_mismatch", 409, "1.0", "The session does not belong to this ledger.";
    LeaseLost: Session, StoreUnavailable, Nobody, true, NOT_SENT, "lease_lost", 503, "1.0", "Another node drives the session now.";
    SessionCancelled: Cancellation, Cancelled, Nobody, false, None, "session_cancelled", 499, "1.0", "The session was stopped.";
    TurnCancelled: Cancellation, Cancelled, Nobody, false, None, "turn_cancelled", 499, "1.0", "The agent's turn was stopped.";
    ToolCancelled: Cancellation, Cancelled, Nobody, false, None, "tool_cancelled", 499, "1.0", "The call was stopped.";
    LifecycleFailure: ExtensionHost, CapabilityMissing, Operator, false, None, "lifecycle_failure", 500, "1.0", "Something we host failed to start, run or stop.";
    DependencyCycle: ExtensionHost, CapabilityMissing, Operator, false, NOT_SENT, "dependency_cycle", 500, "1.0", "Things we host need each other in a circle.";
    DependencyMissing: ExtensionHost, CapabilityMissing, Operator, false, NOT_SENT, "dependency_missing", 500, "1.0", "Something we host needs what is not there.";
}

impl Code {
    /// The code of that name, as `translate` rules and stored events write it.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == name)
    }
}

impl Class {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validation => "Validation",
            Self::ProviderTransient => "ProviderTransient",
            Self::ProviderCapability => "ProviderCapability",
            Self::ToolTransient => "ToolTransient",
            Self::ToolTerminal => "ToolTerminal",
            Self::Session => "Session",
            Self::Cancellation => "Cancellation",
            Self::ExtensionHost => "ExtensionHost",
        }
    }
}

impl WhoMustAct {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Operator => "operator",
            Self::Person => "person",
            Self::Nobody => "nobody",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_its_code_in_snake_case() {
        for code in Code::ALL {
            let mut snake = String::new();
            let mut before = '_';
            for c in code.as_str().chars() {
                let starts = c.is_ascii_uppercase() || (c.is_ascii_digit() && !before.is_ascii_digit());
                if starts && !snake.is_empty() {
                    snake.push('_');
                }
                snake.push(c.to_ascii_lowercase());
                before = c;
            }
            assert_eq!(snake, code.kind());
        }
    }

    #[test]
    fn a_name_is_read_back() {
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(code));
        }
    }
}
