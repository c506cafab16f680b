"""Drives the Python `mcp` SDK from JSON lines, so that a test can hold a real client by its pipes.

Usage: client.py [--era auto|legacy|modern] [--header 'Name: value']... [--inputs JSON] [--log-level LEVEL]
                 (--http URL | --stdio -- COMMAND ARGS...)

The commands and answers are described in docs/testing.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CreateMessageResult,
    ElicitResult,
    Implementation,
    ListRootsResult,
    PromptReference,
    ResourceTemplateReference,
    SubscriptionFilter,
)

DEFAULT_TIMEOUT_MS = 30_000
MODES = {"auto": "auto", "legacy": "legacy", "modern": "2026-07-28"}


async def main() -> int:
    options = parse_arguments()
    try:
        inputs = Inputs(json.loads(options.inputs))
        heard: list[dict[str, Any]] = []
        async with connect(options, inputs, heard) as client:
            await Driver(client, inputs, heard).serve()
    except Exception as error:
        answer({"fatal": describe(root_cause(error))["message"]})
        return 1
    return 0


class Inputs:
    """What the client answers when it is asked something, by method, and what it was asked so far."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[dict[str, Any]] = []

    def callbacks(self) -> dict[str, Any]:
        of = {
            "elicitation/create": ("elicitation_callback", ElicitResult),
            "sampling/createMessage": ("sampling_callback", CreateMessageResult),
        }
        found: dict[str, Any] = {}
        for method, (name, result) in of.items():
            if method in self.answers:
                found[name] = self.callback(method, result)
        if "roots/list" in self.answers:
            ask = self.callback("roots/list", ListRootsResult)

            async def roots(context: Any) -> Any:
                return await ask(context, None)

            found["list_roots_callback"] = roots
        return found

    def callback(self, method: str, result: Any) -> Any:
        async def answered(_context: Any, params: Any) -> Any:
            shown = params.model_dump(mode="json", by_alias=True, exclude_unset=True) if params else None
            self.asked.append({"method": method, "params": shown})
            answer = dict(self.answers[method])
            if answer.get("never"):
                await anyio.sleep_forever()
            await anyio.sleep(answer.pop("after_ms", 0) / 1000)
            return result.model_validate(answer)

        return answered


