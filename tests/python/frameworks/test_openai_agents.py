"""The example for the OpenAI Agents SDK, with a model that says what is written down."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from amends_openai_agents import AmendsHttp, AmendsStdio, Stopped
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from place import AMENDS, Place

ASKS = '[tools.charge_card]\neffect = "write"\napproval = "finance"\n'
CHARGE = {"order": "ord_1", "amount": 5}

set_tracing_disabled(True)


class Scripted(Model):
    """Calls one tool after the other, whatever it hears, and then says `done`."""

    def __init__(self, *wishes: tuple[str, dict[str, Any]]) -> None:
        self.wishes = wishes
        self.heard: list[str] = []

    async def get_response(self, system_instructions: Any, input: Any, *more: Any, **and_more: Any) -> ModelResponse:
        items = input if isinstance(input, list) else []
        self.heard = [json.dumps(item["output"]) for item in items if item.get("type") == "function_call_output"]
        said = len(self.heard)
        if said < len(self.wishes):
            name, args = self.wishes[said]
            call = ResponseFunctionToolCall(
                type="function_call", call_id=f"call_{said}", name=name, arguments=json.dumps(args)
            )
            return ModelResponse(output=[call], usage=Usage(), response_id=None)
        text = ResponseOutputText(type="output_text", text="done", annotations=[])
        message = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *more: Any, **and_more: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def stdio(place: Place, *faults: str, **more: Any) -> AmendsStdio:
    return AmendsStdio(place.wrap(*faults, **more), client_session_timeout_seconds=60)


def http(place: Place, *faults: str, **more: Any) -> AmendsHttp:
    return AmendsHttp(place.serve(*faults, **more).mcp, amends=AMENDS, client_session_timeout_seconds=60)


@pytest.mark.parametrize("way", [stdio, http])
async def test_the_model_corrects_what_was_refused_and_hears_what_is_final(way: Any, place: Place) -> None:
    wrong, right, other = {"order": "ord_1", "amount": "five"}, CHARGE, {"order": "ord_2", "amount": 5}
    model = Scripted(*(("charge_card", args) for args in (wrong, right, other)))
    async with way(place, "charge_card@ord_2=forbidden") as server:
        result = await Runner.run(Agent(name="clerk", model=model, mcp_servers=[server]), "charge it")
    assert result.final_output == "done" and len(model.heard) == 3
    assert "amount" in model.heard[0] and "does not allow" in model.heard[2]
    assert place.effects("charge_card") == 1


@pytest.mark.parametrize("way", [stdio, http])
async def test_what_is_out_of_order_stops_the_run(way: Any, place: Place) -> None:
    model = Scripted(("get_order", {"order": "ord_1"}))
    async with way(place, "get_order=status_500,status_500,status_500") as server:
        with pytest.raises(Stopped) as stopped:
            await Runner.run(Agent(name="clerk", model=model, mcp_servers=[server]), "look")
    assert stopped.value.meaning == "infrastructure" and model.heard == []


@pytest.mark.parametrize("way", [stdio, http])
@pytest.mark.parametrize(("choice", "effects"), [("approve", 1), ("deny", 0)])
async def test_a_person_is_asked_and_the_next_run_finds_the_answer(
    way: Any, choice: str, effects: int, place: Place
) -> None:
    model = Scripted(("charge_card", CHARGE))
    async with way(place, config=ASKS) as server:
        agent = Agent(name="clerk", model=model, mcp_servers=[server])
        with pytest.raises(Stopped) as stopped:
            await Runner.run(agent, "charge it")
        assert stopped.value.meaning == "approval" and place.requests("charge_card") == 0
        place.answer(stopped.value.envelope["error"]["interaction"], choice)
        result = await Runner.run(agent, "charge it")
    assert result.final_output == "done" and len(model.heard) == 1
    assert place.effects("charge_card") == effects


async def test_a_doubt_waits_for_a_person(place: Place) -> None:
    model = Scripted(("charge_card", CHARGE))
    async with http(place, "charge_card=lose_response", timeout="1s") as server:
        agent = Agent(name="clerk", model=model, mcp_servers=[server])
        with pytest.raises(Stopped) as stopped:
            await Runner.run(agent, "charge it")
        assert stopped.value.meaning == "doubt"
        place.answer(stopped.value.envelope["error"]["interaction"], "happened")
        await Runner.run(agent, "charge it")
    assert (place.requests("charge_card"), place.effects("charge_card")) == (1, 1)
