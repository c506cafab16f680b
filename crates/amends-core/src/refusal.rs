//! Our No, before anything was sent.

use serde::{Deserialize, Serialize};

use crate::recovery::Recovery;
use crate::registry::{Code, WhoMustAct};

macro_rules! kinds {
    ($($kind:ident = $name:literal, $code:ident, $who:ident;)*) => {
        /// The closed set of reasons for which a call is refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum RefusalKind {
            $(#[doc = concat!("`", $name, "`")] #[serde(rename = $name)] $kind,)*
        }

        impl RefusalKind {
            /// Every kind, in the order of the table.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// Its name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// The failure code it belongs to.
            pub const fn code(self) -> Code {
                match self { $(Self::$kind => Code::$code,)* }
            }

            /// Whose move it is.
            pub const fn who_must_act(self) -> WhoMustAct {
                match self { $(Self::$kind => WhoMustAct::$who,)* }
            }
        }
    };
}

kinds! {
    InvalidTransition = "invalid_transition", InputInvalid, Agent;
    UnknownAction = "unknown_action", InputInvalid, Agent;
    ValidationFailed = "validation_failed", InputInvalid, Agent;
    ActionTimeout = "action_timeout", ExecutionTimeout, Nobody;
    ActionError = "action_error", ActionError, Agent;
    UnknownName = "unknown_name", NotFound, Agent;
    MalformedName = "malformed_name", ShapeInvalid, Agent;
    InvalidArgument = "invalid_argument", InputInvalid, Agent;
    MissingCredential = "missing_credential", Forbidden, Operator;
    PiiBlocked = "pii_blocked", Forbidden, Agent;
    PolicyBlocked = "policy_blocked", Forbidden, Person;
    AllowlistViolation = "allowlist_violation", Forbidden, Operator;
    CostCapExceeded = "cost_cap_exceeded", Forbidden, Operator;
    RateLimited = "rate_limited", RateLimited, Nobody;
    SchemaDrift = "schema_drift", ManifestDrift, Operator;
    IndexNotReady = "index_not_ready", ConnectRefused, Nobody;
    ApprovalDenied = "approval_denied", Forbidden, Nobody;
    ApprovalExpired = "approval_expired", Forbidden, Agent;
    AwaitingPerson = "awaiting_person", Forbidden, Person;
    StaleState = "stale_state", EvidenceStale, Agent;
    Duplicate = "duplicate", KeyReused, Agent;
    InFlight = "in_flight", KeyInFlight, Nobody;
    RetryLater = "retry_later", RateLimited, Nobody;
    BreakerOpen = "breaker_open", BreakerOpen, Nobody;
    TooLarge = "too_large", ShapeInvalid, Agent;
    StoreUnavailable = "store_unavailable", StoreUnavailable, Operator;
    InternalError = "internal_error", LifecycleFailure, Operator;
}

/// Our No to a call, before anything was sent, with the next legal move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// Why.
    pub kind: RefusalKind,
    /// The failure code, where it is another than the kind's own.
    pub code: Code,
    /// A sentence for the model.
    pub message: String,
    /// What exactly is wrong with the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<ArgumentFault>,
    /// When it is worth trying again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The next move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// A safe version of what was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_rewrite: Option<String>,
    /// The scope that would unblock the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widening_hint: Option<String>,
}

impl Refusal {
    /// A refusal of that kind with its own code.
    pub fn of(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: kind.code(),
            message: message.into(),
            details: Vec::new(),
            retry_after_ms: None,
            recovery: None,
            suggested_rewrite: None,
            widening_hint: None,
        }
    }
}

/// One thing that is wrong with the arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentFault {
    /// Where, as a dotted path; empty for the arguments as a whole.
    pub field: String,
    /// What was expected there.
    pub expected: String,
    /// What was there instead, bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got: Option<String>,
    /// The nearest thing that would have been right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
}
