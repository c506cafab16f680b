"""Tools in Python fail as tools over MCP do, and every code is what the page of translations says."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
from amends_pydantic_ai import AmendsToolset, Unavailable, by_conversation, carried
from place import AMENDS, Place
from pydantic_ai.exceptions import RunCancelled
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.toolsets import FunctionToolset
from scripted import Scripted

ROOT = Path(__file__).parents[3]
CODES: dict[str, list[dict[str, Any]]] = json.loads(
    subprocess.run([AMENDS, "schema", "codes"], check=True, capture_output=True, text=True).stdout
)
ENTRIES = [*CODES["codes"], *CODES["refusals"]]


def no(entry: dict[str, Any], certainty: str, who: str | None = None) -> dict[str, Any]:
    """An envelope of that code or refusal."""
    by_code = {code["code"]: code for code in CODES["codes"]}
    error = {
        "kind": entry["kind"],
        "code": entry["code"],
        "class": by_code[entry["code"]]["class"],
        "message": "no",
        "requested": "tool",
        "certainty": certainty,
        "retryable": False,
        "safe_to_repeat": False,
        "who_must_act": who or entry["who_must_act"],
    }
    return {"status": "refused" if "class" not in entry else "error", "error": error, "charter_version": "1.0"}


async def run_with(given: object) -> tuple[str, Scripted]:
    """What comes of a run whose one tool gives that."""
    functions = FunctionToolset[None]()

    @functions.tool_plain
    async def tool() -> object:
        return given

    model = Scripted(("tool", {}))
    try:
        result = await model.agent(AmendsToolset(functions)).run("go")
    except Unavailable:
        return "Unavailable, an AgentRunError", model
    except RunCancelled:
        return "RunCancelled", model
    if isinstance(result.output, DeferredToolRequests):
        return "ApprovalRequired" if result.output.approvals else "CallDeferred", model
    return {"retried": "ModelRetry", "failed": "ToolFailed"}.get(model.heard[0].outcome, "success"), model


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry['kind']}-{'code' if 'class' in entry else 'refusal'}")
async def test_every_code_is_what_the_page_says(entry: dict[str, Any]) -> None:
    page = (ROOT / "docs/translation.md").read_text()
    first = rf"\[{entry['code']}\]\([^)]*\)" if "class" in entry else f"`{entry['kind']}`"
    [row] = re.findall(rf"^\| {first} \| .*$", page, re.MULTILINE)
    says = row.split("|")[-2].strip()
    became, model = await run_with(no(entry, entry.get("implies", "not_processed")))
    assert became == says
    assert says in ("ModelRetry", "ToolFailed") or model.heard == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry['kind']}-{'code' if 'class' in entry else 'refusal'}")
async def test_a_doubt_is_a_doubt_whatever_its_code(entry: dict[str, Any]) -> None:
    assert (await run_with(no(entry, "in_doubt", "person")))[0] == "CallDeferred"
    for who in ("agent", "operator", "nobody"):
        assert (await run_with(no(entry, "in_doubt", who)))[0] == "ToolFailed"
    if (await run_with(no(entry, "processed")))[0] == "ModelRetry":
        pytest.fail("what was done is not to be tried again")


async def test_a_kind_of_a_later_gateway_is_judged_by_its_fields() -> None:
    later = no(ENTRIES[0], "not_processed")
    later["error"]["kind"] = "invented_later"
    assert (await run_with(later))[0] == "ToolFailed"
    later["error"]["retryable"] = True
    assert (await run_with(later))[0].startswith("Unavailable")


@pytest.mark.parametrize(
    "given",
    [
        {"status": "error"},
        {"status": "error", "charter_version": "1.0"},
        {"status": "error", "charter_version": "1.0", "error": "no"},
        {"status": "refused", "charter_version": "1.0", "error": {"kind": "x", "certainty": "maybe"}},
        {"status": "fine", "charter_version": "1.0"},
        {"status": ["error"], "charter_version": {}},
        [1, {"a": None}],
        "{",
    ],
    ids=repr,
)
async def test_what_only_looks_like_an_envelope_passes_as_it_is(given: object) -> None:
    became, model = await run_with(given)
    assert became == "success" and model.heard[0].content == given


async def test_the_data_of_a_success_is_given_and_a_caveat_keeps_its_envelope() -> None:
    done = {"status": "success", "outcome": "succeeded", "data": {"id": 1}, "charter_version": "1.0"}
    assert (await run_with(done))[1].heard[0].content == {"id": 1}
    caveat = {"status": "degraded", "degradation_reason": "settled_by_person", "charter_version": "1.0"}
    assert (await run_with(caveat))[1].heard[0].content == caveat


async def test_an_exception_of_a_tool_in_python_is_what_it_would_be_over_mcp(place: Place) -> None:
    functions = FunctionToolset[None]()

    @functions.tool_plain
    def get_order(order: str) -> str:
        raise ValueError("the shelf is empty")

    wish = ("get_order", {"order": "ord_1"})
    direct, over_mcp = Scripted(wish), Scripted(wish)
    await direct.agent(AmendsToolset(functions)).run("look")
    gateway = place.wrap("get_order=plain_error", config="")
    await over_mcp.agent(AmendsToolset[None].connect(gateway, init_timeout=60)).run("look")
    assert [part.outcome for part in direct.heard] == [part.outcome for part in over_mcp.heard] == ["failed"]


async def test_a_tool_in_python_that_calls_the_gateway_has_the_same_signals(place: Place) -> None:
    gateway = place.serve("charge_card@ord_2=forbidden", "send_email=lose_response")
    functions = FunctionToolset[None]()

    @functions.tool_plain
    async def call(tool: str, body: dict[str, Any]) -> object:
        async with httpx2.AsyncClient(timeout=60) as client:
            url = f"http://{gateway.address}/call/{tool}"
            return (await client.post(url, json=body, headers=carried().headers())).json()

    charges = [{"order": f"ord_{n}", "amount": amount} for n, amount in [(1, "five"), (1, 5), (2, 5)]]
    wishes = [("call", {"tool": "charge_card", "body": body}) for body in charges]
    model = Scripted(*wishes, ("call", {"tool": "send_email", "body": {"to": "ada@shop.example", "subject": "hello"}}))
    agent = model.agent(AmendsToolset(functions, key=by_conversation))
    result = await agent.run("charge them")
    assert [part.outcome for part in model.heard] == ["retried", "success", "failed"]
    assert isinstance(result.output, DeferredToolRequests) and len(result.output.calls) == 1
    # Once more from before the second call was answered: it is found, and so is the doubt.
    again = await agent.run(message_history=result.all_messages()[:4])
    assert isinstance(again.output, DeferredToolRequests)
    assert (place.effects("charge_card", "ord_1"), place.effects("send_email")) == (1, 1)
