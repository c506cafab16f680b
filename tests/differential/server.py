"""An MCP server without any SDK: each of its answers is written here, byte for byte.

    server.py LOG ERA --stdio
    server.py LOG ERA --http       prints its address when it listens

Every message that arrives is added to LOG as it came, one on a line; over HTTP with the MCP headers it came with.
The tool `slow` is never answered. Over HTTP, LOG says when the client closed the connection on which it waits. The tool `cut` is
answered only to whoever asks for the rest of its stream.
"""

import json
import select
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOG, ERA, HOW = sys.argv[1:4]
MODERN = ERA == "modern"
PROGRESS = 1000

# What a stateless server says in every answer, and in those that may be kept; not in the order that others use.
STAMP = '"resultType":"complete",' if MODERN else ""
CACHED = '"cacheScope":"public","resultType":"complete","ttlMs":6.0e4,' if MODERN else ""


def tool(name, more=""):
    return '{"inputSchema":{"type":"object","x-order":[1.0,1e5]}%s,"name":"%s"}' % (more, name)


PAGES = {
    None: '{%s"x-page":1.0,"tools":[%s,%s],"nextCursor":"\\u00e9 / \\/ ="}'
    % (
        CACHED,
        tool("numbers", ',"annotations":{"readOnlyHint":true,"x":null},"execution":{"taskSupport":"optional"},"icons":[]'),
        tool("escapes", ',"x-\\u00e9":"\\u00e9 é","_meta":{"vendor/n":1.0}'),
    ),
    "é / / =": '{%s"tools":[%s],"x-last":null}'
    % (CACHED, ",".join(tool(name) for name in ("nulls", "kinds", "meta", "big", "deep", "echo", "talk", "slow", "cut"))),
}

RESULTS = {
    "numbers": '"structuredContent":{"one":1.0,"exp":1e2,"EXP":1E+05,"big":10000000000000000000001,"zero":-0,"small":0.10},'
    '"content":[{"type":"text","text":"n"}],"isError":false',
    "escapes": '"content":[{"text":"\\u00e9 é \\/ / \\u2028 \\ud83d\\ude00 😀 \\u0000","type":"text"}]',
    "nulls": ' "content" : [ ] , "structuredContent":{"z":null,"a":{}},"nextCursor":null\t,"isError" : false ',
    "kinds": '"vendor/x":{"b":1,"a":[2.0]},"content":[{"type":"hologram","beam":1.0,"z":1,"a":2},'
    '{"type":"text","text":"t","x":{},"annotations":{"priority":1.00,"audience":[]}},{"x":0,"type":"resource_link","uri":"x://y","name":"n"}]',
    "meta": '"_meta":{"vendor/trace":"t","n":1.0,"io.example/deep":{"b":[null]}},"content":[]',
    "big": '"content":[{"type":"text","text":"%s"}]' % ("é" * 200_000),
    "deep": '"content":[],"structuredContent":{"deep":%s%s}' % ("[" * 100, "]" * 100),
}

OTHERS = {
    "prompts/list": '{%s"prompts":[{"name":"p","x":1.0,"arguments":[{"required":false,"name":"a"}]},{"title":"\\u00e9","name":"q"}],"x":null}' % CACHED,
    "prompts/get": '{%s"messages":[{"role":"user","content":{"type":"hologram","n":1e2}}],"x":1e2,"description":null}' % STAMP,
    "resources/list": '{%s"resources":[{"uri":"x://y","name":"n","size":1.0,"_meta":{"k":1e1}}]}' % CACHED,
    "resources/templates/list": '{%s"resourceTemplates":[{"x":1.0,"uriTemplate":"x://{+id}","name":"t"}]}' % CACHED,
    "resources/read": '{%s"contents":[{"uri":"x://y","text":"\\u00e9","x":1.0},{"blob":"AA==","uri":"x://y"}]}' % CACHED,
    "resources/subscribe": "{ }",
    "resources/unsubscribe": '{"x":1.0}',
    "completion/complete": '{%s"completion":{"values":["\\u0061"],"total":1.0,"x":null}}' % STAMP,
    "logging/setLevel": '{"x":1.0}',
    "ping": "{}",
    "initialize": '{"serverInfo":{"version":"1.0","name":"raw","x":1.0},"capabilities":{"tools":{},"prompts":{},'
    '"resources":{"subscribe":true},"completions":{},"logging":{},"experimental":{"x":{"n":1.0}}},"protocolVersion":"2025-11-25","instructions":"\\u00e9"}',
    "server/discover": '{%s"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{},'
    '"completions":{},"experimental":{"x":{"n":1.0}}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"raw","version":"1.0"}}}' % CACHED,
}
FOREIGN = {"initialize"} if MODERN else {"server/discover"}
GONE = {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "initialize"}


def respond(line):
    """The messages that answer one message, in order; none for a notification."""
    message = json.loads(line)
    if "method" not in message or "id" not in message or is_slow(message):
        return
    yield from answers(message, json.dumps(message["id"]), line)


