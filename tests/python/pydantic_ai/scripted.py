"""A model that says what a test wrote down, and remembers what it was told."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.toolsets import AbstractToolset

Wish = tuple[str, dict[str, Any]]


class Scripted:
    """Calls one tool after the other, whatever it hears, and then says `done`."""

    def __init__(self, *wishes: Wish) -> None:
        self.wishes = wishes
        self.heard: list[ToolReturnPart] = []

    def agent(self, toolset: AbstractToolset[None]) -> Agent[None, str | DeferredToolRequests]:
        model = FunctionModel(self._say)
        return Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests], retries=5)

    def _say(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        self.heard = [part for part in parts if isinstance(part, ToolReturnPart)]
        said = sum(isinstance(part, ToolCallPart) for part in parts)
        if said == len(self.wishes):
            return ModelResponse(parts=[TextPart("done")])
        name, args = self.wishes[said]
        return ModelResponse(parts=[ToolCallPart(name, args, tool_call_id=f"call_{said}")])
