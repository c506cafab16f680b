"""What a call carries to the gateway, beside its arguments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic_ai.mcp import CallToolFunc, ToolResult
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.tools import RunContext
from pydantic_core import to_jsonable_python

KeyOf: TypeAlias = Callable[[RunContext[Any], str, dict[str, Any]], str | None]
"""The key of a call, from its run, its tool and its arguments; nothing where it has none."""


@dataclass(frozen=True)
class Carried:
    """What the call that runs now carries."""

    key: str | None = None
    """Its own name: a call with the same one is the same call, and is done once."""

    approves: str | None = None
    """The question that whoever called answers with yes."""

    def meta(self) -> dict[str, Any]:
        """It as the `_meta` of an MCP request. Where a person is asked, the run is told at once instead of kept waiting."""
        meta: dict[str, Any] = {"amends/hold": 0}
        if self.key is not None:
            meta["amends/key"] = self.key
        if self.approves is not None:
            meta["amends/answer"] = {"interaction": self.approves, "choice": "approve"}
        return meta

    def headers(self) -> dict[str, str]:
        """It as headers of a request to `POST /call/{tool}`, for a tool that calls the gateway by itself."""
        return {} if self.key is None else {"Idempotency-Key": self.key}


current: ContextVar[Carried] = ContextVar("amends_carried")


def carried() -> Carried:
    """What the call that runs now carries; nothing outside of one."""
    return current.get(Carried())


async def carry(ctx: RunContext[Any], call_tool: CallToolFunc, name: str, args: dict[str, Any]) -> ToolResult:
    """The `process_tool_call` of an `MCPToolset` within an `AmendsToolset`."""
    return await call_tool(name, args, metadata=carried().meta())


def by_conversation(ctx: RunContext[Any], name: str, args: dict[str, Any]) -> str | None:
    """A key that stays when a run goes on from its stored messages: of the conversation, the tool, the arguments, and how
    many equal calls succeeded before. A second equal call is another one only after the first has succeeded.

    Another conversation has other keys, so an equal call in it is another call, even where the first is in doubt.
    """
    if ctx.conversation_id is None:
        return None
    told = [ctx.conversation_id, name, to_jsonable_python(args), _succeeded(ctx)]
    text = json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return f"pydantic-ai:{hashlib.sha256(text.encode()).hexdigest()}"


def _succeeded(ctx: RunContext[Any]) -> int:
    """How many calls of the conversation that are equal to this one, as the model wrote them, succeeded."""
    parts = [part for message in ctx.messages for part in message.parts]
    calls = {part.tool_call_id: part for part in parts if isinstance(part, ToolCallPart)}
    this = calls.pop(ctx.tool_call_id or "", None)
    if this is None:
        return 0
    wish = (this.tool_name, this.args_as_dict())
    equal = {id for id, call in calls.items() if (call.tool_name, call.args_as_dict()) == wish}
    returns = [part for part in parts if isinstance(part, ToolReturnPart) and part.outcome == "success"]
    return len(equal & {part.tool_call_id for part in returns})
