"""An MCP server of the Python SDK with sessions. Usage: stateful.py PORT BOOK"""

import sys

from mcp.server.mcpserver import MCPServer

port, book = int(sys.argv[1]), sys.argv[2]
server = MCPServer("stateful")


@server.tool()
def charge(order: str) -> dict:
    """Charges an order."""
    with open(book, "a") as file:
        file.write(order + "\n")
    return {"order": order}


@server.tool()
def look() -> dict:
    """Changes nothing."""
    return {"here": True}


server.run("streamable-http", host="127.0.0.1", port=port)
