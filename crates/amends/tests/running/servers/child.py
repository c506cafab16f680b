"""A server whose life is watched.

Usage: child.py NAME FOLDER [--stubborn] [--fork] [--fail] [--flood]

It writes a line into FOLDER/starts whenever it starts, and FOLDER/NAME.pid. With --stubborn it neither leaves when its input closes
nor when it is told to; with --fork it starts another process that minds as little, and keeps its output open. With --fail it ends at
once while FOLDER/fail is there, and says on its standard error what is in that file. With --flood it first writes a lot to its
standard error.

`pay` writes into FOLDER/begun when it begins, takes as many seconds as it is told, and then writes into FOLDER/book. `die` ends the
server. `echo` says where and with what it runs.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

LINES = threading.Lock()
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def note(folder, name, line):
    with open(os.path.join(folder, name), "a", encoding="utf-8") as file:
        file.write(line + "\n")


def say(message):
    with LINES:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def call(name, folder, params):
    arguments = params.get("arguments") or {}
    match params["name"]:
        case "echo":
            said = {"name": name, "pid": os.getpid(), "cwd": os.getcwd(), "env": dict(os.environ)}
        case "pay":
            note(folder, "begun", str(arguments.get("order")))
            time.sleep(float(arguments.get("seconds") or 0))
            note(folder, "book", str(arguments.get("order")))
            said = {"name": name, "pid": os.getpid(), "paid": arguments.get("order")}
        case _:
            os._exit(7)
    return {"content": [{"type": "text", "text": json.dumps(said)}], "structuredContent": said}


def answer(name, folder, request):
    method, params = request["method"], request.get("params") or {}
    match method:
        case "initialize":
            about = {"tools": {"listChanged": True}}
            info = {"name": name, "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": about, "serverInfo": info}
        case "tools/list":
            tools = [{"name": tool, "inputSchema": {"type": "object"}} for tool in ("echo", "pay", "die")]
            result = {"tools": tools}
        case "tools/call":
            result = call(name, folder, params)
        case "ping":
            result = {}
        case _:
            say({"id": request["id"], "error": {"code": -32601, "message": "unknown"}})
            return
    say({"id": request["id"], "result": result})


def main():
    name, folder, flags = sys.argv[1], sys.argv[2], sys.argv[3:]
    note(folder, "starts", name)
    fail = os.path.join(folder, "fail")
    if "--fail" in flags and os.path.exists(fail):
        with open(fail, encoding="utf-8") as file:
            sys.stderr.write(file.read())
        sys.exit(3)
    if "--flood" in flags:
        for _ in range(64):
            sys.stderr.write("x" * 65536)
        sys.stderr.flush()
    if "--stubborn" in flags:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "--fork" in flags:
        forked = subprocess.Popen([sys.executable, "-c", STUBBORN], stdin=subprocess.DEVNULL)
        note(folder, "forked", str(forked.pid))
    note(folder, name + ".pid", str(os.getpid()))
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request and "method" in request:
            threading.Thread(target=answer, args=(name, folder, request), daemon=True).start()
    while "--stubborn" in flags:
        time.sleep(60)
    # What was asked for is still done.
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(20)


main()