class Driver:
    def __init__(self, client: Client, inputs: Inputs, heard: list[dict[str, Any]]) -> None:
        self.client = client
        self.inputs = inputs
        self.heard = heard
        self.running: dict[int, anyio.CancelScope] = {}

    async def serve(self) -> None:
        """Reads commands until end of input, and returns when the last call has been answered."""
        async with anyio.create_task_group() as listening:
            await self.take(listening)
            listening.cancel_scope.cancel()

    async def take(self, listening: anyio.abc.TaskGroup) -> None:
        async with anyio.create_task_group() as calls:
            while line := await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
                if not line.strip():
                    continue
                command = json.loads(line)
                match command["op"]:
                    case "call":
                        scope = self.running[command["n"]] = anyio.CancelScope()
                        calls.start_soon(self.call, command, scope)
                    case "cancel":
                        self.cancel(command)
                    case "list":
                        await self.list(command)
                    case "info":
                        self.info(command)
                    case "ask":
                        await self.ask(command)
                    case "listen":
                        await listening.start(self.listen, command)
                    case "heard":
                        answer({"n": command["n"], "ok": True, "heard": self.heard})
                    case "prompt":
                        await self.prompt(command)
                    case other:
                        fail(command["n"], {"message": f"unknown op {other!r}", "type": "usage"})

    async def call(self, command: dict[str, Any], scope: anyio.CancelScope) -> None:
        n = command["n"]
        progress: list[float] = []

        async def on_progress(value: float, _total: float | None, _message: str | None) -> None:
            progress.append(int(value) if value.is_integer() else value)

        try:
            with scope:
                result = await self.client.call_tool(
                    command["tool"],
                    command.get("args"),
                    read_timeout_seconds=command.get("timeout_ms", DEFAULT_TIMEOUT_MS) / 1000,
                    progress_callback=on_progress if command.get("progress") else None,
                    meta=command.get("meta"),
                )
                # Not `exclude_none`: a null the server wrote is part of what the client saw.
                shown = result.model_dump(mode="json", by_alias=True, exclude_unset=True)
                asked = self.inputs.asked
                answer({"n": n, "ok": True, "result": shown, "progress": progress, "asked": asked})
        except Exception as error:
            fail(n, describe(root_cause(error)), progress=progress)
        finally:
            del self.running[n]
        if scope.cancelled_caught:
            fail(n, {"code": None, "message": "cancelled by the test", "data": None, "type": "cancelled"}, progress=progress)

    def cancel(self, command: dict[str, Any]) -> None:
        scope = self.running.get(command["call"])
        if scope is None:
            fail(command["n"], {"message": f"call {command['call']} is not running", "type": "not_running"})
            return
        scope.cancel()
        answer({"n": command["n"], "ok": True})

    async def list(self, command: dict[str, Any]) -> None:
        try:
            names: list[str] = []
            cursor = None
            while True:
                page = await self.client.list_tools(cursor=cursor)
                names += [tool.name for tool in page.tools]
                cursor = page.next_cursor
                if cursor is None:
                    break
            answer({"n": command["n"], "ok": True, "tools": names})
        except Exception as error:
            fail(command["n"], describe(root_cause(error)))

    async def ask(self, command: dict[str, Any]) -> None:
        """Any other request, by the method's own name and parameters."""
        params = command.get("params", {})
        try:
            match command["method"]:
                case "tools/list":
                    result = await self.client.list_tools(cursor=params.get("cursor"), cache_mode="refresh")
                case "prompts/list":
                    result = await self.client.list_prompts(cursor=params.get("cursor"), cache_mode="refresh")
                case "prompts/get":
                    result = await self.client.get_prompt(params["name"], params.get("arguments"))
                case "resources/list":
                    result = await self.client.list_resources(cursor=params.get("cursor"), cache_mode="refresh")
                case "resources/templates/list":
                    result = await self.client.list_resource_templates(cursor=params.get("cursor"), cache_mode="refresh")
                case "resources/read":
                    result = await self.client.read_resource(params["uri"], cache_mode="refresh")
                case "resources/subscribe":
                    result = await self.client.subscribe_resource(params["uri"])
                case "resources/unsubscribe":
                    result = await self.client.unsubscribe_resource(params["uri"])
                case "completion/complete":
                    kind = PromptReference if params["ref"]["type"] == "ref/prompt" else ResourceTemplateReference
                    result = await self.client.complete(kind.model_validate(params["ref"]), params["argument"])
                case "logging/setLevel":
                    result = await self.client.set_logging_level(params["level"])
                case "ping":
                    result = await self.client.send_ping()
                case other:
                    raise ValueError(f"unknown method {other!r}")
            shown = result.model_dump(mode="json", by_alias=True, exclude_unset=True)
            answer({"n": command["n"], "ok": True, "result": shown})
        except Exception as error:
            fail(command["n"], describe(root_cause(error)))

    async def listen(self, command: dict[str, Any], *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Keeps a stateless subscription open."""
        wanted = SubscriptionFilter.model_validate(command["filter"])
        try:
            async with self.client.listen(
                tools_list_changed=bool(wanted.tools_list_changed),
                prompts_list_changed=bool(wanted.prompts_list_changed),
                resources_list_changed=bool(wanted.resources_list_changed),
                resource_subscriptions=wanted.resource_subscriptions or (),
            ) as subscription:
                answer({"n": command["n"], "ok": True})
                task_status.started()
                # What comes in on it goes to the message handler too.
                async for _ in subscription:
                    pass
        except Exception as error:
            fail(command["n"], describe(root_cause(error)))
            with contextlib.suppress(RuntimeError):
                task_status.started()

    async def prompt(self, command: dict[str, Any]) -> None:
        try:
            result = await self.client.get_prompt(command["name"], command.get("args"))
            answer({"n": command["n"], "ok": True, "result": result.model_dump(mode="json", by_alias=True, exclude_unset=True)})
        except Exception as error:
            fail(command["n"], describe(root_cause(error)))

    def info(self, command: dict[str, Any]) -> None:
        server = self.client.server_info
        answer(
            {
                "n": command["n"],
                "ok": True,
                "protocol": self.client.protocol_version,
                "server": server.name if server else None,
            }
        )


def shown_notification(notification: Any) -> dict[str, Any]:
    return notification.model_dump(mode="json", by_alias=True, exclude_none=True)


@contextlib.asynccontextmanager
async def connect(options: argparse.Namespace, inputs: Inputs, heard: list[dict[str, Any]]):
    if options.http:
        headers = dict(header.split(": ", 1) for header in options.header)
        http = create_mcp_http_client(headers=headers)
        target: Any = streamable_http_client(options.http, http_client=http)
    else:
        # The SDK hands on only a few variables; a test's own must reach the process it starts.
        target = StdioServerParameters(command=options.command[0], args=options.command[1:], env=dict(os.environ))
        http = contextlib.nullcontext()
    info = Implementation(name="amends-test-python", version="0")

    async def hear(message: Any) -> None:
        if not isinstance(message, Exception):
            heard.append(shown_notification(message))

    callbacks = inputs.callbacks() | {"message_handler": hear, "log_level": options.log_level}
    async with http, Client(target, mode=MODES[options.era], client_info=info, **callbacks) as client:
        yield client


def parse_arguments() -> argparse.Namespace:
    arguments = sys.argv[1:]
    command: list[str] = []
    if "--" in arguments:
        split = arguments.index("--")
        arguments, command = arguments[:split], arguments[split + 1 :]
    parser = argparse.ArgumentParser(prog="client.py")
    parser.add_argument("--era", choices=sorted(MODES), default="auto")
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("--inputs", metavar="JSON", default="{}")
    parser.add_argument("--log-level")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--http", metavar="URL")
    where.add_argument("--stdio", action="store_true")
    options = parser.parse_args(arguments)
    if options.stdio != bool(command):
        parser.error("--stdio takes a command after `--`, and --http takes none")
    options.command = command
    return options


def describe(error: BaseException) -> dict[str, Any]:
    if isinstance(error, MCPError):
        return {"code": error.code, "message": error.message, "data": error.data, "type": type(error).__name__}
    message = str(error) or type(error).__name__
    return {"code": None, "message": message, "data": None, "type": type(error).__name__}


def root_cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def fail(n: int, error: dict[str, Any], **more: Any) -> None:
    answer({"n": n, "ok": False, "error": error, **more})


def answer(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(anyio.run(main))
