"""A server of the Python SDK that asks its client for a number before it does anything.

Usage: sdk.py DONE
"""

import sys
from typing import Annotated

from mcp.server.mcpserver import Elicit, MCPServer, Resolve
from pydantic import BaseModel

DONE = sys.argv[1]
server = MCPServer("sdk")


class Number(BaseModel):
    n: int


async def how_many() -> Elicit[Number]:
    return Elicit("how many?", Number)


@server.tool()
async def book(order: int, number: Annotated[Number, Resolve(how_many)]) -> str:
    with open(DONE, "a", encoding="utf-8") as done:
        done.write('{"tool": "book", "n": %d}\n' % number.n)
    return f"{order} times {number.n}"


server.run()
