"""A server with some of everything, in either era, over standard input and output or over HTTP.

Usage: raw.py NAME [--era legacy|modern] [--http PORT_FILE [PORT]] [--entries N] [--tasks FILE]

Its tools change what it offers on request, and it says so: `change` adds a tool, a prompt and a resource, `touch` says that a
resource is different, `log` writes to its log, `die` ends it. With --tasks it has a tool `later` that is done in a task, and
writes into the file how often that happened; `only` is there as a task alone, and `advance` says how a task is by now.
"""

import json
import os
import queue
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
PAGE = 50


class Failed(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Server:
    def __init__(self, name, era, entries, book):
        self.name, self.era, self.book = name, era, book
        self.tasks = {}
        self.lock = threading.Lock()
        self.tools = ["change", "die", "echo", "log", "touch"] + (["advance", "later", "only"] if book else [])
        self.prompts = ["greet"] + [f"p{n:04}" for n in range(entries)]
        self.resources = [f"{name}://one", "shared://doc"]
        self.subscribed, self.level = set(), "info"
        self.listeners = {}

    def answer(self, request, say):
        """The answer to a request. What comes before it is handed to `say`."""
        method, params = request["method"], request.get("params") or {}
        if self.era == "modern" and method == "initialize":
            raise Failed(-32601, "this server has no sessions")
        if self.era == "legacy" and method in ("server/discover", "subscriptions/listen"):
            raise Failed(-32601, "this server wants to be greeted")
        result = self.result(method, params, say)
        if self.era == "modern":
            result.setdefault("resultType", "complete")
            if method.endswith("/list") or method in ("resources/read", "server/discover"):
                result |= {"ttlMs": 0, "cacheScope": "private"}
        return result

    def result(self, method, params, say):
        match method:
            case "initialize":
                return {"protocolVersion": "2025-11-25", **self.about(), "serverInfo": self.info()}
            case "server/discover":
                return {"supportedVersions": ["2026-07-28"], **self.about()}
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [self.tool(tool) for tool in self.tools]}
            case "tools/call":
                if params["name"] in ("later", "only") and self.book:
                    return self.later(params, say)
                return self.call(params["name"], params.get("arguments") or {})
            case "tasks/get" | "tasks/result" | "tasks/update" | "tasks/cancel":
                return self.task(method, params)
            case "prompts/list":
                start = int(params.get("cursor") or 0)
                page = {"prompts": [{"name": it, "x-of": self.name, "n": 1.0} for it in self.prompts[start : start + PAGE]]}
                return page | ({"nextCursor": str(start + PAGE)} if start + PAGE < len(self.prompts) else {})
            case "prompts/get":
                if params["name"] not in self.prompts:
                    raise Failed(-32602, f"{self.name} has no prompt {params['name']}")
                text = f"{params['name']} of {self.name}"
                return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
            case "resources/list":
                return {"resources": [{"uri": uri, "name": f"{uri} of {self.name}"} for uri in self.resources]}
            case "resources/templates/list":
                return {"resourceTemplates": [{"uriTemplate": self.name + "://items/{id}", "name": "items"}]}
            case "resources/read":
                return self.read(params["uri"], say, params)
            case "resources/subscribe":
                self.subscribed.add(params["uri"])
                return {}
            case "resources/unsubscribe":
                self.subscribed.discard(params["uri"])
                return {}
            case "completion/complete":
                value = params["argument"]["value"]
                about = params["ref"].get("name") or params["ref"].get("uri")
                return {"completion": {"values": [f"{value} for {about} of {self.name}"]}}
            case "logging/setLevel":
                self.level = params["level"]
                return {}
        raise Failed(-32601, f"{self.name} knows no {method}")

    def about(self):
        capabilities = {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "completions": {},
            "logging": {},
        }
        if self.book and self.era == "modern":
            capabilities["extensions"] = {"io.modelcontextprotocol/tasks": {}}
        elif self.book:
            capabilities["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        return {"capabilities": capabilities, "instructions": f"{self.name} has some of everything."}

    def info(self):
        return {"name": self.name, "version": "1"}

    def tool(self, name):
        tool = {"name": name, "description": f"{name} of {self.name}", "inputSchema": {"type": "object"}}
        if name == "later":
            tool["outputSchema"] = {"type": "object", "required": ["done"]}
            tool["execution"] = {"taskSupport": "optional"}
        if name == "only":
            tool["execution"] = {"taskSupport": "required"}
        return tool

    def read(self, uri, say, params):
        if uri == f"private://{self.name}":
            return {"contents": [{"uri": uri, "text": "paid with 4111 1111 1111 1111, and n is 1.0"}]}
        known = uri in self.resources or uri.startswith(f"{self.name}://items/") or uri == f"hidden://{self.name}"
        if not known:
            raise Failed(-32602 if self.era == "modern" else -32002, f"{self.name} has no {uri}")
        token = (params.get("_meta") or {}).get("progressToken")
        if token is not None:
            for n in range(1, 4):
                say("notifications/progress", {"progressToken": token, "progress": n, "x": 1.0})
        return {"contents": [{"uri": uri, "text": f"{uri} of {self.name}"}]}

    def call(self, name, arguments):
        match name:
            case "echo" | "added":
                text = json.dumps({"at": self.name, "pid": os.getpid(), "args": arguments, "level": self.level})
                return {"content": [{"type": "text", "text": text}]}
            case "change":
                self.tools.append("added")
                self.prompts.append("added")
                self.resources.append(f"{self.name}://added")
                for kind in ("tools", "prompts", "resources"):
                    self.notify(f"notifications/{kind}/list_changed", None)
            case "touch":
                uri = arguments["uri"]
                if self.era == "modern" or uri in self.subscribed:
                    self.notify("notifications/resources/updated", {"uri": uri, "x": 1.0})
            case "log":
                for n in range(arguments.get("times", 1)):
                    self.notify("notifications/message", {"level": arguments["level"], "data": {"of": self.name, "n": n}})
            case "advance":
                task = self.tasks[arguments["task"]]
                task["status"] = arguments["status"]
                self.tell(task)
            case "die":
                os._exit(3)
            case other:
                raise Failed(-32602, f"{self.name} has no tool {other}")
        return {"content": [{"type": "text", "text": "done"}]}

    def later(self, params, say):
        with open(self.book, "a") as book:
            book.write("done\n")
        capabilities = (params.get("_meta") or {}).get("io.modelcontextprotocol/clientCapabilities", {})
        declared = "io.modelcontextprotocol/tasks" in capabilities.get("extensions", {})
        if not (declared if self.era == "modern" else "task" in params):
            if params["name"] == "only":
                raise Failed(-32601, "only as a task")
            return {"content": [{"type": "text", "text": "done at once"}], "structuredContent": {"done": True}}
        task = {"taskId": f"t{len(self.tasks)}", "status": "working", "createdAt": "2026-01-01T00:00:00Z",
                "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs" if self.era == "modern" else "ttl": None, "x": 1.0}
        self.tasks[task["taskId"]] = task
        if (params.get("arguments") or {}).get("early"):
            say("notifications/tasks/status", {**task, "status": "completed"})
        return {"resultType": "task", **task} if self.era == "modern" else {"task": task}

    def task(self, method, params):
        if method == ("tasks/result" if self.era == "modern" else "tasks/update"):
            raise Failed(-32601, f"{self.name} knows no {method}")
        task = self.tasks.get(params["taskId"])
        if task is None:
            raise Failed(-32602, f"{self.name} has no task {params['taskId']}")
        done = self.done()
        if method == "tasks/cancel":
            task["status"] = "cancelled"
            return {} if self.era == "modern" else task
        if method == "tasks/update":
            return {}
        if method == "tasks/result":
            return done | {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": task["taskId"]}}}
        task["status"] = "completed" if task["status"] == "working" else task["status"]
        return task | ({"result": done} if self.era == "modern" else {})

    def done(self):
        return {"content": [{"type": "text", "text": f"done by {self.name}"}], "structuredContent": {"done": True}}

    def tell(self, task):
        """Says how a task is: of its own accord in the one era, to who listens to it in the other."""
        if self.era == "legacy":
            return self.notify("notifications/tasks/status", task)
        over = {"result": self.done()} if task["status"] == "completed" else {}
        return self.notify("notifications/tasks", {**task, **over})

    def notify(self, method, params):
        with self.lock:
            listeners = list(self.listeners.items())
        for listen, (say, wants) in listeners:
            if listen is None:
                say(method, params)
                continue
            kind = method.split("/")[1]
            if method.endswith("list_changed") and not wants.get(f"{kind}ListChanged"):
                continue
            if method == "notifications/tasks" and params["taskId"] not in wants.get("taskIds", []):
                continue
            if method.endswith("updated") and params["uri"] not in wants.get("resourceSubscriptions", []):
                continue
            say(method, {**(params or {}), "_meta": {SUBSCRIPTION: listen}})

    def listens(self, request, say):
        wants = request["params"]["notifications"]
        declared = request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        if "taskIds" in wants:
            assert "io.modelcontextprotocol/tasks" in declared.get("extensions", {}), declared
            wants["taskIds"] = [task for task in wants["taskIds"] if task in self.tasks]
        say("notifications/subscriptions/acknowledged", {"notifications": wants, "_meta": {SUBSCRIPTION: request["id"]}})
        with self.lock:
            self.listeners[request["id"]] = (say, wants)


def message(request_id, answering):
    try:
        return {"jsonrpc": "2.0", "id": request_id, "result": answering()}
    except Failed as failed:
        return {"jsonrpc": "2.0", "id": request_id, "error": {"code": failed.code, "message": str(failed)}}


def notification(method, params):
    return {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})


def over_stdio(server):
    writing = threading.Lock()

    def write(line):
        with writing:
            print(json.dumps(line), flush=True)

    say = lambda method, params: write(notification(method, params))
    if server.era == "legacy":
        server.listeners[None] = (say, {})
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("method") == "notifications/cancelled":
            server.listeners.pop(request["params"]["requestId"], None)
        elif "id" in request and "method" in request:
            if request["method"] == "subscriptions/listen" and server.era == "modern":
                server.listens(request, say)
            else:
                write(message(request["id"], lambda: server.answer(request, say)))


class Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_ref = None
    opened = 0

    def do_POST(self):
        server = self.server_ref
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in body or "method" not in body:
            return self.whole(202, b"")
        if server.era == "modern" and body["method"] != "initialize":
            assert self.headers["mcp-method"] == body["method"], dict(self.headers)
        if body["method"] == "subscriptions/listen" and server.era == "modern":
            return self.stream(lambda say: server.listens(body, say), body["id"])
        before = []
        answer = message(body["id"], lambda: server.answer(body, lambda *said: before.append(notification(*said))))
        if before:
            self.begin()
            for line in [*before, answer]:
                self.chunk(line)
            self.wfile.write(b"0\r\n\r\n")
            return None
        headers = {"mcp-session-id": "s1"} if body["method"] == "initialize" else {}
        return self.whole(200, json.dumps(answer).encode(), headers)

    def do_GET(self):
        if self.server_ref.era == "modern":
            return self.whole(405, b"")
        Door.opened += 1
        last = self.headers.get("last-event-id")
        return self.stream(lambda say: self.listens(say, last), None, first=f"{Door.opened}-{last}")

    def listens(self, say, _last):
        with self.server_ref.lock:
            self.server_ref.listeners[None] = (say, {})

    def stream(self, begin, listen, first=None):
        lines = queue.Queue()
        self.begin()
        if first is not None:
            self.chunk(None)
        begin(lambda method, params: lines.put(notification(method, params)))
        n = 0
        try:
            while True:
                n += 1
                try:
                    self.chunk(lines.get(timeout=1), f"e{n}" if listen is None else None)
                except queue.Empty:
                    self.chunk(None)
        except OSError:
            with self.server_ref.lock:
                self.server_ref.listeners.pop(listen, None)

    def begin(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def chunk(self, line, event_id=None):
        text = ": nothing\n\n" if line is None else f"data: {json.dumps(line)}\n\n"
        text = (f"id: {event_id}\n" if event_id else "") + text
        self.wfile.write(f"{len(text.encode()):x}\r\n{text}\r\n".encode())
        self.wfile.flush()

    def whole(self, status, body, headers=None):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    arguments = sys.argv[1:]
    name, rest = arguments[0], arguments[1:]
    value = lambda flag, otherwise: rest[rest.index(flag) + 1] if flag in rest else otherwise
    server = Server(name, value("--era", "legacy"), int(value("--entries", "0")), value("--tasks", None))
    if "--http" not in rest:
        return over_stdio(server)
    Door.server_ref = server
    at = rest.index("--http")
    port = int(rest[at + 2]) if len(rest) > at + 2 and rest[at + 2].isdigit() else 0
    http = ThreadingHTTPServer(("127.0.0.1", port), Door)
    http.daemon_threads = True
    with open(rest[at + 1] + ".new", "w") as file:
        file.write(str(http.server_address[1]))
    os.rename(rest[at + 1] + ".new", rest[at + 1])
    http.serve_forever()


main()
