"""An MCP server written by hand that asks something of its client while a call runs.

Usage: asks.py ERA DONE [--http PORT_FILE]

ERA is `legacy` (2025-11-25: requests of its own), `modern` (2026-07-28: `input_required`) or `both`, by what is asked. Every effect is a line in the
file DONE. Without `--http` it speaks on its standard input and output.
"""

import json
import os
import queue
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ERA, DONE = sys.argv[1], sys.argv[2]
FORM = {"message": "how many?", "requestedSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
URL = {"mode": "url", "message": "sign in", "url": "https://example.org/sign-in"}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "a word"}}], "maxTokens": 5}
QUESTIONS = {
    "book": [("elicitation/create", FORM)],
    "visit": [("elicitation/create", URL if ERA == "modern" else {**URL, "elicitationId": "e-1"})],
    "think": [("sampling/createMessage", SAMPLE)],
    "where": [("roots/list", None)],
    "twice": [("elicitation/create", FORM), ("roots/list", None)],
    "plain": [],
    "retract": [],
    "push": [("elicitation/create", FORM)],
    "many": [("elicitation/create", {**FORM, "message": str(n)}) for n in range(8)],
}
RESOURCES = {"resources": [{"uri": "asks://one", "name": "one"}]}
lock = threading.Lock()
given: dict[str, str] = {}


def done(tool, arguments, inputs):
    with lock, open(DONE, "a", encoding="utf-8") as book:
        book.write(json.dumps({"tool": tool, "arguments": arguments, "inputs": inputs}) + "\n")
    return {"content": [{"type": "text", "text": json.dumps(inputs)}], "structuredContent": {"inputs": inputs}}


def tools():
    schema = {"type": "object"}
    return {"tools": [{"name": name, "inputSchema": schema} for name in QUESTIONS]}


def contents(answer):
    return {"contents": [{"uri": "asks://one", "text": str(answer["content"]["n"])}]}


