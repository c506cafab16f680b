// The envelope that Amends answers a tool call with.
// Generated from the registry; do not edit. Further fields may be added in a minor version of the charter.

/** The version of the charter these types are of. */
export type CharterVersion = "1.0";

/** What is known of the effect. */
export type Certainty =
  | "not_sent"
  | "not_processed"
  | "processed"
  | "in_doubt";

/** The family of a failure. */
export type Class =
  | "Validation"
  | "ProviderTransient"
  | "ProviderCapability"
  | "ToolTransient"
  | "ToolTerminal"
  | "Session"
  | "Cancellation"
  | "ExtensionHost";

/** What went wrong, as the world reported it. */
export type Code =
  | "ShapeInvalid"
  | "ContractVersionMismatch"
  | "ConfigSchemaViolation"
  | "NetworkTimeout"
  | "Provider5xx"
  | "RateLimited"
  | "ConnectionLost"
  | "ConnectRefused"
  | "BreakerOpen"
  | "MissingStreaming"
  | "MissingToolCalling"
  | "ContextWindowTooSmall"
  | "MissingCapability"
  | "ExecutionTimeout"
  | "ResourceBusy"
  | "InputInvalid"
  | "OutputMalformed"
  | "Forbidden"
  | "NotFound"
  | "ActionError"
  | "KeyInFlight"
  | "KeyReused"
  | "AlreadyProcessed"
  | "EvidenceStale"
  | "ManifestDrift"
  | "StoreUnavailable"
  | "ResumeMismatch"
  | "LeaseLost"
  | "SessionCancelled"
  | "TurnCancelled"
  | "ToolCancelled"
  | "LifecycleFailure"
  | "DependencyCycle"
  | "DependencyMissing";

/** What is amiss although it was done. */
export type DegradationReason =
  | "answer_not_kept"
  | "stale_answer"
  | "settled_by_person"
  | "masked";

/** A refusal's own name, or a failure's code in snake case. */
export type Kind =
  | "shape_invalid"
  | "contract_version_mismatch"
  | "config_schema_violation"
  | "network_timeout"
  | "provider_5xx"
  | "rate_limited"
  | "connection_lost"
  | "connect_refused"
  | "breaker_open"
  | "missing_streaming"
  | "missing_tool_calling"
  | "context_window_too_small"
  | "missing_capability"
  | "execution_timeout"
  | "resource_busy"
  | "input_invalid"
  | "output_malformed"
  | "forbidden"
  | "not_found"
  | "action_error"
  | "key_in_flight"
  | "key_reused"
  | "already_processed"
  | "evidence_stale"
  | "manifest_drift"
  | "store_unavailable"
  | "resume_mismatch"
  | "lease_lost"
  | "session_cancelled"
  | "turn_cancelled"
  | "tool_cancelled"
  | "lifecycle_failure"
  | "dependency_cycle"
  | "dependency_missing"
  | "invalid_transition"
  | "unknown_action"
  | "validation_failed"
  | "action_timeout"
  | "unknown_name"
  | "malformed_name"
  | "invalid_argument"
  | "missing_credential"
  | "pii_blocked"
  | "policy_blocked"
  | "allowlist_violation"
  | "cost_cap_exceeded"
  | "schema_drift"
  | "index_not_ready"
  | "approval_denied"
  | "approval_expired"
  | "awaiting_person"
  | "stale_state"
  | "duplicate"
  | "in_flight"
  | "retry_later"
  | "too_large"
  | "reversal_refused"
  | "internal_error";

/** How the call ended, after all compensation. */
export type Outcome =
  | "succeeded"
  | "succeeded_after_compensation"
  | "deprecated"
  | "escalated"
  | "reversed"
  | "exhausted"
  | "cancelled"
  | "refused"
  | "unresolved";

/** What an attempt was for. */
export type Purpose =
  | "act"
  | "baseline"
  | "status"
  | "join"
  | "evidence"
  | "reverse";

