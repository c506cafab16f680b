"""The tools that the suite calls."""

import anyio
import mcp_types as types
from mcp.server.subscriptions import PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError

import questions
from state import AUDIO, BUS, INVALID_PARAMS, embedded, image, text

MISSING_CAPABILITY = -32021
EMPTY = {"type": "object", "properties": {}}


def takes(**fields):
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in fields.items()}, "required": list(fields)}


JSON_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "address",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}, "phone": {"type": "string"}},
    "allOf": [{"anyOf": [{"required": ["name"]}, {"required": ["phone"]}]}],
    "if": {"required": ["address"]},
    "then": {"required": ["name"]},
    "else": {},
    "additionalProperties": False,
}

MIRRORED = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}, "required": ["region"]}


def says(*content):
    return {"content": list(content)}


async def simple_text(ctx, args):
    return says(text("This is a simple text response for testing."))


async def image_content(ctx, args):
    return says(image())


async def audio_content(ctx, args):
    return says({"type": "audio", "data": AUDIO, "mimeType": "audio/wav"})


async def embedded_resource(ctx, args):
    return says(embedded("test://embedded-resource", "This is an embedded resource content."))


async def mixed(ctx, args):
    data = embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return says(text("Multiple content types test:"), image(), data)


async def logging(ctx, args):
    for words in ["Tool execution started", "Tool processing data", "Tool execution completed"]:
        await ctx.session.send_log_message("info", words, related_request_id=ctx.request_id)
        await anyio.sleep(0.02)
    return says(text("It logged what it did."))


async def progress(ctx, args):
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"Completed step {done} of 100")
        await anyio.sleep(0.02)
    return says(text("It told how far it was."))


async def failing(ctx, args):
    return {**says(text("This tool intentionally returns an error for testing")), "isError": True}


async def missing_capability(ctx, args):
    if not ctx.session.check_client_capability(types.ClientCapabilities(sampling=types.SamplingCapability())):
        raise MCPError(MISSING_CAPABILITY, "this tool needs sampling", {"requiredCapabilities": {"sampling": {}}})
    return says(text("The client can sample."))


async def tools_change(ctx, args):
    await BUS.publish(ToolsListChanged())
    return says(text("The tools changed."))


async def prompts_change(ctx, args):
    await BUS.publish(PromptsListChanged())
    return says(text("The prompts changed."))


async def reconnection(ctx, args):
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    await anyio.sleep(0.2)
    return says(text("It went on after the stream was closed."))


async def schema(ctx, args):
    return says(text(f"It took {sorted(args)}."))


TOOLS = {
    "test_simple_text": (simple_text, EMPTY),
    "test_image_content": (image_content, EMPTY),
    "test_audio_content": (audio_content, EMPTY),
    "test_embedded_resource": (embedded_resource, EMPTY),
    "test_multiple_content_types": (mixed, EMPTY),
    "test_tool_with_logging": (logging, EMPTY),
    "test_logging_tool": (logging, EMPTY),
    "test_tool_with_progress": (progress, EMPTY),
    "test_error_handling": (failing, EMPTY),
    "test_missing_capability": (missing_capability, EMPTY),
    "test_trigger_tool_change": (tools_change, EMPTY),
    "test_trigger_prompt_change": (prompts_change, EMPTY),
    "test_reconnection": (reconnection, EMPTY),
    "json_schema_2020_12_tool": (schema, JSON_SCHEMA),
    "test_mirrored_argument": (schema, MIRRORED),
    "test_sampling": (questions.sampling, takes(prompt="string")),
    "test_elicitation": (questions.elicitation, takes(message="string")),
    "test_elicitation_sep1034_defaults": (questions.defaults, EMPTY),
    "test_elicitation_sep1330_enums": (questions.enums, EMPTY),
    **{name: (tool, EMPTY) for name, tool in questions.ROUNDS.items()},
}


async def listed(ctx, params):
    return {
        "tools": [{"name": name, "description": name, "inputSchema": schema} for name, (_, schema) in TOOLS.items()]
    }


async def call(ctx, params):
    if params.name not in TOOLS:
        raise MCPError(INVALID_PARAMS, f"there is no tool {params.name}")
    tool, _ = TOOLS[params.name]
    return await tool(ctx, params.arguments or {})
