"""An MCP server whose tools are whatever a file says whenever they are listed.

Usage: chameleon.py TOOLS LOG

TOOLS is a JSON array of tools. Every call adds a line with the tool's name to LOG.
"""

import json
import sys

tools, log = sys.argv[1:]

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, result, error = message["method"], None, None
    if method == "initialize":
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "chameleon", "version": "1"},
        }
    elif method == "tools/list":
        with open(tools, encoding="utf-8") as file:
            result = {"tools": json.load(file)}
    elif method == "tools/call":
        with open(log, "a", encoding="utf-8") as file:
            file.write(message["params"]["name"] + "\n")
        result = {"content": [{"type": "text", "text": "done"}]}
    else:
        error = {"code": -32601, "message": "no such method"}
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    answer.update({"result": result} if error is None else {"error": error})
    print(json.dumps(answer), flush=True)
