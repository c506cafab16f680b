"""What Amends answers, in a LangGraph agent: an interceptor for the tools of `langchain-mcp-adapters`.

What the model can correct, and what is final, becomes the tool's message. What is out of order stops the graph. What waits for a
person interrupts it; resumed, the call is made again, and the gateway finds what became of it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_mcp_adapters.interceptors import MCPToolCallRequest, MCPToolCallResult
from langgraph.types import interrupt
from mcp.types import CallToolResult


class Unavailable(Exception):
    """The call could not be served, through no fault of the model. `envelope` says why, and when it is worth another try."""

    def __init__(self, envelope: dict[str, Any]) -> None:
        super().__init__(envelope["error"]["message"])
        self.envelope = envelope


def meanings(amends: str = "amends") -> dict[str, str]:
    """What each kind of failure means, as the binary says."""
    said = subprocess.run([amends, "schema", "codes"], check=True, capture_output=True, text=True).stdout
    codes = json.loads(said)
    return {entry["kind"]: entry["meaning"] for entry in [*codes["codes"], *codes["refusals"]]}


class Amends:
    """The interceptor: `MultiServerMCPClient(SERVERS, tool_interceptors=[Amends()])`."""

    def __init__(self, amends: str = "amends") -> None:
        self.meanings = meanings(amends)

    async def __call__(
        self, request: MCPToolCallRequest, handler: Callable[[MCPToolCallRequest], Awaitable[MCPToolCallResult]]
    ) -> MCPToolCallResult:
        while True:
            result = await handler(request)
            envelope = (result.meta or {}).get("amends/envelope") if isinstance(result, CallToolResult) else None
            if envelope is None or "error" not in envelope:
                return result
            error = envelope["error"]
            meaning = self.meanings.get(error["kind"], "permanent")
            doubt = error["certainty"] == "in_doubt"
            if meaning in ("approval", "input") or (doubt and error["who_must_act"] == "person"):
                interrupt({"tool": request.name, "args": request.args, "error": error})
            elif meaning in ("infrastructure", "cancelled") and not doubt:
                raise Unavailable(envelope)
            else:
                return result
