"""An MCP server over standard input and output whose tools are those of a JSON file.

Usage: listed.py FILE [--log FILE] [--want VARIABLE]

With --log it writes down which methods it was asked for; with --want it ends with a word on its standard error unless that
variable is set.
"""

import json
import os
import sys


def main():
    flags = dict(zip(sys.argv[2::2], sys.argv[3::2]))
    wanted = flags.get("--want")
    if wanted and wanted not in os.environ:
        sys.exit(f"{wanted} is not set")
    with open(sys.argv[1], encoding="utf-8") as file:
        tools = json.load(file)
    for line in sys.stdin:
        request = json.loads(line)
        if "--log" in flags:
            with open(flags["--log"], "a", encoding="utf-8") as log:
                log.write(request.get("method", "") + "\n")
        if "id" not in request:
            continue
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        match request["method"]:
            case "initialize":
                answer["result"] = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "listed\n[x]", "version": "1"},
                }
            case "tools/list":
                answer["result"] = {"tools": tools}
            case "tools/call":
                answer["result"] = {"content": [{"type": "text", "text": "done"}]}
            case _:
                answer["error"] = {"code": -32601, "message": "not here"}
        print(json.dumps(answer), flush=True)


main()
