"""An agent of the A2A SDK whose one skill calls a tool over MCP, with the MCP SDK's own client.

Usage: clerk.py BOOK MCP_URL [PORT] [--patience SECONDS]

A message has a data part: `{"tool": "charge_card", "args": {...}}`. What the tool says becomes the task: its data and its texts, failed or not. What
the tool's server asks of its user becomes `input-required`, and what is answered goes back to it. What it does itself, for tests: `{"do": "fail"}`,
`"reject"`, `"raise"`, `"ask"`. Every tool it calls and everything it hears is a line in BOOK.
"""

import argparse
import asyncio
import json
import pathlib
import socket

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult, Implementation
from starlette.applications import Starlette

FORM = {
    "type": "object",
    "properties": {
        "seat": {"type": "string"},
        "bags": {"type": "integer", "minimum": 0},
        "meal": {"type": "string", "enum": ["none", "soup"]},
    },
    "required": ["seat", "bags"],
}


def data(value) -> pb.Part:
    return pb.Part(data=ParseDict(value, Value()))


def told(message: pb.Message) -> dict:
    """The data of a message: numbers that are whole are whole again, which the SDK's own values do not know."""

    def whole(value):
        if isinstance(value, dict):
            return {name: whole(member) for name, member in value.items()}
        if isinstance(value, list):
            return [whole(member) for member in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    for part in message.parts:
        if part.HasField("data"):
            found = whole(MessageToDict(part.data))
            return found if isinstance(found, dict) else {}
    return {}


class Work:
    """One call of a tool, which outlives the messages of its task."""

    def __init__(self) -> None:
        self.calling: asyncio.Task | None = None
        # What the tool's server asks, and what was answered.
        self.asked: asyncio.Queue = asyncio.Queue()
        self.answer: asyncio.Future | None = None

    async def elicit(self, _context, params) -> ElicitResult:
        self.answer = asyncio.get_running_loop().create_future()
        await self.asked.put(params.model_dump(mode="json", by_alias=True, exclude_none=True))
        return await self.answer


class Clerk(AgentExecutor):
    def __init__(self, book: pathlib.Path, mcp: str, patience: float) -> None:
        self.book, self.mcp, self.patience = book, mcp, patience
        self.works: dict[str, Work] = {}

    def note(self, what: str) -> None:
        with self.book.open("a") as book:
            book.write(what + "\n")

    async def execute(self, context, event_queue) -> None:
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task:
            await self.answered(context, updater)
            return
        task = pb.Task(id=context.task_id, context_id=context.context_id)
        task.status.state = pb.TaskState.TASK_STATE_SUBMITTED
        await event_queue.enqueue_event(task)
        wish = told(context.message)
        say = lambda text, *more: updater.new_agent_message([pb.Part(text=text), *more])
        match wish.get("do"):
            case "fail":
                await updater.failed(say("there is no seat"))
            case "reject":
                await updater.reject(say("not today"))
            case "raise":
                raise RuntimeError("broken")
            case "ask":
                self.note("asked")
                await updater.requires_input(say("which seat?", data({"responseSchema": FORM})))
            case _:
                work = self.works[context.task_id] = Work()
                work.calling = asyncio.create_task(self.call(work, wish["tool"], wish.get("args", {})))
                await updater.start_work()
                await self.follow(context.task_id, work, updater)

    async def call(self, work: Work, tool: str, args: dict):
        self.note(f"calls {tool}")
        info = Implementation(name="clerk", version="1.0.0")
        target = streamable_http_client(self.mcp)
        async with Client(target, client_info=info, elicitation_callback=work.elicit) as client:
            return await client.call_tool(tool, args, read_timeout_seconds=self.patience)

    async def follow(self, task: str, work: Work, updater: TaskUpdater) -> None:
        """Until the tool has answered, or its server asks something."""
        asked = asyncio.create_task(work.asked.get())
        await asyncio.wait({asked, work.calling}, return_when=asyncio.FIRST_COMPLETED)
        if asked.done():
            params = asked.result()
            self.note("is asked")
            question = pb.Part(text=params.get("message", "an answer is needed"))
            form = data({"responseSchema": params.get("requestedSchema", {"type": "object"})})
            await updater.requires_input(updater.new_agent_message([question, form]))
            return
        asked.cancel()
        self.works.pop(task, None)
        try:
            result = work.calling.result()
        except asyncio.CancelledError:
            return
        except BaseException as error:
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            self.note(f"hears {type(error).__name__}")
            parts = [pb.Part(text=f"its tool does not answer: {error}")]
            # What the tool's server says with its error is said on.
            if isinstance(getattr(error, "data", None), dict):
                parts.append(data(error.data))
            await updater.failed(updater.new_agent_message(parts))
            return
        shown = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.note(f"hears {'an error' if shown.get('isError') else 'an answer'}")
        parts = [pb.Part(text=block["text"]) for block in shown.get("content", []) if block.get("type") == "text"]
        if "structuredContent" in shown:
            parts.append(data(shown["structuredContent"]))
        if shown.get("isError"):
            await updater.failed(updater.new_agent_message(parts))
        else:
            await updater.add_artifact(parts)
            await updater.complete()

    async def answered(self, context, updater: TaskUpdater) -> None:
        content = told(context.message)
        self.note(f"is told {json.dumps(content, sort_keys=True)}")
        work = self.works.get(context.task_id)
        if work is None:
            if "wait" in content:
                await updater.start_work()
                self.note("works")
                await asyncio.sleep(content["wait"])
                self.note("worked")
            await updater.add_artifact([data({"booked": content})])
            await updater.complete()
            return
        work.answer.set_result(ElicitResult(action="accept", content=content))
        await self.follow(context.task_id, work, updater)

    async def cancel(self, context, event_queue) -> None:
        self.note("cancelled")
        work = self.works.pop(context.task_id, None)
        if work is not None:
            # The MCP client tells its server in the way of its era.
            work.calling.cancel()
            await asyncio.wait({work.calling})
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("book", type=pathlib.Path)
    parser.add_argument("mcp")
    parser.add_argument("port", type=int, nargs="?", default=0)
    parser.add_argument("--patience", type=float, default=60)
    options = parser.parse_args()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", options.port))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = pb.AgentCard(name="clerk", description="does what the shop can do", version="1.0.0")
    card.supported_interfaces.append(pb.AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version="1.0"))
    card.capabilities.streaming = True
    card.default_input_modes.append("application/json")
    card.default_output_modes.append("application/json")
    card.skills.append(pb.AgentSkill(id="clerk", name="Clerk", description="calls a tool of the shop", tags=["shop"]))
    clerk = Clerk(options.book, options.mcp, options.patience)
    handler = DefaultRequestHandler(agent_executor=clerk, task_store=InMemoryTaskStore(), agent_card=card)
    app = Starlette(routes=create_agent_card_routes(card) + create_jsonrpc_routes(handler, "/rpc"))
    print(f"listens on {url}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


main()
