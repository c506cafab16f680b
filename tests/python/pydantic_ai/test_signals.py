"""What each kind of failure becomes in a run, over both transports."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from amends_pydantic_ai import AmendsToolset, Unavailable, by_conversation
from place import Place, eventually
from pydantic_ai.exceptions import UserError
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.tools import DeferredToolRequests
from scripted import Scripted

CHARGE = ("charge_card", {"order": "ord_1", "amount": 5})
Connect = Callable[..., AmendsToolset[None]]


@pytest.fixture(params=["stdio", "http"])
def connect(request: pytest.FixtureRequest, place: Place) -> Connect:
    def over_stdio(*faults: str, **more: Any) -> AmendsToolset[None]:
        return AmendsToolset[None].connect(place.wrap(*faults, **more), init_timeout=60)

    def over_http(*faults: str, **more: Any) -> AmendsToolset[None]:
        return AmendsToolset[None].connect(place.serve(*faults, **more).mcp, init_timeout=60)

    return over_stdio if request.param == "stdio" else over_http


async def test_the_model_corrects_what_was_refused(connect: Connect, place: Place) -> None:
    model = Scripted(("charge_card", {"order": "ord_1", "amount": "five"}), CHARGE)
    result = await model.agent(connect()).run("charge it")
    assert result.output == "done"
    assert [part.outcome for part in model.heard] == ["retried", "success"]
    told = json.loads(str(model.heard[0].content))
    assert told["error"]["kind"] == "invalid_argument" and told["error"]["details"][0]["field"] == "amount"
    assert (place.requests("charge_card"), place.effects("charge_card")) == (1, 1)


async def test_what_is_final_is_told_and_costs_no_retry(connect: Connect, place: Place) -> None:
    model = Scripted(CHARGE)
    result = await model.agent(connect("charge_card=forbidden")).run("charge it")
    assert result.output == "done"
    assert [part.outcome for part in model.heard] == ["failed"]
    assert json.loads(str(model.heard[0].content))["error"]["code"] == "Forbidden"
    assert place.effects("charge_card") == 0


async def test_what_was_done_in_another_shape_is_told_as_done(connect: Connect, place: Place) -> None:
    model = Scripted(CHARGE)
    await model.agent(connect("charge_card=malformed")).run("charge it")
    assert [part.outcome for part in model.heard] == ["failed"]
    told = json.loads(str(model.heard[0].content))
    assert told["error"]["certainty"] == "processed" and "upstream_result" in told["error"]
    assert (place.requests("charge_card"), place.effects("charge_card")) == (1, 1)


async def test_what_is_out_of_order_stops_the_run_and_the_model_hears_nothing(connect: Connect, place: Place) -> None:
    model = Scripted(("get_order", {"order": "ord_1"}))
    with pytest.raises(Unavailable) as stopped:
        await model.agent(connect("get_order=status_500,status_500,status_500")).run("look")
    assert stopped.value.envelope is not None
    assert stopped.value.envelope["error"]["code"] == "Provider5xx"
    assert model.heard == []
    assert place.requests("get_order") == 3


async def test_a_time_to_come_back_is_for_the_program(place: Place) -> None:
    model = Scripted(("get_order", {"order": "ord_1"}))
    script = '[[fault]]\ntool = "get_order"\nattempts = ["rate_limited"]\nretry_after = 90\n'
    faults = place.write("faults.toml", script)
    toolset = AmendsToolset[None].connect([*place.wrap(), "--faults", faults], init_timeout=60)
    with pytest.raises(Unavailable) as stopped:
        await model.agent(toolset).run("look")
    assert stopped.value.retry_after is not None and stopped.value.retry_after > 60
    assert model.heard == []


async def test_a_doubt_waits_for_a_person_and_is_never_tried_again(connect: Connect, place: Place) -> None:
    toolset = connect("charge_card=lose_response", timeout="1s")
    model = Scripted(CHARGE)
    agent = model.agent(toolset)
    first = await agent.run("charge it")
    assert isinstance(first.output, DeferredToolRequests)
    [call] = first.output.calls
    about = first.output.metadata[call.tool_call_id]["amends"]
    assert about["certainty"] == "in_doubt"
    assert model.heard == []
    async with agent:
        assert (await toolset.settled(first.output)).calls == {}
        place.answer(about["interaction"], "happened")
        results = await toolset.settled(first.output)
        last = await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
    assert last.output == "done"
    assert [part.outcome for part in model.heard] == ["success"]
    assert "settled_by_person" in str(model.heard[0].content)
    assert (place.requests("charge_card"), place.effects("charge_card")) == (1, 1)


async def test_a_doubt_that_nobody_is_asked_about_is_told_and_a_repeat_finds_it(connect: Connect, place: Place) -> None:
    model = Scripted(CHARGE, CHARGE)
    toolset = connect("charge_card=lose_response", config="", timeout="1s")
    result = await model.agent(toolset).run("charge it")
    assert result.output == "done"
    assert [part.outcome for part in model.heard] == ["failed", "failed"]
    first, again = (json.loads(str(part.content)) for part in model.heard)
    assert first["error"]["certainty"] == "in_doubt" and again["replayed"] is True
    assert (place.requests("charge_card"), place.effects("charge_card")) == (1, 1)


async def test_a_gateway_that_is_gone_stops_the_run(place: Place) -> None:
    gateway = place.serve("get_order=late")
    model = Scripted(("get_order", {"order": "ord_1"}))
    agent = model.agent(AmendsToolset[None].connect(gateway.mcp, init_timeout=60))
    with pytest.raises(Unavailable):
        async with agent:
            gateway.kill()
            with pytest.raises(Unavailable) as stopped:
                await agent.run("look")
    assert stopped.value.envelope is None and model.heard == []
    with pytest.raises(Unavailable):
        await agent.run("look")


async def test_a_call_that_is_not_answered_in_time_is_not_for_the_model(place: Place) -> None:
    gateway = place.serve("charge_card=lose_response")
    toolset = AmendsToolset[None].connect(gateway.mcp, init_timeout=60, read_timeout=5)
    model = Scripted(CHARGE)
    with pytest.raises(Unavailable):
        await model.agent(toolset).run("charge it")
    assert model.heard == []
    eventually("the charge has arrived", lambda: place.requests("charge_card") == 1)


async def test_a_run_that_goes_on_from_its_messages_repeats_its_call_and_does_it_once(connect: Connect, place: Place) -> None:
    model = Scripted(CHARGE, CHARGE)
    toolset = connect()
    toolset.key = by_conversation
    agent = model.agent(toolset)
    async with agent:
        first = await agent.run("charge it twice")
        assert place.effects("charge_card") == 2
        # The program dies before it has stored the first result, and goes on from what it has.
        stored = first.all_messages()[:2]
        again = await agent.run(message_history=stored)
    assert again.output == "done"
    assert [part.outcome for part in model.heard] == ["success", "success"]
    assert (place.requests("charge_card"), place.effects("charge_card")) == (2, 2)


def test_a_toolset_that_drops_envelopes_is_refused() -> None:
    with pytest.raises(UserError, match="drops the envelope"):
        AmendsToolset(MCPToolset("http://127.0.0.1:9/mcp", tool_error_behavior="error"))
