"""The client that the conformance suite tests, directly and through Amends: `client.py URL`.

It is the Python SDK, told to use whatever the server offers once: every tool, prompt and resource. The suite watches from
its own server, and says in the environment which scenario and which revision it runs.
"""

import json
import logging
import os
import sys

import anyio
import mcp_types as types
from mcp.client import Client

LEGACY = "2025-11-25"


async def main(url):
    logging.disable()
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    mode = "legacy" if os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION") == LEGACY else "auto"
    async with Client(url, mode=mode, elicitation_callback=accept, client_info=types.Implementation(name="amends-conformance", version="0")) as client:
        await use_tools(client, context)
        if client.server_capabilities.prompts is not None:
            for prompt in (await client.list_prompts()).prompts:
                await client.get_prompt(prompt.name, {argument.name: "x" for argument in prompt.arguments or []})
        if client.server_capabilities.resources is not None:
            for resource in (await client.list_resources()).resources:
                await client.read_resource(str(resource.uri))


async def use_tools(client, context):
    """Calls every tool once: as the suite wants it called, or with what its schema takes."""
    tools = (await client.list_tools()).tools
    schemas = {tool.name: tool.input_schema for tool in tools}
    wanted = {call["name"]: call["arguments"] for call in context.get("toolCalls", [])}
    for name, schema in schemas.items():
        arguments = wanted.get(name) or {field: example(schema["properties"][field]) for field in schema.get("required", [])}
        if name == "json_schema_echo":
            arguments = {"schema": schemas["json_schema_2020_12_tool"]}
        elif name == "add_numbers":
            arguments = {"a": 5, "b": 3}
        await client.call_tool(name, arguments)


def example(schema):
    return {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}, "null": None}.get(schema.get("type"), "x")


async def accept(context, params):
    """A user who takes what is proposed, and confirms."""
    fields = getattr(params, "requested_schema", {}).get("properties", {})
    content = {name: field["default"] for name, field in fields.items() if "default" in field}
    content |= {name: True for name, field in fields.items() if field.get("type") == "boolean" and name not in content}
    return types.ElicitResult(action="accept", content=content)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