def is_slow(message):
    return message.get("method") == "tools/call" and message["params"]["name"] == "slow"


def answers(message, id, line):
    method, params = message["method"], message.get("params") or {}
    failure = '{"jsonrpc":"2.0","id":%s,"error":{"data":%s,"message":"%s","code":%d}}'
    if method in FOREIGN or (MODERN and method in GONE):
        yield failure % (id, '{"n":1.0}', "not of this era", -32601)
    elif method == "tools/list":
        yield '{"result":%s,"id":%s,"jsonrpc":"2.0"}' % (PAGES[params.get("cursor")], id)
    elif method == "tools/call":
        yield from call(params, id, line)
    elif method == "resources/read" and params["uri"] == "x://missing":
        yield failure % (id, '{"uri":"x://missing","x":[1.0,null]}', "no \\u00e9 \\/ here", -32602)
    elif method == "prompts/get" and params["name"] == "q":
        yield failure % (id, "null", "", -31999)
    elif method in OTHERS:
        yield '{"result":%s,"id":%s,"jsonrpc":"2.0"}' % (OTHERS[method], id)
    else:
        yield failure % (id, '"%s"' % method, "no such method", -32601)


def call(params, id, line):
    name = params["name"]
    result = RESULTS.get(name, '"content":[]')
    if name == "echo":
        result = '"content":[{"type":"text","text":%s}]' % json.dumps(line)
    elif name == "talk":
        token = json.dumps(params["_meta"]["progressToken"])
        for n in range(PROGRESS):
            yield (
                '{"jsonrpc":"2.0","params":{"x":%d.0,"progress":%d.0,"progressToken":%s,"total":1e3,"message":"\\u00e9 %d"},'
                '"method":"notifications/progress"}' % (n, n, token, n)
            )
    yield '{"jsonrpc":"2.0","id":%s,"result":{%s%s}}' % (id, STAMP, result)


class Log:
    def __init__(self, path):
        self.file = open(path, "a", buffering=1)
        self.lock = threading.Lock()

    def add(self, line, headers=None):
        with self.lock:
            if headers is not None:
                self.file.write("# " + json.dumps(headers) + "\n")
            self.file.write(line + "\n")


log = Log(LOG)
# What comes after an event, for whoever asks for the rest of a stream.
kept = {}
# The ids of the requests that were cancelled in words.
cancelled = set()


def over_stdio():
    for line in sys.stdin:
        line = line.rstrip("\n")
        log.add(line)
        for message in respond(line):
            sys.stdout.write(message + "\n")
        sys.stdout.flush()


class Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        line = self.rfile.read(int(self.headers["content-length"])).decode()
        names = sorted(name.lower() for name in self.headers if name.lower().startswith("mcp-"))
        log.add(line, {name: self.headers[name] for name in names if name != "mcp-session-id"})
        if (message := json.loads(line)).get("method") == "notifications/cancelled":
            cancelled.add(message["params"]["requestId"])
        if is_slow(json.loads(line)):
            return self.wait(line)
        messages = respond(line)
        if '"name":"cut"' in line:
            return self.cut(next(messages))
        first = next(messages, None)
        if first is None:
            return self.head(202, "application/json", 0)
        second = next(messages, None)
        if second is None:
            status = 404 if MODERN and '"code":-32601' in first else 200
            self.head(status, "application/json", len(first.encode()), new='"serverInfo"' in first and not MODERN)
            return self.wfile.write(first.encode())
        self.head(200, "text/event-stream", None)
        for message in [first, second, *messages]:
            self.chunk("event: message\ndata: %s\n\n" % message)
        self.chunk("")

    def wait(self, line):
        """Says nothing until the client is gone, or says in words that it does not want the answer."""
        id = json.loads(line)["id"]
        self.close_connection = True
        while id not in cancelled:
            readable, _, _ = select.select([self.connection], [], [], 0.02)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                return log.add(json.dumps({"closed": id}))

    def cut(self, answer):
        """Ends the stream after an event that holds nothing but its id."""
        kept["e-1"] = answer
        self.head(200, "text/event-stream", None)
        self.chunk("id: e-1\nretry: 20\ndata:\n\n")
        self.chunk("")

    def head(self, status, kind, length, new=False):
        self.send_response(status)
        self.send_header("content-type", kind)
        if new:
            self.send_header("mcp-session-id", "s-1")
        if length is None:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(length))
        self.end_headers()

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def do_GET(self):
        answer = kept.pop(self.headers["last-event-id"], None)
        if answer is None:
            return self.head(405, "application/json", 0)
        self.head(200, "text/event-stream", None)
        self.chunk("id: e-2\ndata: %s\n\n" % answer)
        self.chunk("")

    def do_DELETE(self):
        self.head(405, "application/json", 0)

    def log_message(self, *_):
        pass


if HOW == "--stdio":
    over_stdio()
else:
    listener = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    print("listens on http://127.0.0.1:%d/mcp" % listener.server_port, flush=True)
    listener.serve_forever()
