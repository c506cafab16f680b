"""What each kind of failure and refusal means to whoever runs an agent, when nothing is in doubt.

Generated from the registry; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from ._envelope import Kind

Meaning: TypeAlias = Literal[
    # The model can correct it: nothing happened, and another call may work.
    "correct",
    # It is final. The model should hear it, and do something else.
    "permanent",
    # Something is away or out of order. The model cannot help; the same call may work later.
    "infrastructure",
    # Somebody stopped it.
    "cancelled",
    # Somebody has to give something, such as a credential.
    "input",
    # Somebody has to say yes.
    "approval",
    # It is not known whether it happened.
    "doubt",
]

MEANINGS: Final[Mapping[Kind, Meaning]] = {
    "shape_invalid": "correct",
    "contract_version_mismatch": "infrastructure",
    "config_schema_violation": "infrastructure",
    "network_timeout": "infrastructure",
    "provider_5xx": "infrastructure",
    "rate_limited": "infrastructure",
    "connection_lost": "infrastructure",
    "connect_refused": "infrastructure",
    "breaker_open": "infrastructure",
    "missing_streaming": "permanent",
    "missing_tool_calling": "permanent",
    "context_window_too_small": "permanent",
    "missing_capability": "permanent",
    "execution_timeout": "infrastructure",
    "resource_busy": "infrastructure",
    "input_invalid": "correct",
    "output_malformed": "permanent",
    "forbidden": "permanent",
    "not_found": "correct",
    "action_error": "permanent",
    "key_in_flight": "infrastructure",
    "key_reused": "permanent",
    "already_processed": "permanent",
    "evidence_stale": "correct",
    "manifest_drift": "infrastructure",
    "store_unavailable": "infrastructure",
    "resume_mismatch": "infrastructure",
    "lease_lost": "infrastructure",
    "session_cancelled": "cancelled",
    "turn_cancelled": "cancelled",
    "tool_cancelled": "cancelled",
    "lifecycle_failure": "infrastructure",
    "dependency_cycle": "infrastructure",
    "dependency_missing": "infrastructure",
    "invalid_transition": "correct",
    "unknown_action": "correct",
    "validation_failed": "correct",
    "action_timeout": "infrastructure",
    "unknown_name": "correct",
    "malformed_name": "correct",
    "invalid_argument": "correct",
    "missing_credential": "input",
    "pii_blocked": "correct",
    "policy_blocked": "permanent",
    "allowlist_violation": "permanent",
    "cost_cap_exceeded": "permanent",
    "schema_drift": "infrastructure",
    "index_not_ready": "infrastructure",
    "approval_denied": "permanent",
    "approval_expired": "permanent",
    "awaiting_person": "approval",
    "stale_state": "correct",
    "duplicate": "permanent",
    "in_flight": "infrastructure",
    "retry_later": "infrastructure",
    "too_large": "correct",
    "reversal_refused": "permanent",
    "internal_error": "infrastructure",
}
