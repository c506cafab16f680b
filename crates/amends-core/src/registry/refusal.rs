//! The table of the refusals: what each means, what to do about it, and what the protocols call it.

use super::door::{A2a, AgUi, Mcp};
use crate::refusal::RefusalKind;

struct Row {
    means: &'static str,
    then: &'static str,
    mcp: Mcp,
    a2a: A2a,
    ag_ui: AgUi,
}

macro_rules! refusals {
    ($(
        $kind:ident: mcp $mcp:ident $(($number:literal))?, a2a $a2a:ident, ag_ui $ag_ui:ident
        means $means:literal
        then $then:literal;
    )*) => {
        const fn row(kind: RefusalKind) -> Row {
            match kind {
                $(RefusalKind::$kind => Row {
                    means: $means,
                    then: $then,
                    mcp: Mcp::$mcp $(($number))?,
                    a2a: A2a::$a2a,
                    ag_ui: AgUi::$ag_ui,
                },)*
            }
        }
    };
}

refusals! {
    InvalidTransition: mcp Result, a2a Rejected, ag_ui ToolResult
        means "The machine is in a state that does not have this move."
        then "Take one of `valid_next_actions`.";
    UnknownAction: mcp Result, a2a Rejected, ag_ui ToolResult
        means "The machine has no action of that name."
        then "Take one of `valid_next_actions`; `recovery.fuzzy_matches` has the nearest names.";
    ValidationFailed: mcp Result, a2a Rejected, ag_ui ToolResult
        means "The inputs of an action do not fit, or its guard says no."
        then "Correct what `details` names.";
    ActionTimeout: mcp Result, a2a Failed, ag_ui RunError
        means "An action ran, and did not end in time."
        then "Look at `certainty` and the machine's state before doing it again.";
    ActionError: mcp Result, a2a Failed, ag_ui ToolResult
        means "An action ran, and failed."
        then "Read the message, look at the machine's state, and plan anew.";
    UnknownName: mcp Error(-32602), a2a Rejected, ag_ui ToolResult
        means "There is no tool of that name."
        then "Use one of `recovery.fuzzy_matches`, or list the tools.";
    MalformedName: mcp Result, a2a Rejected, ag_ui ToolResult
        means "What should be a name cannot be one."
        then "Send a name as the list of tools spells it.";
    InvalidArgument: mcp Result, a2a Rejected, ag_ui ToolResult
        means "The arguments do not fit the tool's schema."
        then "Correct what `details` names; `recovery` has the call as far as it is known.";
    MissingCredential: mcp Result, a2a AuthRequired, ag_ui Interrupt
        means "The upstream wants a credential that we do not have."
        then "The operator gives it, or the user signs in.";
    PiiBlocked: mcp Result, a2a Rejected, ag_ui ToolResult
        means "The arguments hold personal data that must not go out."
        then "Leave it out; `recovery.suggested_rewrite` has a safe version where there is one.";
    PolicyBlocked: mcp Result, a2a Rejected, ag_ui ToolResult
        means "A policy says no."
        then "Tell the user. Rephrasing changes nothing; a person may change the policy.";
    AllowlistViolation: mcp Result, a2a Rejected, ag_ui ToolResult
        means "The call names something that is not on the list of what is allowed."
        then "Use what is allowed; `recovery.widening_hint` says what would have to be added.";
    CostCapExceeded: mcp Result, a2a Rejected, ag_ui ToolResult
        means "It would cost more than is allowed."
        then "Ask for less, or let the operator raise the bound.";
    RateLimited: mcp Result, a2a Rejected, ag_ui RunError
        means "There are too many calls at once for us."
        then "Come back after `retry_after_ms`.";
    SchemaDrift: mcp Result, a2a Rejected, ag_ui RunError
        means "The tool is no longer what was declared or approved."
        then "List the tools again; the operator looks at the difference.";
    IndexNotReady: mcp Result, a2a Rejected, ag_ui RunError
        means "We do not know yet whether the tool exists: an upstream has not told its tools."
        then "Come back after `retry_after_ms`.";
    ApprovalDenied: mcp Result, a2a Rejected, ag_ui ToolResult
        means "A person said no."
        then "Tell the user, and do not ask again for the same.";
    ApprovalExpired: mcp Result, a2a Rejected, ag_ui ToolResult
        means "Nobody answered in time, which counts as a no."
        then "Ask the user whether it is still wanted.";
    AwaitingPerson: mcp Result, a2a InputRequired, ag_ui Interrupt
        means "A person has been asked, and has not answered yet."
        then "Tell the user, and do not call again in this turn.";
    StaleState: mcp Result, a2a Rejected, ag_ui ToolResult
        means "What the call is based on has changed."
        then "Read it again, and plan anew; `changed` says what is different.";
    Duplicate: mcp Result, a2a Rejected, ag_ui ToolResult
        means "The key belongs to a call with other arguments."
        then "Take a fresh key for what is another call.";
    InFlight: mcp Result, a2a Working, ag_ui RunError
        means "The call that this one repeats, or another write to the same object, is still under way or in doubt."
        then "Wait, and ask again with the same call; nothing is sent twice.";
    RetryLater: mcp Result, a2a Failed, ag_ui RunError
        means "The wait that the upstream asks for goes past the agent's deadline."
        then "Come back after `retry_after_ms`, if `safe_to_repeat` says so.";
    BreakerOpen: mcp Result, a2a Rejected, ag_ui RunError
        means "The upstream failed too often, and is given a rest."
        then "Come back after `retry_after_ms`.";
    TooLarge: mcp Result, a2a Rejected, ag_ui ToolResult
        means "The message is larger or deeper than we take."
        then "Send less.";
    ReversalRefused: mcp Result, a2a Rejected, ag_ui ToolResult
        means "The token undoes nothing: it is unknown, used, too old, or its call is not done."
        then "The message says why. Where it is still in doubt, the token may work once that is settled.";
    StoreUnavailable: mcp Result, a2a Rejected, ag_ui RunError
        means "Our ledger cannot record, so nothing is sent."
        then "The operator sees to the ledger; the same call may work later.";
    InternalError: mcp Result, a2a Failed, ag_ui RunError
        means "Something of ours failed."
        then "The operator reads the gateway's log.";
}

impl RefusalKind {
    /// One sentence on what it means.
    pub const fn means(self) -> &'static str {
        row(self).means
    }

    /// What to do about it.
    pub const fn then(self) -> &'static str {
        row(self).then
    }

    /// The HTTP status that fits it.
    pub const fn http_status(self) -> u16 {
        if matches!(self, Self::TooLarge) { 413 } else { self.code().http_status() }
    }

    /// How MCP says it.
    pub const fn mcp(self) -> Mcp {
        row(self).mcp
    }

    /// How A2A says it.
    pub const fn a2a(self) -> A2a {
        row(self).a2a
    }

    /// How AG-UI says it.
    pub const fn ag_ui(self) -> AgUi {
        row(self).ag_ui
    }
}
