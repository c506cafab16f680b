"""A call that waits for a person, as a run's output tells of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.mcp import MCPToolset

from .carried import Carried
from .errors import Unavailable
from .reading import data_of, envelope_in, is_no, protocol_errors
from .signals import signal_for


@dataclass(frozen=True)
class Waiting:
    """A call that waits: what it is, and the question that it waits for."""

    tool: str
    args: dict[str, Any]
    key: str | None
    interaction: str | None

    @classmethod
    def of(cls, metadata: object) -> Self | None:
        """Reads it from the metadata of a deferred call; nothing where the gateway has no part in that."""
        about = cast(dict[str, Any], metadata).get("amends") if isinstance(metadata, dict) else None
        if not isinstance(about, dict):
            return None
        fields = cast(dict[str, Any], about)
        return cls(fields["tool"], fields["args"], fields.get("key"), fields.get("interaction"))

    async def again(self, mcp: MCPToolset[Any], choice: Literal["deny"] | None = None) -> Any:
        """Repeats the call, with an answer to its question or without. What a result of a deferred call can be is given and
        not raised.
        """
        meta = Carried(self.key).meta()
        if choice is not None and self.interaction is not None:
            meta["amends/answer"] = {"interaction": self.interaction, "choice": choice}
        try:
            return await mcp.direct_call_tool(self.tool, self.args, metadata=meta)
        except (ModelRetry, ToolFailed) as error:
            envelope = envelope_in(error)
            if envelope is None and protocol_errors(error):
                raise Unavailable(f"the gateway did not answer `{self.tool}`: {error.message}") from error
            if envelope is not None and not is_no(envelope):
                return data_of(envelope)
            carries = {"tool": self.tool, "args": self.args, "key": self.key}
            match error if envelope is None else signal_for(envelope, carries):
                case None:
                    return ToolFailed(error.message)
                case (ModelRetry() | ToolFailed() | ApprovalRequired() | CallDeferred()) as signal:
                    return signal
                case signal:
                    raise signal from error
