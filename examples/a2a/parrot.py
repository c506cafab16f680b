"""A stdio MCP server with one tool that says again what it is told. The beginning of `how`, or else of the text, chooses the way, in the
words of the A2A compatibility kit: as a text, as data, as a file, slowly, not at all, or after a question.

It speaks MCP 2026-07-28: a call that needs an answer ends by asking, and comes again with it, so nothing is remembered here."""

import json
import sys
import threading
import time

VERSION = "2026-07-28"
TOOL = {
    "name": "say",
    "description": "says again what it is told",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "how": {"type": "string"}},
        "required": ["text"],
    },
}
WORDS = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
LOCK = threading.Lock()


def send(message):
    with LOCK:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def link(name):
    uri = f"https://example.com/{name}"
    return {"content": [{"type": "resource_link", "uri": uri, "name": name, "mimeType": "text/plain"}]}


def file(name):
    resource = {"uri": f"file:///{name}", "mimeType": "text/plain", "blob": "dGNr"}
    return {"content": [{"type": "resource", "resource": resource}]}


def ask(question, state):
    request = {"method": "elicitation/create", "params": question}
    return {"resultType": "input_required", "inputRequests": {"q": request}, "requestState": state}


def failed(words):
    return {**text(words), "isError": True}


def asked(words, params):
    """Asks what to say, once."""
    given = params.get("inputResponses", {}).get("q")
    if given is None:
        return ask({"mode": "form", "message": "What should be said?", "requestedSchema": WORDS}, "said")
    return text(given["content"]["text"]) if given.get("action") == "accept" else failed("nobody answered")


def turns(words, params):
    """Asks again until it is told that it is done."""
    given = params.get("inputResponses", {}).get("q")
    said = (given or {}).get("content", {}).get("text", "")
    if given is not None and given.get("action") != "accept":
        return failed("nobody answered")
    if said.startswith("done"):
        return text("done")
    turn = int(params.get("requestState", "0")) + 1
    return ask({"mode": "form", "message": "What else?", "requestedSchema": WORDS}, str(turn))


def signed_in(words, params):
    """Somebody has to sign in first."""
    if "inputResponses" in params:
        return text(words)
    return ask({"mode": "url", "message": "Sign in first.", "url": "https://example.com/sign-in"}, "signed in")


def slowly(seconds, words):
    time.sleep(seconds)
    return text(words)


# The longest beginning that fits counts.
WAYS = {
    "tck-artifact-text": lambda words, _: text("Generated text content"),
    "tck-artifact-data": lambda words, _: {**text("data"), "structuredContent": {"key": "value", "count": 42}},
    "tck-artifact-file-url": lambda words, _: link("output.txt"),
    "tck-artifact-file": lambda words, _: file("output.txt"),
    "tck-stream-artifact-file": lambda words, _: file("output.txt"),
    "tck-stream": lambda words, _: slowly(0.5, words),
    "tck-message-response": lambda words, _: text("Direct message response"),
    "tck-delayed-complete": lambda words, _: slowly(2, words),
    "tck-long-running": lambda words, _: slowly(3, words),
    "tck-cancel": lambda words, _: slowly(20, words),
    "test-resubscribe-message-id": lambda words, _: slowly(5, words),
    "tck-task-failure": lambda words, _: failed("it failed, as it was told"),
    "tck-input-required": asked,
    "tck-multi-turn": turns,
    "tck-auth-required": signed_in,
}


def say(params):
    arguments = params.get("arguments", {})
    words, how = arguments.get("text", ""), arguments.get("how", "")
    fitting = [way for way in WAYS if how.startswith(way) or words.startswith(way)]
    if not fitting:
        return text(words)
    return WAYS[max(fitting, key=len)](words, params)


def answer(method, params):
    if method == "server/discover":
        found = {"supportedVersions": [VERSION], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
        return {**found, "resultType": "complete"}
    if method == "tools/list":
        return {"tools": [TOOL], "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
    if method == "tools/call":
        return {"resultType": "complete", **say(params)}
    return None


def handle(message):
    result = answer(message["method"], message.get("params", {}))
    if result is None:
        send({"id": message["id"], "error": {"code": -32601, "message": "there is no such method"}})
    else:
        send({"id": message["id"], "result": result})


for line in sys.stdin:
    message = json.loads(line)
    if "method" in message and "id" in message:
        threading.Thread(target=handle, args=(message,), daemon=True).start()
