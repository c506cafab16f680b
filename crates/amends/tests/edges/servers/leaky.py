"""An MCP server that says too much: its results and errors repeat what it was given.

Usage: leaky.py LOG

Every line that arrives is added to LOG. The tools: `pay` is done and repeats its arguments; `fail` is an error that
repeats them; `refuse` is a JSON-RPC error that does; `hang` never answers; `look` reads; `cancel` undoes.
"""

import json
import sys

LOG = sys.argv[1]
NAMES = ("pay", "fail", "refuse", "hang", "look", "cancel")


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(line)
    message = json.loads(line)
    id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if id is None:
        continue
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        info = {"name": "leaky", "version": "1"}
        send({"id": id, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]
        send({"id": id, "result": {"tools": tools}})
    elif method == "tools/call":
        name, given = params["name"], params.get("arguments") or {}
        said = "it failed for " + ", ".join("%s=%s" % (key, value) for key, value in given.items())
        if name == "hang":
            continue
        if name == "refuse":
            send({"id": id, "error": {"code": -32000, "message": said, "data": {"given": given}}})
        elif name == "fail":
            send({"id": id, "result": {"isError": True, "content": [{"type": "text", "text": said}]}})
        else:
            content = [{"type": "text", "text": json.dumps(given)}]
            send({"id": id, "result": {"content": content, "structuredContent": {"id": "p_1", "given": given}}})
    else:
        send({"id": id, "error": {"code": -32601, "message": "no such method"}})
