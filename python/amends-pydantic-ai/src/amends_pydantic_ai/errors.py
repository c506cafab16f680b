"""What stops a run."""

from __future__ import annotations

from pydantic_ai.exceptions import AgentRunError

from ._envelope import ErrorEnvelope, RefusedEnvelope


class Unavailable(AgentRunError):
    """The call could not be served, through no fault of the model, which never hears of it.

    The run can be started again from its messages: the gateway finds what it knows of the call, and sends nothing twice.
    """

    envelope: ErrorEnvelope | RefusedEnvelope | None
    """What the gateway said; nothing where it could not be reached."""

    def __init__(self, message: str, envelope: ErrorEnvelope | RefusedEnvelope | None = None) -> None:
        self.envelope = envelope
        super().__init__(message)

    def __reduce__(self) -> tuple[type[Unavailable], tuple[str, ErrorEnvelope | RefusedEnvelope | None]]:
        return type(self), (self.message, self.envelope)

    @property
    def retry_after(self) -> float | None:
        """After how many seconds it is worth another run, where that is known."""
        after = None if self.envelope is None else self.envelope["error"].get("retry_after_ms")
        return None if after is None else after / 1000