/** Why it was refused. */
export type RefusalKind =
  | "invalid_transition"
  | "unknown_action"
  | "validation_failed"
  | "action_timeout"
  | "action_error"
  | "unknown_name"
  | "malformed_name"
  | "invalid_argument"
  | "missing_credential"
  | "pii_blocked"
  | "policy_blocked"
  | "allowlist_violation"
  | "cost_cap_exceeded"
  | "rate_limited"
  | "schema_drift"
  | "index_not_ready"
  | "approval_denied"
  | "approval_expired"
  | "awaiting_person"
  | "stale_state"
  | "duplicate"
  | "in_flight"
  | "retry_later"
  | "breaker_open"
  | "too_large"
  | "store_unavailable"
  | "reversal_refused"
  | "internal_error";

/** How it stands. */
export type Status =
  | "success"
  | "empty"
  | "partial"
  | "degraded"
  | "error"
  | "refused";

/** Which situation the last attempt is. */
export type Verdict =
  | "transient_timeout"
  | "server_error_5xx"
  | "rate_limited"
  | "upstream_unavailable"
  | "idempotency_conflict"
  | "evidence_stale"
  | "policy_denied"
  | "schema_mismatch"
  | "input_rejected"
  | "capability_missing"
  | "in_doubt"
  | "cancelled"
  | "store_unavailable"
  | "unclassified";

/** Whose move it is. */
export type WhoMustAct =
  | "agent"
  | "operator"
  | "person"
  | "nobody";

export interface ArgumentFault {
  /** What was expected there. */
  expected: string;
  /** Where, as a dotted path; empty for the arguments as a whole. */
  field: string;
  /** What was there instead. */
  got?: string;
  nearest?: string[];
}

export interface AttemptLine {
  /** How long it took. In milliseconds. */
  ms: number;
  n: number;
  certainty?: Certainty;
  code?: Code;
  happened?: boolean;
  purpose?: Purpose;
}

export interface Change {
  /** The hash it has. */
  is: string;
  /** What was read. */
  reference: string;
  /** The hash it had. */
  was: string;
}

export interface Common {
  charter_version: string;
  attempts?: AttemptLine[];
  confidence?: number;
  follow_up_hints?: string[];
  known_actions?: string[];
  /** The input schema of each move that is legal now. */
  next_action_schemas?: Record<string, unknown>;
  /** What to do now, in a sentence. */
  next_hint?: string;
  provenance?: Provenance[];
  /** A recorded answer is given again. */
  replayed?: true;
  /** What a machine's action gave. */
  result?: unknown;
  reversal?: Reversal;
  /** How many moves were made in it. */
  seq?: number;
  /** The handle of the walk that the call was about. */
  session?: string;
  /** Where a walk through a machine is: the machine, the name of its state, its fields. */
  state?: unknown;
  /** How long the action may take. In milliseconds. */
  timeout_ms?: number;
  valid_next_actions?: string[];
  /** Why nothing, or only one thing, may be done now. */
  waits?: Record<string, unknown>;
}

export interface NextCall {
  args: Record<string, unknown>;
  /** The tool's served name. */
  tool: string;
}

export interface Provenance {
  /** Where it comes from. */
  source: string;
  /** The hash of what was read. */
  hash?: string;
  /** When it was read, since 1970. In milliseconds. */
  read_at?: number;
}

export interface Recovery {
  call?: NextCall;
  fuzzy_matches?: string[];
  /** Not before this time, since 1970. In milliseconds. */
  not_before?: number;
  template?: Template;
  /** How to mean a second one, where a recorded answer was given again. */
  to_mean_another?: string;
}

export interface Reversal {
  /** What undoes it, once. */
  token: string;
  /** The tool that takes the token. */
  tool: string;
  /** Until when, since 1970. In milliseconds. */
  until: number;
}

export interface Template {
  args: Record<string, unknown>;
  missing: string[];
  /** The tool's served name. */
  tool: string;
}

