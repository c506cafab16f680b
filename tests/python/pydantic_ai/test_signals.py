"""What each kind of failure becomes, over both transports."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from amends_pydantic_ai import AmendsToolset
from place import Place
from pydantic_ai.toolsets import AbstractToolset
from scripted import Scripted

Connect = Callable[..., AbstractToolset[None]]


@pytest.fixture(params=["stdio", "http"])
def connect(request: pytest.FixtureRequest, place: Place) -> Connect:
    def over_stdio(*faults: str, **more: Any) -> AbstractToolset[None]:
        return AmendsToolset[None].connect(place.wrap(*faults, **more))

    def over_http(*faults: str, **more: Any) -> AbstractToolset[None]:
        return AmendsToolset[None].connect(place.serve(*faults, **more).mcp)

    return over_stdio if request.param == "stdio" else over_http


async def test_the_model_corrects_what_was_refused(connect: Connect, place: Place) -> None:
    model = Scripted(("charge_card", {"order": "ord_1", "amount": "five"}), ("charge_card", {"order": "ord_1", "amount": 5}))
    result = await model.agent(connect()).run("charge it")
    assert result.output == "done"
    assert [part.outcome for part in model.heard] == ["retried", "success"]
    told = json.loads(str(model.heard[0].content))
    assert told["error"]["kind"] == "invalid_argument" and told["error"]["details"][0]["field"] == "amount"
    assert (place.requests("charge_card"), place.effects("charge_card")) == (1, 1)
