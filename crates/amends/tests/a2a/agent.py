"""An agent with the A2A SDK that does what the first word of a message says, and counts what it did in a file."""

import asyncio
import json
import pathlib
import socket
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from starlette.applications import Starlette

BOOK = pathlib.Path(sys.argv[1])
SIGNED = BOOK.with_name("signed.txt")
SIGN_IN = "https://id.example.com/sign-in?for=clerk"
STREAMS = "--no-stream" not in sys.argv


def note(what: str) -> None:
    with BOOK.open("a") as book:
        book.write(what + "\n")


def data(value) -> pb.Part:
    return pb.Part(data=ParseDict(value, Value()))


class Clerk(AgentExecutor):
    async def execute(self, context, event_queue) -> None:
        words = " ".join(part.text for part in context.message.parts if part.text)
        word, _, rest = words.partition(" ")
        if not context.current_task and word != "message":
            task = pb.Task(id=context.task_id, context_id=context.context_id)
            task.status.state = pb.TaskState.TASK_STATE_SUBMITTED
            task.history.append(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        note(f"{word} {rest}".strip())
        say = lambda text: updater.new_agent_message([pb.Part(text=text)])
        if context.current_task and word not in {"slow"}:
            note(f"answered {context.task_id == context.message.task_id}")
            await updater.add_artifact([data({"answer": words})])
            await updater.complete()
        elif word == "book":
            await updater.start_work(say("looking for a seat"))
            await updater.add_artifact([data({"booked": rest}), pb.Part(text="booked")])
            await updater.complete()
        elif word == "auth":
            # Somebody signs in elsewhere, which is a file here; `auth inside` waits to be told instead.
            await updater.requires_auth(say(f"sign in at {SIGN_IN}, then it goes on"))
            if rest == "inside":
                return
            while not SIGNED.exists():
                await asyncio.sleep(0.05)
            await updater.add_artifact([data({"booked": rest})])
            await updater.complete()
        elif word == "ask":
            await updater.requires_input(say("which seat?"))
        elif word == "fail":
            await updater.failed(say("there is no seat"))
        elif word == "silent":
            await updater.failed()
        elif word == "reject":
            await updater.reject(say("not today"))
        elif word == "raise":
            raise RuntimeError("broken")
        elif word == "message":
            await event_queue.enqueue_event(updater.new_agent_message([pb.Part(text="hello")]))
        elif word == "slow":
            await updater.start_work(say("it takes a while"))
            note("began")
            await asyncio.sleep(float(rest or "4"))
            note("did")
            await updater.add_artifact([data({"done": True})])
            await updater.complete()

    async def cancel(self, context, event_queue) -> None:
        note("cancelled")
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.cancel()


class Cutting:
    """Ends every stream after its first event, as a line does that breaks."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send) -> None:
        streams, said = False, 0

        async def cut(message) -> None:
            nonlocal streams, said
            if message["type"] == "http.response.start":
                streams = any(b"event-stream" in value for _, value in message["headers"])
            elif streams and message["type"] == "http.response.body":
                said += 1
                if said > 1:
                    return
                note("cut")
                message = {**message, "more_body": False}
            await send(message)

        await self.app(scope, receive, cut)


def main() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = pb.AgentCard(name="clerk", description="books seats", version="1.0.0")
    card.supported_interfaces.append(
        pb.AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")
    )
    card.capabilities.streaming = STREAMS
    card.default_input_modes.append("text/plain")
    card.default_output_modes.append("application/json")
    card.skills.append(pb.AgentSkill(id="book", name="Book", description="books a seat", tags=["seats"]))
    handler = DefaultRequestHandler(agent_executor=Clerk(), task_store=InMemoryTaskStore(), agent_card=card)
    app = Starlette(routes=create_agent_card_routes(card) + create_jsonrpc_routes(handler, "/rpc"))
    if "--cuts" in sys.argv:
        app = Cutting(app)
    print(f"listens on {url}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


main()
