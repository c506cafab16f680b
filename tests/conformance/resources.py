"""The resources that the suite reads."""

import json
import re

from mcp.shared.exceptions import MCPError

from state import IMAGE, INVALID_PARAMS

TEMPLATE = re.compile(r"test://template/([^/]+)/data")


async def listed(ctx, params):
    def entry(name, words, mime):
        return {"uri": f"test://{name}", "name": name, "description": words, "mimeType": mime}

    return {
        "resources": [
            entry("static-text", "A text that stays", "text/plain"),
            entry("static-binary", "An image that stays", "image/png"),
            entry("watched-resource", "A text that can be watched", "text/plain"),
        ]
    }


async def templates(ctx, params):
    entry = {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}
    return {"resourceTemplates": [entry]}


async def read(ctx, params):
    uri = str(params.uri)
    match uri:
        case "test://static-text":
            found = {"mimeType": "text/plain", "text": "This is the content of the static text resource."}
        case "test://static-binary":
            found = {"mimeType": "image/png", "blob": IMAGE}
        case "test://watched-resource":
            found = {"mimeType": "text/plain", "text": "watched"}
        case _ if filled := TEMPLATE.fullmatch(uri):
            words = json.dumps({"id": filled[1], "templateTest": True, "data": f"Data for ID: {filled[1]}"})
            found = {"mimeType": "application/json", "text": words}
        case _:
            raise MCPError(INVALID_PARAMS, "there is no such resource", {"uri": uri})
    return {"contents": [{"uri": uri, **found}]}
