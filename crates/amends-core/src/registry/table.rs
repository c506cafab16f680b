//! The table: one entry for each failure code.

use serde::{Deserialize, Serialize};

use super::door::{A2a, AgUi, Mcp};
use super::field::{self, Field};
use super::{Class, WhoMustAct};
use crate::certainty::Certainty;
use crate::verdict::Verdict;

macro_rules! registry {
    ($(
        $code:ident = $kind:literal, $class:ident, since $since:literal
        means $means:literal
        then $then:literal
        verdict $verdict:ident, acts $who:ident, retryable $retryable:literal, proves $certainty:ident, shows $shows:ident;
        http $http:literal, mcp $mcp:ident $(($mcp_number:literal))?, a2a $a2a:ident $(($a2a_number:literal))?, ag_ui $ag_ui:ident;
    )*) => {
        /// What went wrong, as the world reported it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Code {
            $(#[doc = $means] $code,)*
        }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: [Self; [$($kind),*].len()] = [$(Self::$code),*];
        }

        const ROWS: [Row; Code::ALL.len()] = [$(Row {
            name: stringify!($code),
            kind: $kind,
            class: Class::$class,
            since: $since,
            means: $means,
            then: $then,
            verdict: Verdict::$verdict,
            who_must_act: WhoMustAct::$who,
            retryable: $retryable,
            implies: $certainty,
            shows: field::$shows,
            http_status: $http,
            mcp: Mcp::$mcp $(($mcp_number))?,
            a2a: A2a::$a2a $(($a2a_number))?,
            ag_ui: AgUi::$ag_ui,
        },)*];
    };
}

const NOTHING: Option<Certainty> = None;
const NOT_SENT: Option<Certainty> = Some(Certainty::NotSent);
const NOT_PROCESSED: Option<Certainty> = Some(Certainty::NotProcessed);
const PROCESSED: Option<Certainty> = Some(Certainty::Processed);

