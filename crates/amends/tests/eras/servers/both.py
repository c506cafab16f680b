"""A server of the Python SDK over HTTP, in both eras, whose tool asks its client while it works.

Usage: both.py DONE
"""

import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

DONE = sys.argv[1]
server = MCPServer("both")


class Number(BaseModel):
    n: int


@server.tool()
async def book(order: int, ctx: Context) -> str:
    answer = await ctx.elicit("how many?", Number)
    with open(DONE, "a", encoding="utf-8") as done:
        done.write('{"tool": "book", "n": %d}\n' % answer.data.n)
    return f"{order} times {answer.data.n}"


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
print(f"listens on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listener])
