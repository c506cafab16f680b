"""What the parts of the server share."""

import base64
import hmac
import json
import os

from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.exceptions import MCPError

BUS = InMemorySubscriptionBus()
INVALID_PARAMS = -32602

# One pixel, and one sample.
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
AUDIO = base64.b64encode(
    b"RIFF" + (38).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    + bytes([1, 0, 1, 0, 0x40, 0x1F, 0, 0, 0x80, 0x3E, 0, 0, 2, 0, 16, 0]) + b"data" + (2).to_bytes(4, "little") + bytes(2)
).decode()

SECRET = os.urandom(32)


def text(words):
    return {"type": "text", "text": words}


def image():
    return {"type": "image", "data": IMAGE, "mimeType": "image/png"}


def embedded(uri, words, mime="text/plain"):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": words}}


def sealed(state):
    """A request state that cannot be changed unseen."""
    payload = base64.urlsafe_b64encode(json.dumps(state).encode()).decode()
    return f"{payload}.{hmac.digest(SECRET, payload.encode(), 'sha256').hex()}"


def unsealed(token):
    """What was sealed, or an error for the client."""
    payload, _, mark = (token or "").partition(".")
    if not hmac.compare_digest(hmac.digest(SECRET, payload.encode(), "sha256").hex(), mark):
        raise MCPError(INVALID_PARAMS, "the request state was not made here")
    return json.loads(base64.urlsafe_b64decode(payload))


def asks(requests, state=None):
    """The answer that asks the client for something first."""
    answer = {"resultType": "input_required", "inputRequests": requests}
    return answer if state is None else {**answer, "requestState": sealed(state)}


def form(message, **fields):
    """A question to the user, with one required field."""
    properties = {name: {"type": kind} for name, kind in fields.items()}
    schema = {"type": "object", "properties": properties, "required": list(fields)}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sample(words, tokens=100):
    """A question to the client's model."""
    messages = [{"role": "user", "content": text(words)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}}


ROOTS = {"method": "roots/list", "params": {}}


def responses(ctx):
    """What the client answered, by the name of its question."""
    return (ctx.params or {}).get("inputResponses") or {}