registry! {
    ShapeInvalid = "shape_invalid", Validation, since "1.0"
        means "The message is not one this protocol knows."
        then "Send a message of the protocol. The same one fails again."
        verdict InputRejected, acts Agent, retryable false, proves NOT_SENT, shows MESSAGE;
        http 400, mcp Result, a2a Error(-32600), ag_ui HttpError;
    ContractVersionMismatch = "contract_version_mismatch", Validation, since "1.0"
        means "Two sides speak versions that do not meet."
        then "Bring one side to a version that the other speaks."
        verdict CapabilityMissing, acts Operator, retryable false, proves NOT_SENT, shows CAPABILITY;
        http 400, mcp Error(-32022), a2a Error(-32009), ag_ui HttpError;
    ConfigSchemaViolation = "config_schema_violation", Validation, since "1.0"
        means "The configuration does not say what it must."
        then "Correct the configuration, and start again."
        verdict CapabilityMissing, acts Operator, retryable false, proves NOT_SENT, shows HOUSE;
        http 500, mcp Result, a2a Rejected, ag_ui RunError;
    NetworkTimeout = "network_timeout", ProviderTransient, since "1.0"
        means "No answer came in time."
        then "Look at `certainty`: in doubt means that it may have happened, and a repeat could do it twice. Else call again later."
        verdict TransientTimeout, acts Nobody, retryable true, proves NOTHING, shows TRIED;
        http 504, mcp Result, a2a Failed, ag_ui RunError;
    Provider5xx = "provider_5xx", ProviderTransient, since "1.0"
        means "The upstream said that it failed itself."
        then "Look at `certainty` first. Where nothing was done, the same call may work later."
        verdict ServerError5xx, acts Nobody, retryable true, proves NOTHING, shows TRIED;
        http 502, mcp Result, a2a Failed, ag_ui RunError;
    RateLimited = "rate_limited", ProviderTransient, since "1.0"
        means "The upstream asks for less."
        then "Come back after `retry_after_ms`, not earlier."
        verdict RateLimited, acts Nobody, retryable true, proves NOTHING, shows TRIED;
        http 429, mcp Result, a2a Failed, ag_ui RunError;
    ConnectionLost = "connection_lost", ProviderTransient, since "1.0"
        means "The connection broke, or the upstream died, before its answer."
        then "Look at `certainty`: in doubt means that it may have happened, and a repeat could do it twice. Else call again."
        verdict TransientTimeout, acts Nobody, retryable true, proves NOTHING, shows TRIED;
        http 502, mcp Result, a2a Failed, ag_ui RunError;
    ConnectRefused = "connect_refused", ProviderTransient, since "1.0"
        means "The upstream could not be reached; nothing was sent."
        then "See that the upstream runs and can be reached. The same call may work later."
        verdict UpstreamUnavailable, acts Operator, retryable true, proves NOT_SENT, shows TRIED;
        http 503, mcp Result, a2a Failed, ag_ui RunError;
    BreakerOpen = "breaker_open", ProviderTransient, since "1.0"
        means "The upstream failed too often; we do not try for a while."
        then "Wait until `retry_after_ms` is over; the upstream is given a rest."
        verdict UpstreamUnavailable, acts Nobody, retryable true, proves NOT_SENT, shows HOUSE_LATER;
        http 503, mcp Result, a2a Rejected, ag_ui RunError;
    MissingStreaming = "missing_streaming", ProviderCapability, since "1.0"
        means "The upstream does not stream."
        then "Use an upstream that streams, or a call that needs no stream."
        verdict CapabilityMissing, acts Operator, retryable false, proves NOT_PROCESSED, shows CAPABILITY;
        http 501, mcp Result, a2a Failed, ag_ui ToolResult;
    MissingToolCalling = "missing_tool_calling", ProviderCapability, since "1.0"
        means "The upstream has no tools."
        then "Use an upstream that has tools."
        verdict CapabilityMissing, acts Operator, retryable false, proves NOT_PROCESSED, shows CAPABILITY;
        http 501, mcp Result, a2a Failed, ag_ui ToolResult;
    ContextWindowTooSmall = "context_window_too_small", ProviderCapability, since "1.0"
        means "The upstream cannot take that much."
        then "Use an upstream that takes more, or send less."
        verdict CapabilityMissing, acts Operator, retryable false, proves NOT_PROCESSED, shows CAPABILITY;
        http 413, mcp Result, a2a Failed, ag_ui ToolResult;
    MissingCapability = "missing_capability", ProviderCapability, since "1.0"
        means "One side lacks something the other needs."
        then "Give the side that lacks it what the other needs, or use another upstream."
        verdict CapabilityMissing, acts Operator, retryable false, proves NOT_PROCESSED, shows CAPABILITY;
        http 501, mcp Error(-32021), a2a Failed, ag_ui ToolResult;
    ExecutionTimeout = "execution_timeout", ToolTransient, since "1.0"
        means "The tool itself gave up on time."
        then "Look at `certainty` first. Where nothing was done, the same call may work later."
        verdict TransientTimeout, acts Nobody, retryable true, proves NOTHING, shows TRIED;
        http 504, mcp Result, a2a Failed, ag_ui RunError;
    ResourceBusy = "resource_busy", ToolTransient, since "1.0"
        means "What the tool needs is in use."
        then "Come back when it is free, after `retry_after_ms` where it is given."
        verdict RateLimited, acts Nobody, retryable true, proves NOTHING, shows TRIED;
        http 503, mcp Result, a2a Failed, ag_ui RunError;
    InputInvalid = "input_invalid", ToolTerminal, since "1.0"
        means "The tool does not take these arguments."
        then "Correct the arguments that `details` or `upstream.field` name. The same ones fail again."
        verdict InputRejected, acts Agent, retryable false, proves NOT_PROCESSED, shows ARGUMENTS;
        http 422, mcp Result, a2a Failed, ag_ui ToolResult;
    OutputMalformed = "output_malformed", ToolTerminal, since "1.0"
        means "The tool's answer does not fit what it declares."
        then "A write was done: go on from that, with `upstream_result`. The operator corrects the tool or its output schema."
        verdict SchemaMismatch, acts Operator, retryable false, proves PROCESSED, shows DECIDED;
        http 502, mcp Result, a2a Failed, ag_ui ToolResult;
    Forbidden = "forbidden", ToolTerminal, since "1.0"
        means "A policy says no."
        then "Tell the user. Rephrasing changes nothing; a person may change the policy."
        verdict PolicyDenied, acts Person, retryable false, proves NOT_PROCESSED, shows DECIDED;
        http 403, mcp Result, a2a Rejected, ag_ui ToolResult;
    NotFound = "not_found", ToolTerminal, since "1.0"
        means "What the call names does not exist."
        then "Use a name that exists; `recovery.fuzzy_matches` has the nearest ones where we know them."
        verdict InputRejected, acts Agent, retryable false, proves NOT_PROCESSED, shows ARGUMENTS;
        http 404, mcp Result, a2a Failed, ag_ui ToolResult;
    ActionError = "action_error", ToolTerminal, since "1.0"
        means "The tool reported an error nobody has described to us."
        then "Read the upstream's own words as data. The operator can teach us this error with a `translate` rule."
        verdict Unclassified, acts Agent, retryable false, proves NOTHING, shows TRIED;
        http 500, mcp Result, a2a Failed, ag_ui ToolResult;
    KeyInFlight = "key_in_flight", ToolTerminal, since "1.0"
        means "The upstream is still working on an earlier request with this key."
        then "Wait: the earlier request goes on, and its status tells how it ended."
        verdict IdempotencyConflict, acts Nobody, retryable false, proves NOTHING, shows TRIED;
        http 409, mcp Result, a2a Failed, ag_ui RunError;
    KeyReused = "key_reused", ToolTerminal, since "1.0"
        means "The key was used before with other arguments."
        then "Find out who used the key twice; a call that means something else takes a fresh one."
        verdict IdempotencyConflict, acts Operator, retryable false, proves NOT_PROCESSED, shows DECIDED;
        http 422, mcp Result, a2a Failed, ag_ui ToolResult;
    AlreadyProcessed = "already_processed", ToolTerminal, since "1.0"
        means "The upstream has done this already."
        then "Go on from the fact that it was done."
        verdict IdempotencyConflict, acts Agent, retryable false, proves PROCESSED, shows DECIDED;
        http 409, mcp Result, a2a Failed, ag_ui ToolResult;
    EvidenceStale = "evidence_stale", ToolTerminal, since "1.0"
        means "What the call was based on has changed."
        then "Read what it was based on again, and plan anew."
        verdict EvidenceStale, acts Agent, retryable false, proves NOT_PROCESSED, shows EVIDENCE;
        http 412, mcp Result, a2a Failed, ag_ui ToolResult;
    ManifestDrift = "manifest_drift", Session, since "1.0"
        means "The session was begun under another definition."
        then "Begin a new session, or go back to the definition this one was begun under."
        verdict CapabilityMissing, acts Operator, retryable false, proves NOT_SENT, shows HOUSE;
        http 409, mcp Result, a2a Rejected, ag_ui RunError;
    StoreUnavailable = "store_unavailable", Session, since "1.0"
        means "Our ledger cannot record, so nothing is sent."
        then "See to the ledger: its disk, its rights, its database. Calls go on when it records again."
        verdict StoreUnavailable, acts Operator, retryable true, proves NOT_SENT, shows HOUSE_LATER;
        http 503, mcp Result, a2a Rejected, ag_ui RunError;
    ResumeMismatch = "resume_mismatch", Session, since "1.0"
        means "The session does not belong to this ledger."
        then "Give the gateway the ledger to which the session belongs."
        verdict CapabilityMissing, acts Operator, retryable false, proves NOT_SENT, shows HOUSE;
        http 409, mcp Result, a2a Rejected, ag_ui RunError;
    LeaseLost = "lease_lost", Session, since "1.0"
        means "Another node drives the session now."
        then "Nothing: the node that has the session goes on with it."
        verdict StoreUnavailable, acts Nobody, retryable true, proves NOT_SENT, shows HOUSE_LATER;
        http 503, mcp Result, a2a Failed, ag_ui RunError;
    SessionCancelled = "session_cancelled", Cancellation, since "1.0"
        means "The session was stopped."
        then "Nothing. Look at `certainty`: what had been sent may have happened."
        verdict Cancelled, acts Nobody, retryable false, proves NOTHING, shows STOPPED;
        http 499, mcp Result, a2a Canceled, ag_ui Cancelled;
    TurnCancelled = "turn_cancelled", Cancellation, since "1.0"
        means "The agent's turn was stopped."
        then "Nothing. Look at `certainty`: what had been sent may have happened."
        verdict Cancelled, acts Nobody, retryable false, proves NOTHING, shows STOPPED;
        http 499, mcp Result, a2a Canceled, ag_ui Cancelled;
    ToolCancelled = "tool_cancelled", Cancellation, since "1.0"
        means "The call was stopped."
        then "Nothing. Look at `certainty`: what had been sent may have happened."
        verdict Cancelled, acts Nobody, retryable false, proves NOTHING, shows STOPPED;
        http 499, mcp Result, a2a Canceled, ag_ui Cancelled;
    LifecycleFailure = "lifecycle_failure", ExtensionHost, since "1.0"
        means "Something we host failed to start, run or stop."
        then "Read the gateway's own log, and mend what failed."
        verdict CapabilityMissing, acts Operator, retryable false, proves NOTHING, shows HOUSE;
        http 500, mcp Result, a2a Failed, ag_ui RunError;
    DependencyCycle = "dependency_cycle", ExtensionHost, since "1.0"
        means "Things we host need each other in a circle."
        then "Break the circle in the configuration."
        verdict CapabilityMissing, acts Operator, retryable false, proves NOT_SENT, shows HOUSE;
        http 500, mcp Result, a2a Rejected, ag_ui RunError;
    DependencyMissing = "dependency_missing", ExtensionHost, since "1.0"
        means "Something we host needs what is not there."
        then "Add what is needed, or take out what needs it."
        verdict CapabilityMissing, acts Operator, retryable false, proves NOT_SENT, shows HOUSE;
        http 500, mcp Result, a2a Rejected, ag_ui RunError;
}

