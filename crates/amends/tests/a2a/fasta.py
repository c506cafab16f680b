"""An agent with fasta2a that does what the first word of a message says, and counts what it did in a file."""

import asyncio
import contextlib
import pathlib
import socket
import sys
import uuid

import uvicorn
from fasta2a import FastA2A
from fasta2a.broker import InMemoryBroker
from fasta2a.storage import InMemoryStorage
from fasta2a.worker import Worker

BOOK = pathlib.Path(sys.argv[1])


def note(what: str) -> None:
    with BOOK.open("a") as book:
        book.write(what + "\n")


class Clerk(Worker):
    async def run_task(self, params) -> None:
        task = await self.storage.load_task(params["id"])
        words = " ".join(part["text"] for part in params["message"]["parts"] if "text" in part)
        word, _, rest = words.partition(" ")
        note(words)
        await self.storage.update_task(task["id"], state="working")
        if word == "fail":
            raise RuntimeError("there is no seat")
        if word == "slow":
            note("began")
            await asyncio.sleep(float(rest))
            note("did")
        artifact = {"artifact_id": str(uuid.uuid4()), "parts": [{"data": {"booked": rest}}, {"text": "booked"}]}
        await self.storage.update_task(task["id"], state="completed", new_artifacts=[artifact])

    async def cancel_task(self, params) -> None:
        note("cancelled")

    def build_message_history(self, history):
        return history

    def build_artifacts(self, result):
        return []


def main() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    storage, broker = InMemoryStorage(), InMemoryBroker()
    worker = Clerk(broker=broker, storage=storage)

    @contextlib.asynccontextmanager
    async def lifespan(app):
        async with app.task_manager, worker.run():
            yield

    skills = [{"id": "book", "name": "Book", "description": "books a seat", "tags": [], "input_modes": ["text/plain"], "output_modes": ["application/json"]}]
    app = FastA2A(storage=storage, broker=broker, url=url, name="clerk", skills=skills, lifespan=lifespan)
    print(f"listens on {url}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


main()
