"""A stdio MCP server with one tool that sleeps, and notes in a file when it began and when it was told to stop."""

import json
import sys
import threading

BOOK = sys.argv[1]
LOCK = threading.Lock()
TOOL = {"name": "sleep", "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}}}}
stops: dict[object, threading.Event] = {}


def note(what):
    with LOCK, open(BOOK, "a", encoding="utf-8") as book:
        book.write(what + "\n")


def send(message):
    with LOCK:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def sleep(id, seconds):
    note("began")
    if not stops[id].wait(seconds):
        note("did")
        send({"id": id, "result": {"content": [{"type": "text", "text": "slept"}]}})


for line in sys.stdin:
    message = json.loads(line)
    method, params, id = message.get("method"), message.get("params") or {}, message.get("id")
    if method == "initialize":
        about = {"name": "sleeper", "version": "1.0"}
        send({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": [TOOL]}})
    elif method == "tools/call":
        stops[id] = threading.Event()
        threading.Thread(target=sleep, args=(id, params["arguments"]["seconds"]), daemon=True).start()
    elif method == "notifications/cancelled":
        note("cancelled")
        stops.get(params.get("requestId"), threading.Event()).set()
    elif id is not None:
        send({"id": id, "result": {}})
