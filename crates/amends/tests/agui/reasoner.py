"""An agent of PydanticAI behind fasta2a, with the tools of a gateway, and a model that does what it is told.

Usage: reasoner.py BOOK MCP_URL

A message names tools and what they are given, one to a line: `charge_card {"order": "ord_1", "amount": 5}`. They are called one after the other; then the
model says what it was told of the last one. What the model is told is a line in BOOK.
"""

import json
import pathlib
import socket
import sys

import uvicorn
from amends_pydantic_ai import AmendsToolset
from fasta2a.pydantic_ai import agent_to_a2a
from fasta2a.schema import Skill
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel

BOOK, MCP = pathlib.Path(sys.argv[1]), sys.argv[2]


def note(what: str) -> None:
    with BOOK.open("a") as book:
        book.write(what + "\n")


def say(messages, _info) -> ModelResponse:
    parts = [part for message in messages for part in message.parts]
    prompt = [part.content for part in parts if isinstance(part, UserPromptPart)][-1]
    wishes = [line.split(" ", 1) for line in str(prompt).splitlines()]
    called = [part for part in parts if isinstance(part, ToolCallPart)]
    told = [part for part in parts if isinstance(part, ToolReturnPart)]
    if told:
        note(f"is told {told[-1].outcome}")
    if len(called) < len(wishes):
        name, args = wishes[len(called)]
        note(f"calls {name}")
        return ModelResponse(parts=[ToolCallPart(name, json.loads(args), tool_call_id=f"call_{len(called)}")])
    last = told[-1]
    return ModelResponse(parts=[TextPart(f"{last.outcome}: {last.model_response_str()}")])


def main() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    agent = Agent(FunctionModel(say), toolsets=[AmendsToolset.connect(MCP, init_timeout=60)], retries=3)
    skill = Skill(
        id="reason", name="Reason", description="calls tools", tags=["shop"], examples=[], input_modes=["text/plain"], output_modes=["text/plain"]
    )
    app = agent_to_a2a(agent, name="reasoner", url=url, skills=[skill])
    print(f"listens on {url}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


main()
