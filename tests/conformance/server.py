"""The server that the conformance suite is run against, directly and through Amends.

It is built on the Python SDK, speaks both eras, and has the tools, resources and prompts that the suite names.

    server.py --http PORT [ERA]    over HTTP at /mcp; prints its address when it listens
    server.py --stdio [ERA]        over standard input and output

With an era, `legacy` or `modern`, it takes the greeting of that one only.
"""

import sys
import warnings

import anyio
import uvicorn

warnings.simplefilter("ignore")

from mcp.server.lowlevel import NotificationOptions, Server  # noqa: E402
from mcp.server.stdio import stdio_server  # noqa: E402
from mcp.server.subscriptions import ListenHandler  # noqa: E402
from mcp.shared.exceptions import MCPError  # noqa: E402
from mcp.shared.message import SessionMessage  # noqa: E402
from mcp_types import ErrorData, JSONRPCError  # noqa: E402
from mcp_types.version import MODERN_PROTOCOL_VERSIONS  # noqa: E402

import prompts  # noqa: E402
import resources  # noqa: E402
import tools  # noqa: E402
from state import BUS  # noqa: E402

METHOD_NOT_FOUND = -32601


def stamped(handler):
    """What a stateless client needs to find in every answer, where the handler did not say it."""

    async def handle(ctx, params):
        answer = await handler(ctx, params)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            answer = {"resultType": "complete", **answer}
            if "resources" in ctx.method or ctx.method.endswith("/list"):
                answer = {"ttlMs": 0, "cacheScope": "private", **answer}
        return answer

    return handle


async def complete(ctx, params):
    known = ["paris", "park", "party", "test"]
    values = [word for word in known if word.startswith(params.argument.value)]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


async def nothing(ctx, params):
    return {}


class Everything(Server):
    """Says that its lists change: the suite changes them and looks for the notice."""

    def create_initialization_options(self, notification_options=None, *rest, **named):
        return super().create_initialization_options(notification_options or CHANGES, *rest, **named)

    def get_capabilities(self, notification_options=None, *rest, **named):
        return super().get_capabilities(CHANGES, *rest, **named)


CHANGES = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)

server = Everything(
    "everything",
    version="1.0.0",
    on_list_tools=stamped(tools.listed),
    on_call_tool=stamped(tools.call),
    on_list_resources=stamped(resources.listed),
    on_list_resource_templates=stamped(resources.templates),
    on_read_resource=stamped(resources.read),
    on_subscribe_resource=stamped(nothing),
    on_unsubscribe_resource=stamped(nothing),
    on_subscriptions_listen=ListenHandler(BUS),
    on_list_prompts=stamped(prompts.listed),
    on_get_prompt=stamped(prompts.get),
    on_completion=stamped(complete),
    on_set_logging_level=stamped(nothing),
)


class Announced(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        print(f"listens on http://{host}:{port}/mcp", flush=True)


def only(era):
    """Refuses what belongs to the other era."""
    foreign = {"legacy": "server/discover", "modern": "initialize"}[era]

    async def refuse(ctx, call_next):
        if ctx.method == foreign:
            raise MCPError(METHOD_NOT_FOUND, f"this server does not know {foreign}")
        return await call_next(ctx)

    server.middleware.append(refuse)


def main(arguments):
    era = arguments.pop() if arguments and arguments[-1] in ("legacy", "modern") else None
    if era is not None:
        only(era)
    match arguments:
        case ["--http", port]:
            app = server.streamable_http_app()
            config = uvicorn.Config(app, host="127.0.0.1", port=int(port), log_level="error", timeout_graceful_shutdown=0)
            anyio.run(Announced(config).serve)
        case ["--stdio"]:
            anyio.run(over_stdio, era)
        case _:
            sys.exit("usage: server.py (--http PORT | --stdio) [legacy|modern]")


async def over_stdio(era):
    async with stdio_server() as (read, write), anyio.create_task_group() as tasks:
        if era == "modern":
            # On a line, the SDK settles on the era of the first message, even if it refuses it.
            kept, passed = anyio.create_memory_object_stream(0)
            tasks.start_soon(without_greeting, read, kept, write)
            read = passed
        await server.run(read, write, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def without_greeting(read, kept, write):
    async with kept:
        async for item in read:
            message = getattr(item, "message", None)
            if getattr(message, "method", None) == "initialize":
                error = ErrorData(code=METHOD_NOT_FOUND, message="this server does not know initialize")
                await write.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.id, error=error)))
            else:
                await kept.send(item)


if __name__ == "__main__":
    main(sys.argv[1:])
