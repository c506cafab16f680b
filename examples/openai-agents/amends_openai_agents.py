"""What Amends answers, in an agent of the OpenAI Agents SDK: its MCP servers, with one method of ours.

What the model can correct, and what is final, is the tool's output. Anything else stops the run; started again, its equal call finds
what became of the first.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

from agents.exceptions import UserError
from agents.mcp import MCPServer, MCPServerStdio, MCPServerStreamableHttp
from mcp.types import CallToolResult


class Stopped(UserError):
    """The run stops here. The SDK hands this exception on as it is, and any other inside one of its own."""

    def __init__(self, envelope: dict[str, Any], meaning: str) -> None:
        super().__init__(envelope["error"]["message"])
        self.envelope = envelope
        self.meaning = meaning


def meanings(amends: str = "amends") -> dict[str, str]:
    """What each kind of failure means, as the binary says."""
    said = subprocess.run([amends, "schema", "codes"], check=True, capture_output=True, text=True).stdout
    codes = json.loads(said)
    return {entry["kind"]: entry["meaning"] for entry in [*codes["codes"], *codes["refusals"]]}


def checked(result: CallToolResult, meanings: dict[str, str]) -> CallToolResult:
    """A result that the model may see; else it stops the run."""
    envelope = (result.meta or {}).get("amends/envelope", {})
    if "error" not in envelope:
        return result
    error = envelope["error"]
    meaning = meanings.get(error["kind"], "permanent")
    if error["certainty"] == "in_doubt":
        meaning = "doubt" if error["who_must_act"] == "person" else "permanent"
    if meaning in ("correct", "permanent"):
        return result
    raise Stopped(envelope, meaning)


class Amends(MCPServer):
    """What is the same for both ways to a gateway."""

    meanings: dict[str, str] = {}

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        # A person's answer is not waited for: the run is told at once.
        meta = {"amends/hold": 0} | (meta or {})
        result = await super().call_tool(tool_name, arguments, meta)  # type: ignore[safe-super]
        return checked(result, self.meanings)


class AmendsStdio(Amends, MCPServerStdio):
    """An `amends wrap` that the SDK starts."""

    def __init__(self, command: list[str], **options: Any) -> None:
        # Without this, the model would be told of what stops the run.
        options |= {"failure_error_function": None}
        super().__init__({"command": command[0], "args": command[1:]}, **options)
        self.meanings = meanings(command[0])


class AmendsHttp(Amends, MCPServerStreamableHttp):
    """A gateway that runs; `amends` is a binary of its version."""

    def __init__(self, url: str, *, amends: str = "amends", **options: Any) -> None:
        options |= {"failure_error_function": None}
        super().__init__({"url": url}, **options)
        self.meanings = meanings(amends)