def modern(method, params):
    """The answer of the stateless era."""
    if method == "server/discover":
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "prompts": {}, "resources": {}}, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/list":
        return {**tools(), "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    if method == "prompts/list":
        return {"prompts": [{"name": "greeting"}], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    if method == "resources/list":
        return {**RESOURCES, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    if method == "resources/read":
        if "inputResponses" not in params:
            request = {"method": "elicitation/create", "params": FORM}
            return {"resultType": "input_required", "inputRequests": {"q": request}, "requestState": "resource"}
        if params.get("requestState") != "resource":
            raise ValueError("an unknown requestState")
        return {**contents(params["inputResponses"]["q"]), "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    if method == "prompts/get":
        if "inputResponses" not in params:
            request = {"method": "elicitation/create", "params": FORM}
            return {"resultType": "input_required", "inputRequests": {"q": request}, "requestState": "prompt"}
        if params.get("requestState") != "prompt":
            raise ValueError("an unknown requestState")
        text = {"type": "text", "text": str(params["inputResponses"]["q"]["content"]["n"])}
        return {"messages": [{"role": "user", "content": text}], "resultType": "complete"}
    if method != "tools/call":
        raise LookupError
    name, arguments = params["name"], params.get("arguments", {})
    if name == "push":
        text = {"type": "text", "text": "there is no session to ask by"}
        return {"content": [text], "isError": True, "resultType": "complete"}
    wanted = QUESTIONS[name]
    if name == "many":
        keys = [f"k{9 - n}" for n in range(len(wanted))]
        if "inputResponses" in params:
            answers = [params["inputResponses"][key] for key in keys]
            return {**done(name, arguments, answers), "resultType": "complete"}
        requests = {key: {"method": asked, "params": about} for key, (asked, about) in zip(keys, wanted)}
        return {"resultType": "input_required", "inputRequests": requests, "requestState": "many"}
    responses, state = params.get("inputResponses"), params.get("requestState")
    so_far = []
    if state is not None:
        kept = json.loads(given.get(state, "null"))
        if kept is None:
            raise ValueError("an unknown requestState")
        so_far = kept + [responses["q"]]
    if len(so_far) < len(wanted):
        state = f"state-{len(given) + 1}"
        given[state] = json.dumps(so_far)
        asked, about = wanted[len(so_far)]
        request = {"method": asked} | ({"params": about} if about else {})
        return {"resultType": "input_required", "inputRequests": {"q": request}, "requestState": state}
    return {**done(name, arguments, so_far), "resultType": "complete"}


def wait_for(path):
    for _ in range(6000):
        if os.path.exists(path):
            return
        time.sleep(0.02)
    raise ValueError(f"{path} never came")


class Legacy:
    """One session of the stateful era. `say` writes a message to the client, `answers` are what it posts."""

    def __init__(self):
        self.waiting: dict[int, queue.Queue] = {}
        self.next = 1

    def hear(self, message):
        waiting = self.waiting.pop(message.get("id"), None)
        if waiting:
            waiting.put(message)

    def ask(self, say, method, params):
        with lock:
            n, self.next = self.next, self.next + 1
        waiting = self.waiting[n] = queue.Queue()
        say({"jsonrpc": "2.0", "id": n, "method": method} | ({"params": params} if params else {}))
        answer = waiting.get(timeout=120)
        return answer["result"] if "result" in answer else {"error": answer["error"]}

    def at_once(self, say, questions):
        """Asks all of it before it waits for any answer."""
        waiting = []
        for method, params in questions:
            with lock:
                n, self.next = self.next, self.next + 1
            waiting.append(queue.Queue())
            self.waiting[n] = waiting[-1]
            say({"jsonrpc": "2.0", "id": n, "method": method, "params": params})
        return [answer.get(timeout=120)["result"] for answer in waiting]

    def retract(self, say, name, arguments):
        """Asks, and takes it back once there is a file that says so; then it waits for another."""
        with lock:
            n, self.next = self.next, self.next + 1
        waiting = self.waiting[n] = queue.Queue()
        say({"jsonrpc": "2.0", "id": n, "method": "elicitation/create", "params": FORM})
        wait_for(DONE + ".withdraw")
        say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n, "reason": "too late"}})
        wait_for(DONE + ".go")
        return done(name, arguments, ["withdrawn", waiting.qsize()])

    def answer(self, say, method, params):
        if method == "initialize":
            info = {"name": "asks", "version": "0"}
            with lock, open(DONE + ".greetings", "a", encoding="utf-8") as greetings:
                greetings.write("initialize\n")
            capabilities = {"tools": {}, "logging": {}, "resources": {}}
            return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
        if method == "ping":
            return {}
        if method == "tools/list":
            return tools()
        if method == "resources/list":
            return RESOURCES
        if method == "resources/read":
            return contents(self.ask(say, "elicitation/create", FORM))
        if method != "tools/call":
            raise LookupError
        name, arguments = params["name"], params.get("arguments", {})
        if arguments.get("note"):
            data = {"level": "info", "data": "before"}
            say({"jsonrpc": "2.0", "method": "notifications/message", "params": data})
        if name == "retract":
            return self.retract(say, name, arguments)
        if name == "many":
            return done(name, arguments, self.at_once(say, QUESTIONS[name]))
        inputs = [self.ask(say, asked, about) for asked, about in QUESTIONS[name]]
        return done(name, arguments, inputs)


session = Legacy()


def era_of(message):
    if ERA != "both":
        return ERA
    version = ((message.get("params") or {}).get("_meta") or {}).get("io.modelcontextprotocol/protocolVersion")
    return "modern" if version else "legacy"


def respond(message, say):
    """The response to a request."""
    base = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        params = message.get("params") or {}
        if era_of(message) == "modern":
            return base | {"result": modern(message["method"], params)}
        return base | {"result": session.answer(say, message["method"], params)}
    except LookupError:
        return base | {"error": {"code": -32601, "message": "no such method"}}
    except ValueError as error:
        return base | {"error": {"code": -32602, "message": str(error)}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "method" not in message or "id" not in message:
            if "id" in message:
                session.hear(message)
            elif message["method"] == "notifications/cancelled":
                with lock, open(DONE, "a", encoding="utf-8") as book:
                    book.write(json.dumps({"cancelled": message["params"]["requestId"]}) + "\n")
            self.send_response(202)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        streams = era_of(message) == "legacy" and message["method"] in ("tools/call", "resources/read")
        self.send_response(200)
        if not streams:
            body = json.dumps(respond(message, lambda _: None)).encode()
            self.send_header("content-type", "application/json")
            if message["method"] == "initialize":
                self.send_header("mcp-session-id", "one")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()

        def say(message):
            self.wfile.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
            self.wfile.flush()

        say(respond(message, say))
        self.close_connection = True


def serve_http(port_file):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with open(port_file + ".part", "w", encoding="utf-8") as file:
        file.write(str(server.server_port))
    os.rename(port_file + ".part", port_file)
    server.serve_forever()


def serve_stdio():
    def say(message):
        with lock:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            session.hear(message)
        elif "id" in message:
            threading.Thread(target=lambda message=message: say(respond(message, say)), daemon=True).start()


if "--http" in sys.argv:
    serve_http(sys.argv[sys.argv.index("--http") + 1])
else:
    serve_stdio()
