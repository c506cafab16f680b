"""A till over standard input and output whose answers a test lets through.

Usage: till.py FOLDER

What TOOL answers of ORDER stands in the file TOOL-ORDER.json there: `{"result": …}` or `{"error": …}`, or a list of those, one for each call, of which the
last counts for all that follow; one with `"after": FILE` waits for that file. While there is none, `take` waits for it; the other tools answer at once, unless there is a file `hold-TOOL`; so does the list of tools, unless there is `hold-list`. Every call is a
line in `done.jsonl` when it comes, and one in `answered.jsonl` when its answer is on its way.
"""

import json
import os
import sys
import threading
import time

FOLDER = sys.argv[1]
TOOLS = ["take", "put", "burn", "undo", "lend", "bring", "give", "look"]
lock = threading.Lock()
counts: dict[str, int] = {}


def note(book, tool, arguments):
    with lock, open(os.path.join(FOLDER, book), "a", encoding="utf-8") as file:
        file.write(json.dumps({"tool": tool, **arguments}) + "\n")


def told(tool, arguments):
    order = arguments.get("order", "")
    path, held = os.path.join(FOLDER, f"{tool}-{order}.json"), os.path.join(FOLDER, f"hold-{tool}")
    with lock:
        counts[tool] = counts.get(tool, 0) + 1
        counts[path] = counts.get(path, 0) + 1
        of_tool, of_order = counts[tool], counts[path]
    while os.path.exists(held) or (tool == "take" and not os.path.exists(path)):
        time.sleep(0.01)
    if not os.path.exists(path):
        return {"result": {"id": f"{tool}_{of_tool}"}}
    with open(path, encoding="utf-8") as file:
        said = json.load(file)
    said = said[min(of_order, len(said)) - 1] if isinstance(said, list) else said
    while "after" in said and not os.path.exists(os.path.join(FOLDER, said["after"])):
        time.sleep(0.01)
    return said


def call(request):
    tool, arguments = request["params"]["name"], request["params"].get("arguments", {})
    note("done.jsonl", tool, arguments)
    said = told(tool, arguments)
    value = said.get("result", said.get("error"))
    result = {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}
    if "error" in said:
        result["isError"] = True
    say({"jsonrpc": "2.0", "id": request["id"], "result": result})
    note("answered.jsonl", tool, arguments)


def say(message):
    with lock:
        print(json.dumps(message), flush=True)


def main():
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        match request["method"]:
            case "initialize":
                told = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "till", "version": "1"}}
                say({"jsonrpc": "2.0", "id": request["id"], "result": told})
            case "tools/list":
                while os.path.exists(os.path.join(FOLDER, "hold-list")):
                    time.sleep(0.01)
                tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
                say({"jsonrpc": "2.0", "id": request["id"], "result": {"tools": tools}})
            case "tools/call":
                threading.Thread(target=call, args=(request,), daemon=True).start()
            case _:
                say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "not here"}})


main()
