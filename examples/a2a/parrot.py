"""A stdio MCP server with one tool that says again what it is told. The beginning of `id` chooses how, in the words of the A2A
compatibility kit: as a text, as data, as a file, slowly, or after a question."""

import json
import sys
import time

TOOL = {
    "name": "say",
    "description": "says again what it is told",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "id": {"type": "string"}},
        "required": ["text"],
    },
}
QUESTION = {
    "mode": "form",
    "message": "What should be said?",
    "requestedSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
}


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def ask():
    send({"id": "question", "method": "elicitation/create", "params": QUESTION})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "question":
            said = message.get("result", {})
            return said.get("content", {}).get("text") if said.get("action") == "accept" else None
    return None


def say(words, how):
    if how.startswith("tck-artifact-data"):
        return {**text(words), "structuredContent": {"text": words}}
    if how.startswith("tck-artifact-file-url"):
        return {"content": [{"type": "resource_link", "uri": "https://example.com/said.txt", "name": "said.txt", "mimeType": "text/plain"}]}
    if how.startswith("tck-artifact-file"):
        return {"content": [{"type": "resource", "resource": {"uri": "file:///said.txt", "mimeType": "text/plain", "blob": "c2FpZA=="}}]}
    if how.startswith("tck-input-required"):
        words = ask()
        return text(words) if words is not None else {**text("nobody answered"), "isError": True}
    if how.startswith("test-resubscribe-message-id"):
        time.sleep(5)
    elif how.startswith("tck-stream"):
        time.sleep(0.5)
    return text(words)


def answer(method, params):
    if method == "initialize":
        about = {"name": "parrot", "version": "1.0"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        arguments = params.get("arguments", {})
        return say(arguments.get("text", ""), arguments.get("id", ""))
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "method" in message and "id" in message:
        send({"id": message["id"], "result": answer(message["method"], message.get("params", {}))})
