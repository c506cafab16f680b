"""An envelope into what PydanticAI raises for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed

from ._registry import MEANINGS, Meaning
from .errors import Unavailable
from .reading import No

NOTHING_HAPPENED = ("not_sent", "not_processed")


def meaning_of(no: No) -> Meaning:
    """What a No means to an agent. What is known of the effect outranks the kind: a doubt stays a doubt."""
    error = no["error"]
    if error["certainty"] == "in_doubt":
        return "doubt"
    # A kind of a later gateway is not in the table; of it, only what its own fields say is known.
    unknown: Meaning = "infrastructure" if error.get("retryable") is True else "permanent"
    meaning = MEANINGS.get(error["kind"], unknown)
    if meaning == "correct" and error["certainty"] not in NOTHING_HAPPENED:
        return "permanent"
    return meaning


def signal_for(no: No, carries: Mapping[str, Any] | None = None) -> Exception | None:
    """What to raise for a No; nothing where the run is to be cancelled. What waits for a person `carries` that along."""
    error = no["error"]
    about = {"amends": _about(no) | dict(carries or {})}
    match meaning_of(no):
        case "correct":
            return ModelRetry(told(no))
        case "permanent":
            return ToolFailed(told(no))
        case "infrastructure":
            return Unavailable(error["message"], no)
        case "approval":
            return ApprovalRequired(about)
        case "input":
            return CallDeferred(about)
        case "doubt" if error["who_must_act"] == "person":
            return CallDeferred(about)
        case "doubt":
            return ToolFailed(told(no))
        case "cancelled":
            return None


def told(no: No) -> str:
    """What the model reads: the envelope, without the history of its attempts."""
    shown = {name: value for name, value in no.items() if name != "attempts"}
    return json.dumps(shown, ensure_ascii=False)


def _about(no: No) -> dict[str, Any]:
    """What a person, or the program that asks one, has to know of a call that waits."""
    error = no["error"]
    about: dict[str, Any] = {"kind": error["kind"], "message": error["message"], "certainty": error["certainty"]}
    if "interaction" in error:
        about["interaction"] = error["interaction"]
    if "recovery" in error and "not_before" in error["recovery"]:
        about["not_before"] = error["recovery"]["not_before"]
    return about
