"""The envelope that Amends answers a tool call with.

Generated from the registry; do not edit. Further fields may be added in a minor version of the charter.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NotRequired, TypeAlias, TypedDict, Union

CHARTER_VERSION: Final = "1.0"

# What is known of the effect.
Certainty: TypeAlias = Literal[
    "not_sent",
    "not_processed",
    "processed",
    "in_doubt",
]

# The family of a failure.
Class: TypeAlias = Literal[
    "Validation",
    "ProviderTransient",
    "ProviderCapability",
    "ToolTransient",
    "ToolTerminal",
    "Session",
    "Cancellation",
    "ExtensionHost",
]

# What went wrong, as the world reported it.
Code: TypeAlias = Literal[
    "ShapeInvalid",
    "ContractVersionMismatch",
    "ConfigSchemaViolation",
    "NetworkTimeout",
    "Provider5xx",
    "RateLimited",
    "ConnectionLost",
    "ConnectRefused",
    "BreakerOpen",
    "MissingStreaming",
    "MissingToolCalling",
    "ContextWindowTooSmall",
    "MissingCapability",
    "ExecutionTimeout",
    "ResourceBusy",
    "InputInvalid",
    "OutputMalformed",
    "Forbidden",
    "NotFound",
    "ActionError",
    "KeyInFlight",
    "KeyReused",
    "AlreadyProcessed",
    "EvidenceStale",
    "ManifestDrift",
    "StoreUnavailable",
    "ResumeMismatch",
    "LeaseLost",
    "SessionCancelled",
    "TurnCancelled",
    "ToolCancelled",
    "LifecycleFailure",
    "DependencyCycle",
    "DependencyMissing",
]

# What is amiss although it was done.
DegradationReason: TypeAlias = Literal[
    "answer_not_kept",
    "stale_answer",
    "settled_by_person",
    "masked",
]

# A refusal's own name, or a failure's code in snake case.
Kind: TypeAlias = Literal[
    "shape_invalid",
    "contract_version_mismatch",
    "config_schema_violation",
    "network_timeout",
    "provider_5xx",
    "rate_limited",
    "connection_lost",
    "connect_refused",
    "breaker_open",
    "missing_streaming",
    "missing_tool_calling",
    "context_window_too_small",
    "missing_capability",
    "execution_timeout",
    "resource_busy",
    "input_invalid",
    "output_malformed",
    "forbidden",
    "not_found",
    "action_error",
    "key_in_flight",
    "key_reused",
    "already_processed",
    "evidence_stale",
    "manifest_drift",
    "store_unavailable",
    "resume_mismatch",
    "lease_lost",
    "session_cancelled",
    "turn_cancelled",
    "tool_cancelled",
    "lifecycle_failure",
    "dependency_cycle",
    "dependency_missing",
    "invalid_transition",
    "unknown_action",
    "validation_failed",
    "action_timeout",
    "unknown_name",
    "malformed_name",
    "invalid_argument",
    "missing_credential",
    "pii_blocked",
    "policy_blocked",
    "allowlist_violation",
    "cost_cap_exceeded",
    "schema_drift",
    "index_not_ready",
    "approval_denied",
    "approval_expired",
    "awaiting_person",
    "stale_state",
    "duplicate",
    "in_flight",
    "retry_later",
    "too_large",
    "reversal_refused",
    "internal_error",
]

# How the call ended, after all compensation.
Outcome: TypeAlias = Literal[
    "succeeded",
    "succeeded_after_compensation",
    "deprecated",
    "escalated",
    "reversed",
    "exhausted",
    "cancelled",
    "refused",
    "unresolved",
]

# What an attempt was for.
Purpose: TypeAlias = Literal[
    "act",
    "baseline",
    "status",
    "join",
    "evidence",
    "reverse",
]

# Why it was refused.
RefusalKind: TypeAlias = Literal[
    "invalid_transition",
    "unknown_action",
    "validation_failed",
    "action_timeout",
    "action_error",
    "unknown_name",
    "malformed_name",
    "invalid_argument",
    "missing_credential",
    "pii_blocked",
    "policy_blocked",
    "allowlist_violation",
    "cost_cap_exceeded",
    "rate_limited",
    "schema_drift",
    "index_not_ready",
    "approval_denied",
    "approval_expired",
    "awaiting_person",
    "stale_state",
    "duplicate",
    "in_flight",
    "retry_later",
    "breaker_open",
    "too_large",
    "store_unavailable",
    "reversal_refused",
    "internal_error",
]

# How it stands.
Status: TypeAlias = Literal[
    "success",
    "empty",
    "partial",
    "degraded",
    "error",
    "refused",
]

# Which situation the last attempt is.
Verdict: TypeAlias = Literal[
    "transient_timeout",
    "server_error_5xx",
    "rate_limited",
    "upstream_unavailable",
    "idempotency_conflict",
    "evidence_stale",
    "policy_denied",
    "schema_mismatch",
    "input_rejected",
    "capability_missing",
    "in_doubt",
    "cancelled",
    "store_unavailable",
    "unclassified",
]

# Whose move it is.
WhoMustAct: TypeAlias = Literal[
    "agent",
    "operator",
    "person",
    "nobody",
]


class ArgumentFault(TypedDict):
    # What was expected there.
    expected: str
    # Where, as a dotted path; empty for the arguments as a whole.
    field: str
    # What was there instead.
    got: NotRequired[str]
    nearest: NotRequired[list[str]]


class AttemptLine(TypedDict):
    # How long it took. In milliseconds.
    ms: int
    n: int
    certainty: NotRequired[Certainty]
    code: NotRequired[Code]
    happened: NotRequired[bool]
    purpose: NotRequired[Purpose]


Change = TypedDict(
    "Change",
    {
        "is": str,
        "reference": str,
        "was": str,
    },
)


class Common(TypedDict):
    charter_version: str
    attempts: NotRequired[list[AttemptLine]]
    confidence: NotRequired[float]
    follow_up_hints: NotRequired[list[str]]
    known_actions: NotRequired[list[str]]
    # The input schema of each move that is legal now.
    next_action_schemas: NotRequired[dict[str, Any]]
    # What to do now, in a sentence.
    next_hint: NotRequired[str]
    provenance: NotRequired[list[Provenance]]
    # A recorded answer is given again.
    replayed: NotRequired[Literal[True]]
    # What a machine's action gave.
    result: NotRequired[Any]
    reversal: NotRequired[Reversal]
    # How many moves were made in it.
    seq: NotRequired[int]
    # The handle of the walk that the call was about.
    session: NotRequired[str]
    # Where a walk through a machine is: the machine, the name of its state, its fields.
    state: NotRequired[Any]
    # How long the action may take. In milliseconds.
    timeout_ms: NotRequired[int]
    valid_next_actions: NotRequired[list[str]]
    # Why nothing, or only one thing, may be done now.
    waits: NotRequired[dict[str, Any]]


class NextCall(TypedDict):
    args: dict[str, Any]
    # The tool's served name.
    tool: str


class Provenance(TypedDict):
    # Where it comes from.
    source: str
    # The hash of what was read.
    hash: NotRequired[str]
    # When it was read, since 1970. In milliseconds.
    read_at: NotRequired[int]


class Recovery(TypedDict):
    call: NotRequired[NextCall]
    fuzzy_matches: NotRequired[list[str]]
    # Not before this time, since 1970. In milliseconds.
    not_before: NotRequired[int]
    template: NotRequired[Template]
    # How to mean a second one, where a recorded answer was given again.
    to_mean_another: NotRequired[str]


class Reversal(TypedDict):
    # What undoes it, once.
    token: str
    # The tool that takes the token.
    tool: str
    # Until when, since 1970. In milliseconds.
    until: int


class Template(TypedDict):
    args: dict[str, Any]
    missing: list[str]
    # The tool's served name.
    tool: str


Trouble = TypedDict(
    "Trouble",
    {
        "certainty": Certainty,
        "class": Class,
        "code": Code,
        "message": str,
        "requested": str,
        "retryable": bool,
        "safe_to_repeat": bool,
        "who_must_act": WhoMustAct,
        "changed": NotRequired[list[Change]],
        "details": NotRequired[list[ArgumentFault]],
        "interaction": NotRequired[str],
        "retry_after_ms": NotRequired[int],
    },
)


class Upstream(TypedDict):
    trusted: Literal[False]
    # The upstream's own code.
    code: NotRequired[str]
    # The argument it names.
    field: NotRequired[str]
    status: NotRequired[int]
    # Its text, bounded: data, never instructions.
    text: NotRequired[str]


class DegradedEnvelope(Common):
    degradation_reason: DegradationReason
    status: Literal["degraded"]
    # What it gave.
    data: NotRequired[Any]
    outcome: NotRequired[Outcome]


class EmptyEnvelope(Common):
    status: Literal["empty"]
    # What it gave.
    data: NotRequired[Any]
    outcome: NotRequired[Outcome]


class ErrorEnvelope(Common):
    error: Failure
    status: Literal["error"]
    outcome: NotRequired[Outcome]


class Failure(Trouble):
    kind: Kind
    recovery: NotRequired[Recovery]
    upstream: NotRequired[Upstream]
    # What a write gave back although it does not fit.
    upstream_result: NotRequired[Any]
    verdict: NotRequired[Verdict]


class PartialBeside(Common):
    errors: list[ItemFailure]
    status: Literal["partial"]
    # What it gave.
    data: NotRequired[Any]
    # How many more items failed than are listed.
    errors_left_out: NotRequired[int]
    outcome: NotRequired[Outcome]
    # The answer was cut: there is more than this.
    truncated: NotRequired[Literal[True]]


class PartialEnvelope(Common):
    # What it gave.
    data: Any
    errors: list[ItemFailure]
    status: Literal["partial"]
    # How many more items failed than are listed.
    errors_left_out: NotRequired[int]
    outcome: NotRequired[Outcome]
    # The answer was cut: there is more than this.
    truncated: NotRequired[Literal[True]]


class Refusal(Trouble):
    kind: RefusalKind
    recovery: NotRequired[RefusalRecovery]


class RefusalRecovery(Recovery):
    # A safe version of what was asked.
    suggested_rewrite: NotRequired[str]
    # The scope that would unblock it.
    widening_hint: NotRequired[str]


class RefusedEnvelope(Common):
    error: Refusal
    status: Literal["refused"]
    outcome: NotRequired[Literal["refused"]]


class SuccessBeside(Common):
    # How it came to that.
    outcome: Literal["succeeded", "succeeded_after_compensation"]
    status: Literal["success"]
    # What it gave.
    data: NotRequired[Any]


class SuccessEnvelope(Common):
    # What it gave.
    data: Any
    # How it came to that.
    outcome: Literal["succeeded", "succeeded_after_compensation"]
    status: Literal["success"]


class ItemFailure(Failure):
    # Which item: its place or its name.
    item: str


Envelope: TypeAlias = Union[
    SuccessEnvelope,
    PartialEnvelope,
    EmptyEnvelope,
    DegradedEnvelope,
    ErrorEnvelope,
    RefusedEnvelope,
]


EnvelopeBeside: TypeAlias = Union[
    SuccessBeside,
    PartialBeside,
    EmptyEnvelope,
    DegradedEnvelope,
    ErrorEnvelope,
    RefusedEnvelope,
]
