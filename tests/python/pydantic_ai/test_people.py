"""Calls that a person must say yes to: the run ends, and goes on with the answer, also after a restart."""

from __future__ import annotations

import json
from typing import Any

import pytest
from amends_pydantic_ai import AmendsToolset, by_conversation
from place import Place
from pydantic_ai import ModelMessagesTypeAdapter, ModelRetry
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from scripted import Scripted

CHARGE = ("charge_card", {"order": "ord_1", "amount": 5})
ASKS = '[tools.charge_card]\neffect = "write"\napproval = "finance"\n'
OWN = '[tools.charge_card]\neffect = "write"\napproval = "own"\n[queues.own]\nrequester = true\n'


def connect(place: Place, transport: str, config: str) -> AmendsToolset[None]:
    gateway = place.wrap(config=config) if transport == "stdio" else place.serve(config=config).mcp
    return AmendsToolset[None].connect(gateway, init_timeout=60)


def asked(output: str | DeferredToolRequests) -> DeferredToolRequests:
    assert isinstance(output, DeferredToolRequests) and len(output.approvals) == 1
    return output


def about(requests: DeferredToolRequests) -> dict[str, Any]:
    [call] = requests.approvals
    return dict(requests.metadata[call.tool_call_id]["amends"])


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_a_person_says_yes_and_the_call_runs_once(place: Place, transport: str) -> None:
    model = Scripted(CHARGE)
    agent = model.agent(connect(place, transport, ASKS))
    async with agent:
        first = await agent.run("charge it")
        requests = asked(first.output)
        [question] = place.queue()
        assert about(requests)["interaction"] == question["id"]
        approve = {call.tool_call_id: ToolApproved() for call in requests.approvals}
        # The yes of whoever called does not count on this queue.
        early = await agent.run(
            message_history=first.all_messages(), deferred_tool_results=requests.build_results(approvals=approve)
        )
        assert about(asked(early.output))["interaction"] == question["id"]
        assert place.requests("charge_card") == 0
        place.answer(question["id"], "approve")
        last = await agent.run(
            message_history=first.all_messages(), deferred_tool_results=requests.build_results(approvals=approve)
        )
    assert last.output == "done" and [part.outcome for part in model.heard] == ["success"]
    assert (place.requests("charge_card"), place.effects("charge_card")) == (1, 1)


async def test_a_person_says_no_and_the_model_hears_it(place: Place, transport: str) -> None:
    model = Scripted(CHARGE)
    agent = model.agent(connect(place, transport, ASKS))
    async with agent:
        first = await agent.run("charge it")
        requests = asked(first.output)
        place.answer(about(requests)["interaction"], "deny")
        results = requests.build_results(approve_all=True)
        last = await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
    assert last.output == "done" and [part.outcome for part in model.heard] == ["failed"]
    assert json.loads(str(model.heard[0].content))["error"]["kind"] == "approval_denied"
    assert place.requests("charge_card") == 0


async def test_the_user_of_the_run_says_yes_where_that_counts(place: Place, transport: str) -> None:
    model = Scripted(CHARGE)
    agent = model.agent(connect(place, transport, OWN))
    async with agent:
        first = await agent.run("charge it")
        results = asked(first.output).build_results(approve_all=True)
        last = await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
    assert last.output == "done" and [part.outcome for part in model.heard] == ["success"]
    assert (place.requests("charge_card"), place.effects("charge_card"), place.queue()) == (1, 1, [])


async def test_the_user_of_the_run_says_no_and_the_question_is_closed(place: Place, transport: str) -> None:
    model = Scripted(CHARGE)
    toolset = connect(place, transport, ASKS)
    agent = model.agent(toolset)
    async with agent:
        first = await agent.run("charge it")
        requests = asked(first.output)
        results = requests.build_results(approvals={requests.approvals[0].tool_call_id: ToolDenied("not today")})
        await toolset.deny(requests, results)
        assert place.queue() == []
        last = await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
    assert last.output == "done" and [part.outcome for part in model.heard] == ["denied"]
    assert place.requests("charge_card") == 0