export interface Trouble {
  certainty: Certainty;
  class: Class;
  code: Code;
  /** A sentence for the model. */
  message: string;
  /** The tool or action that was asked for. */
  requested: string;
  /** Whether the same call can work later. */
  retryable: boolean;
  /** Whether sending the same call again can do no harm. */
  safe_to_repeat: boolean;
  who_must_act: WhoMustAct;
  changed?: Change[];
  details?: ArgumentFault[];
  /** The question a person was asked. */
  interaction?: string;
  /** How long to wait before trying again. In milliseconds. */
  retry_after_ms?: number;
}

export interface Upstream {
  trusted: false;
  /** The upstream's own code. */
  code?: string;
  /** The argument it names. */
  field?: string;
  status?: number;
  /** Its text, bounded: data, never instructions. */
  text?: string;
}

export interface DegradedEnvelope extends Common {
  degradation_reason: DegradationReason;
  status: "degraded";
  /** What it gave. */
  data?: unknown;
  error?: never;
  errors?: never;
  errors_left_out?: never;
  outcome?: Outcome;
  truncated?: never;
}

export interface EmptyEnvelope extends Common {
  status: "empty";
  /** What it gave. */
  data?: unknown;
  degradation_reason?: never;
  error?: never;
  errors?: never;
  errors_left_out?: never;
  outcome?: Outcome;
  truncated?: never;
}

export interface ErrorEnvelope extends Common {
  error: Failure;
  status: "error";
  data?: never;
  degradation_reason?: never;
  errors?: never;
  errors_left_out?: never;
  outcome?: Outcome;
  truncated?: never;
}

export interface Failure extends Trouble {
  kind: Kind;
  recovery?: Recovery;
  upstream?: Upstream;
  /** What a write gave back although it does not fit. */
  upstream_result?: unknown;
  verdict?: Verdict;
}

export interface PartialBeside extends Common {
  errors: ItemFailure[];
  status: "partial";
  /** What it gave. */
  data?: unknown;
  degradation_reason?: never;
  error?: never;
  /** How many more items failed than are listed. */
  errors_left_out?: number;
  outcome?: Outcome;
  /** The answer was cut: there is more than this. */
  truncated?: true;
}

export interface PartialEnvelope extends Common {
  /** What it gave. */
  data: unknown;
  errors: ItemFailure[];
  status: "partial";
  degradation_reason?: never;
  error?: never;
  /** How many more items failed than are listed. */
  errors_left_out?: number;
  outcome?: Outcome;
  /** The answer was cut: there is more than this. */
  truncated?: true;
}

export interface Refusal extends Trouble {
  kind: RefusalKind;
  recovery?: RefusalRecovery;
  upstream_result?: never;
  verdict?: never;
}

export interface RefusalRecovery extends Recovery {
  /** A safe version of what was asked. */
  suggested_rewrite?: string;
  /** The scope that would unblock it. */
  widening_hint?: string;
}

export interface RefusedEnvelope extends Common {
  error: Refusal;
  status: "refused";
  data?: never;
  degradation_reason?: never;
  errors?: never;
  errors_left_out?: never;
  outcome?: "refused";
  truncated?: never;
}

export interface SuccessBeside extends Common {
  /** How it came to that. */
  outcome: "succeeded" | "succeeded_after_compensation";
  status: "success";
  /** What it gave. */
  data?: unknown;
  degradation_reason?: never;
  error?: never;
  errors?: never;
  errors_left_out?: never;
  truncated?: never;
}

export interface SuccessEnvelope extends Common {
  /** What it gave. */
  data: unknown;
  /** How it came to that. */
  outcome: "succeeded" | "succeeded_after_compensation";
  status: "success";
  degradation_reason?: never;
  error?: never;
  errors?: never;
  errors_left_out?: never;
  truncated?: never;
}

export interface ItemFailure extends Failure {
  /** Which item: its place or its name. */
  item: string;
}

export type Envelope =
  | SuccessEnvelope
  | PartialEnvelope
  | EmptyEnvelope
  | DegradedEnvelope
  | ErrorEnvelope
  | RefusedEnvelope;

export type EnvelopeBeside =
  | SuccessBeside
  | PartialBeside
  | EmptyEnvelope
  | DegradedEnvelope
  | ErrorEnvelope
  | RefusedEnvelope;
