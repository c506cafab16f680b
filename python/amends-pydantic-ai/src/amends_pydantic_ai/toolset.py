"""A toolset whose failures are signals."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from fastmcp.client import Client
from fastmcp.client.transports import ClientTransport, StdioTransport
from mcp import InputRequiredRoundsExceededError
from pydantic_ai.exceptions import (
    AgentRunError,
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    ToolFailed,
    UserError,
)
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.tools import AgentDepsT, DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from .carried import Carried, KeyOf, carry, current
from .errors import Unavailable
from .reading import No, data_of, envelope_in, envelope_of, is_no, protocol_errors
from .signals import signal_for
from .waiting import Waiting

_log = logging.getLogger(__name__)

ASKED_MAX = 1024
"""How many questions are remembered for programs that do not carry `requests.metadata`."""


@dataclass
class AmendsToolset(WrapperToolset[AgentDepsT]):
    """A toolset whose failures are signals: for the model, for the run, or for a person.

    It wraps an `MCPToolset` that leads to a gateway, or any other toolset. What is no envelope passes as it is, except an
    exception of a tool in Python, which becomes a failure that the model sees, as it would over MCP.
    """

    key: KeyOf | None = None
    """How calls are named. Without it the gateway knows a repeat by its arguments; see `by_conversation`."""

    _asked: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """The question that each call waits for, by the call's id."""

    def __post_init__(self) -> None:
        if isinstance(self.wrapped, MCPToolset) and self.wrapped.tool_error_behavior == "error":
            raise UserError("an `MCPToolset` with `tool_error_behavior='error'` drops the envelope; use `'retry'`")

    @classmethod
    def connect(
        cls, gateway: str | list[str] | ClientTransport | Client[Any], *, key: KeyOf | None = None, **options: Any
    ) -> Self:
        """The toolset of a gateway: by its address, or the command of an `amends wrap`. `options` are those of an
        `MCPToolset`.
        """
        client = StdioTransport(gateway[0], gateway[1:]) if isinstance(gateway, list) else gateway
        return cls(MCPToolset(client, process_tool_call=carry, **options), key)

    async def __aenter__(self) -> Self:
        """Opens the line to the gateway."""
        with self._reaching():
            return await super().__aenter__()

    async def __aexit__(self, *args: Any) -> bool | None:
        """Closes it."""
        with self._reaching():
            return await super().__aexit__(*args)

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """The tools of the wrapped toolset."""
        with self._reaching():
            return await super().get_tools(ctx)

    @contextmanager
    def _reaching(self) -> Generator[None]:
        """A line that breaks outside of a call is the same to a run as one that breaks in it."""
        try:
            yield
        except (AgentRunError, UserError):
            raise
        except Exception as error:
            if not isinstance(_origin(self.wrapped), MCPToolset):
                raise
            raise Unavailable(f"the gateway could not be reached: {error}") from error

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        """Calls the tool, and raises what its failure means."""
        key = None if self.key is None else self.key(ctx, name, tool_args)
        token = current.set(Carried(key, self._approved(ctx)))
        try:
            given = await self._given(name, tool_args, ctx, tool)
        finally:
            current.reset(token)
        if ctx.tool_call_id is not None:
            self._asked.pop(ctx.tool_call_id, None)
        if not isinstance(given, _Refused):
            return given
        if (signal := signal_for(given.no, {"tool": name, "args": tool_args, "key": key})) is None:
            ctx.cancel()
            # The run is cancelled here, and nothing below is reached.
            await asyncio.sleep(0)
            raise ToolFailed(given.no["error"]["message"]) from given.cause
        if isinstance(signal, ApprovalRequired) and ctx.tool_call_id and (asked := given.no["error"].get("interaction")):
            if len(self._asked) == ASKED_MAX:
                self._asked.pop(next(iter(self._asked)))
            self._asked[ctx.tool_call_id] = asked
        raise signal from given.cause

    async def _given(
        self, name: str, args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        try:
            given: Any = await self.wrapped.call_tool(name, args, ctx, tool)
        except (ModelRetry, ToolFailed) as error:
            if (envelope := envelope_in(error)) is not None:
                return _Refused(envelope, error) if is_no(envelope) else data_of(envelope)
            if protocol_errors(error):
                # The line broke, or nothing came in time. What became of the call is not known, so the model is not asked to
                # try again.
                raise Unavailable(f"the gateway did not answer `{name}`: {error.message}") from error
            raise
        except (AgentRunError, ApprovalRequired, CallDeferred, UserError):
            raise
        except InputRequiredRoundsExceededError as error:
            # Without `carry`, the client comes back for a person's answer by itself, and gives up some time.
            asked = {"kind": "awaiting_person", "message": "a person is asked", "tool": name, "args": args}
            raise ApprovalRequired({"amends": asked}) from error
        except Exception as error:
            if isinstance(_origin(tool.toolset), MCPToolset):
                raise Unavailable(f"the gateway could not be asked for `{name}`: {error}") from error
            _log.warning("tool %r raised", name, exc_info=error)
            raise ToolFailed(f"`{name}` failed, and it is not known whether it did anything: {error}") from error
        envelope = envelope_of(given)
        return _Refused(envelope, None) if envelope is not None and is_no(envelope) else data_of(given)

    def _approved(self, ctx: RunContext[AgentDepsT]) -> str | None:
        """The question that the run's own user answered with yes: as the program carried it, or as it is remembered."""
        if not ctx.tool_call_approved or ctx.tool_call_id is None:
            return None
        waiting = Waiting.of(ctx.tool_call_metadata)
        return waiting.interaction if waiting is not None else self._asked.get(ctx.tool_call_id)

    async def deny(self, requests: DeferredToolRequests, results: DeferredToolResults) -> None:
        """Tells the gateway of every approval that was denied. A run does not: it never calls what was denied.

        Nothing is sent for such a call, and its question is closed.
        """
        async with self._line() as mcp:
            for call in requests.approvals:
                said = results.approvals.get(call.tool_call_id)
                waiting = Waiting.of(requests.metadata.get(call.tool_call_id))
                if (said is False or isinstance(said, ToolDenied)) and waiting is not None:
                    await waiting.again(mcp, "deny")

    async def settled(self, requests: DeferredToolRequests) -> DeferredToolResults:
        """The results of the deferred calls that are settled by now. Each is repeated, which finds what became of it; those
        that still wait are left out.
        """
        results = DeferredToolResults()
        async with self._line() as mcp:
            for call in requests.calls:
                waiting = Waiting.of(requests.metadata.get(call.tool_call_id))
                if waiting is None:
                    continue
                given = await waiting.again(mcp)
                if not isinstance(given, (ApprovalRequired, CallDeferred)):
                    results.calls[call.tool_call_id] = given
        return results

    @asynccontextmanager
    async def _line(self) -> AsyncGenerator[MCPToolset[AgentDepsT]]:
        mcp = _origin(self.wrapped)
        if not isinstance(mcp, MCPToolset):
            raise UserError("only a toolset over MCP can be asked again outside of a run")
        async with mcp:
            yield mcp


@dataclass(frozen=True)
class _Refused:
    """What the gateway said no to, and what the toolset raised for it."""

    no: No
    cause: Exception | None


def _origin(toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
    """The toolset that a tool comes from, within whatever wraps it."""
    while isinstance(toolset, WrapperToolset):
        toolset = toolset.wrapped
    return toolset