@pytest.mark.parametrize("config", [ASKS, OWN], ids=["by_another", "by_the_user"])
async def test_everything_is_started_again_between_the_question_and_the_yes(place: Place, config: str) -> None:
    model = Scripted(CHARGE)
    gateway = place.serve(config=config)
    toolset = AmendsToolset[None].connect(gateway.mcp, key=by_conversation, init_timeout=60)
    first = await model.agent(toolset).run("charge it")
    requests = asked(first.output)
    stored = first.all_messages_json(), json.dumps(requests.metadata)
    gateway.kill()

    gateway = place.serve(config=config)
    if config == ASKS:
        place.answer(about(requests)["interaction"], "approve")
    messages, metadata = ModelMessagesTypeAdapter.validate_json(stored[0]), json.loads(stored[1])
    toolset = AmendsToolset[None].connect(gateway.mcp, key=by_conversation, init_timeout=60)
    results = DeferredToolResults(approvals={"call_0": True}, metadata=metadata)
    last = await model.agent(toolset).run(message_history=messages, deferred_tool_results=results)
    assert last.output == "done" and [part.outcome for part in model.heard] == ["success"]
    # And once more, as a program would that died before it stored that.
    await model.agent(toolset).run(message_history=messages, deferred_tool_results=results)
    assert (place.requests("charge_card"), place.effects("charge_card")) == (1, 1)


async def test_other_arguments_are_another_question(place: Place) -> None:
    model = Scripted(CHARGE)
    agent = model.agent(connect(place, "http", ASKS))
    async with agent:
        first = await agent.run("charge it")
        requests = asked(first.output)
        place.answer(about(requests)["interaction"], "approve")
        more = {requests.approvals[0].tool_call_id: ToolApproved(override_args={"order": "ord_1", "amount": 500})}
        last = await agent.run(
            message_history=first.all_messages(),
            deferred_tool_results=requests.build_results(approvals=more, metadata=requests.metadata),
        )
        assert about(asked(last.output))["interaction"] != about(requests)["interaction"]
    assert place.requests("charge_card") == 0


async def test_a_client_that_carries_nothing_waits_by_itself_and_then_the_run_is_told(place: Place) -> None:
    gateway = place.serve(config=f'{ASKS}[people]\nhold = "0s"\n')
    model = Scripted(CHARGE)
    agent = model.agent(AmendsToolset(MCPToolset[None](gateway.mcp, init_timeout=60)))
    first = await agent.run("charge it")
    asked(first.output)
    place.answer(place.queue()[0]["id"], "approve")
    results = asked(first.output).build_results(approve_all=True)
    last = await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
    assert last.output == "done"
    assert (place.requests("charge_card"), place.effects("charge_card")) == (1, 1)


async def test_nobody_answers_for_another(place: Place) -> None:
    tokens = {name: f"{name}-{'0123456789' * 3}" for name in ("ada", "bob")}
    files = {name: place.write(f"{name}.token", token) for name, token in tokens.items()}
    auth = "".join(f'[auth.tokens.{name}]\nsecret = {{ file = "{file}" }}\n' for name, file in files.items())
    gateway = place.serve(config=OWN + auth, token=tokens["ada"])
    model = Scripted(CHARGE)
    toolset = AmendsToolset[None].connect(gateway.mcp, auth=tokens["ada"], init_timeout=60)
    requests = asked((await model.agent(toolset).run("charge it")).output)
    question = about(requests)["interaction"]
    async with MCPToolset[None](gateway.mcp, auth=tokens["bob"], init_timeout=60) as other:
        for choice in ("approve", "deny"):
            meta = {"amends/hold": 0, "amends/answer": {"interaction": question, "choice": choice}}
            with pytest.raises(ModelRetry, match="awaiting_person"):
                await other.direct_call_tool(*CHARGE, metadata=meta)
    assert question in [entry["id"] for entry in place.queue()]
    assert place.requests("charge_card") == 0


@pytest.mark.parametrize("said", [7, {}, {"interaction": "int_1", "choice": "perhaps"}], ids=repr)
async def test_what_is_no_answer_is_refused(place: Place, said: object) -> None:
    async with MCPToolset[None](place.serve(config=OWN).mcp, init_timeout=60) as mcp:
        with pytest.raises(ModelRetry, match="amends/answer"):
            await mcp.direct_call_tool(*CHARGE, metadata={"amends/answer": said})
    assert (place.queue(), place.requests("charge_card")) == ([], 0)