/// What the table says of one code.
struct Row {
    name: &'static str,
    kind: &'static str,
    class: Class,
    since: &'static str,
    means: &'static str,
    then: &'static str,
    verdict: Verdict,
    who_must_act: WhoMustAct,
    retryable: bool,
    implies: Option<Certainty>,
    shows: &'static [Field],
    http_status: u16,
    mcp: Mcp,
    a2a: A2a,
    ag_ui: AgUi,
}

macro_rules! columns {
    ($($(#[$doc:meta])* $column:ident: $kind:ty;)*) => {
        impl Code {
            $($(#[$doc])* pub const fn $column(self) -> $kind {
                ROWS[self as usize].$column
            })*
        }
    };
}

columns! {
    /// Its name as an envelope's `kind`.
    kind: &'static str;
    /// The family it belongs to.
    class: Class;
    /// The version of the charter that first had it.
    since: &'static str;
    /// One sentence on what it means.
    means: &'static str;
    /// What to do about it, for whoever must act.
    then: &'static str;
    /// The situation it names when nothing is in doubt.
    verdict: Verdict;
    /// Whose move it is when nothing is in doubt.
    who_must_act: WhoMustAct;
    /// Whether the same call can work later, when nothing is in doubt.
    retryable: bool;
    /// What the code alone proves of the effect; `None` where only the signal can tell.
    implies: Option<Certainty>;
    /// The fields the agent sees beside those that every error has.
    shows: &'static [Field];
    /// The HTTP status that fits it.
    http_status: u16;
    /// How MCP says it.
    mcp: Mcp;
    /// How A2A says it.
    a2a: A2a;
    /// How AG-UI says it.
    ag_ui: AgUi;
}

impl Code {
    /// What it means where an upstream said it: whose policies those are that say no.
    pub const fn means_upstream(self) -> &'static str {
        if matches!(self, Self::Forbidden) { "The upstream refused it." } else { self.means() }
    }

    /// Its name as `code` on the wire.
    pub const fn as_str(self) -> &'static str {
        ROWS[self as usize].name
    }

    /// The code of that name, as `translate` rules and stored events write it.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == name)
    }
}
