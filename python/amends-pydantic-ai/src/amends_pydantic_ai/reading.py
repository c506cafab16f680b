"""Finds the envelope in what a toolset gave or raised. Its fields tell, never its sentences."""

from __future__ import annotations

import json
from typing import Any, TypeAlias, cast, get_args

from typing_extensions import TypeIs

from ._envelope import Certainty, Envelope, ErrorEnvelope, RefusedEnvelope, Status

No: TypeAlias = ErrorEnvelope | RefusedEnvelope
"""An envelope of something that was refused or went wrong."""

_STATUSES: frozenset[str] = frozenset(get_args(Status))
_CERTAINTIES: frozenset[str] = frozenset(get_args(Certainty))
_TEXTS = ("kind", "class", "code", "message", "certainty", "who_must_act")


def envelope_of(value: object) -> Envelope | None:
    """The envelope that a value is, or that is the only one in a list of parts; nothing where it is something else."""
    if isinstance(value, list):
        found = [envelope for part in cast(list[object], value) if (envelope := envelope_of(part)) is not None]
        return found[0] if len(found) == 1 else None
    if not isinstance(value, dict):
        return None
    fields = cast(dict[str, Any], value)
    status = fields.get("status")
    if not isinstance(status, str) or status not in _STATUSES or not isinstance(fields.get("charter_version"), str):
        return None
    if status in ("error", "refused") and not _is_trouble(fields.get("error")):
        return None
    return cast(Envelope, fields)


def is_no(envelope: Envelope) -> TypeIs[No]:
    """Whether it says that something was refused or went wrong."""
    return envelope["status"] == "error" or envelope["status"] == "refused"


def envelope_in(error: BaseException) -> Envelope | None:
    """The envelope in an exception: its message as JSON, or the data of the protocol's error behind it.

    It need not be a No: what was done and has nothing to give is marked as an error by a tool that declares its output.
    """
    candidates = [_parsed(getattr(error, "message", None)), *(cause.data for cause in protocol_errors(error))]
    return next((found for candidate in candidates if (found := envelope_of(candidate)) is not None), None)


def data_of(value: Any) -> Any:
    """What a tool gave, out of the envelope of a success; what has a caveat keeps its envelope."""
    envelope = envelope_of(value)
    return envelope["data"] if envelope is not None and envelope["status"] == "success" else value


def protocol_errors(error: BaseException) -> list[Any]:
    """The errors of the protocol itself that led to an exception, out of the groups they may be in."""
    cause = error.__cause__
    causes: list[BaseException] = [] if cause is None else [cause]
    found: list[Any] = []
    while causes:
        cause = causes.pop()
        if isinstance(cause, BaseExceptionGroup):
            causes.extend(cast("BaseExceptionGroup[BaseException]", cause).exceptions)
        elif isinstance(getattr(cause, "code", None), int) and hasattr(cause, "data"):
            found.append(cause)
    return found


def _is_trouble(error: object) -> bool:
    if not isinstance(error, dict):
        return False
    fields = cast(dict[str, Any], error)
    return all(isinstance(fields.get(name), str) for name in _TEXTS) and fields["certainty"] in _CERTAINTIES


def _parsed(text: object) -> object:
    if not isinstance(text, str):
        return None
    try:
        return cast(object, json.loads(text))
    except ValueError:
        return None
