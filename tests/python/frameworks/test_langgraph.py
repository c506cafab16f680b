"""The example for LangGraph, with a model that says what is written down."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from amends_langgraph import Amends, Unavailable
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from place import AMENDS, Place

ASKS = '[tools.charge_card]\neffect = "write"\napproval = "finance"\n[people]\nhold = "0s"\n'
CHARGE = {"order": "ord_1", "amount": 5}


class Scripted(BaseChatModel):
    """Calls one tool after the other, whatever it hears, and then says `done`."""

    wishes: list[tuple[str, dict[str, Any]]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *more: Any, **and_more: Any) -> ChatResult:
        said = sum(isinstance(message, AIMessage) for message in messages)
        message = AIMessage("done")
        if said < len(self.wishes):
            name, args = self.wishes[said]
            message = AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call_{said}"}])
        return ChatResult(generations=[ChatGeneration(message=message)])


async def agent(server: dict[str, Any], *wishes: tuple[str, dict[str, Any]]) -> Any:
    client = MultiServerMCPClient({"shop": server}, tool_interceptors=[Amends(AMENDS)])
    return create_agent(Scripted(wishes=list(wishes)), await client.get_tools(), checkpointer=InMemorySaver())


def stdio(place: Place, *faults: str, **more: Any) -> dict[str, Any]:
    command = place.wrap(*faults, **more)
    return {"transport": "stdio", "command": command[0], "args": command[1:]}


def http(place: Place, *faults: str, **more: Any) -> dict[str, Any]:
    return {"transport": "streamable_http", "url": place.serve(*faults, **more).mcp}


async def run(agent: Any, input: Any) -> tuple[list[ToolMessage], list[Any]]:
    config = {"configurable": {"thread_id": "1"}}
    state = await agent.ainvoke(input, config)
    told = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    return told, list(state.get("__interrupt__", []))


GO = {"messages": [{"role": "user", "content": "charge it"}]}


@pytest.mark.parametrize("way", [stdio, http])
async def test_the_model_corrects_what_was_refused_and_hears_what_is_final(way: Any, place: Place) -> None:
    wrong, right, other = {"order": "ord_1", "amount": "five"}, CHARGE, {"order": "ord_2", "amount": 5}
    wishes = [("charge_card", args) for args in (wrong, right, other)]
    told, _ = await run(await agent(way(place, "charge_card@ord_2=forbidden"), *wishes), GO)
    assert [message.status for message in told] == ["error", "success", "error"]
    assert "amount" in str(told[0].content)
    assert place.effects("charge_card") == 1


@pytest.mark.parametrize("way", [stdio, http])
async def test_what_is_out_of_order_stops_the_graph(way: Any, place: Place) -> None:
    graph = await agent(way(place, "get_order=status_500,status_500,status_500"), ("get_order", {"order": "ord_1"}))
    with pytest.raises(Unavailable) as stopped:
        await run(graph, GO)
    assert stopped.value.envelope["error"]["code"] == "Provider5xx"


@pytest.mark.parametrize("way", [stdio, http])
@pytest.mark.parametrize(("choice", "status", "effects"), [("approve", "success", 1), ("deny", "error", 0)])
async def test_a_person_is_asked_and_the_graph_goes_on(
    way: Any, choice: str, status: str, effects: int, place: Place
) -> None:
    graph = await agent(way(place, config=ASKS), ("charge_card", CHARGE))
    told, [interrupted] = await run(graph, GO)
    assert told == [] and interrupted.value["args"] == CHARGE
    _, again = await run(graph, Command(resume="look again"))
    assert len(again) == 1 and place.requests("charge_card") == 0
    place.answer(interrupted.value["error"]["interaction"], choice)
    # Whoever drives the call learns of the answer a moment later.
    for _ in range(300):
        told, _ = await run(graph, Command(resume="look again"))
        if told:
            break
        await asyncio.sleep(0.1)
    assert [message.status for message in told] == [status]
    assert place.effects("charge_card") == effects


async def test_a_doubt_waits_for_a_person(place: Place) -> None:
    graph = await agent(http(place, "charge_card=lose_response", timeout="1s"), ("charge_card", CHARGE))
    _, [interrupted] = await run(graph, GO)
    assert interrupted.value["error"]["certainty"] == "in_doubt"
    place.answer(interrupted.value["error"]["interaction"], "happened")
    told, _ = await run(graph, Command(resume="look again"))
    assert len(told) == 1
    assert (place.requests("charge_card"), place.effects("charge_card")) == (1, 1)
