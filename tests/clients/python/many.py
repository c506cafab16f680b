"""A tour of a gateway with several upstreams by the Python `mcp` SDK: what it found, as one JSON object.

Usage: many.py --era legacy|modern URL
"""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
from mcp.client import Client
from mcp_types import PromptReference, ResourceTemplateReference

MODES = {"legacy": "legacy", "modern": "2026-07-28"}
PATIENCE = 60


async def main() -> None:
    era, url = sys.argv[2], sys.argv[3]
    seen: dict[str, Any] = {"heard": []}
    changed = anyio.Event()

    async def hear(message: Any) -> None:
        root = getattr(message, "root", message)
        method = getattr(root, "method", None)
        if method:
            seen["heard"].append(method)
        if method == "notifications/tools/list_changed":
            changed.set()

    async with Client(url, mode=MODES[era], message_handler=hear) as client:
        seen["protocol"] = client.protocol_version
        tools = [tool.name for tool in (await client.list_tools()).tools]
        seen["tools"] = tools
        seen["prompts"] = [prompt.name for prompt in (await client.list_prompts()).prompts]
        seen["resources"] = [str(it.uri) for it in (await client.list_resources()).resources]
        templates = (await client.list_resource_templates()).resource_templates
        seen["templates"] = [it.uri_template for it in templates]
        names = sorted({tool.split("__")[0] for tool in tools})
        seen["reads"] = {}
        for name in names:
            prompt = await client.get_prompt(f"{name}__greet")
            read = await client.read_resource(f"{name}://items/1")
            reference = PromptReference(type="ref/prompt", name=f"{name}__greet")
            completed = await client.complete(reference, {"name": "x", "value": "v"})
            template = ResourceTemplateReference(type="ref/resource", uri=name + "://items/{id}")
            formed = await client.complete(template, {"name": "id", "value": "w"})
            called = await client.call_tool(f"{name}__echo", {"x": 1})
            seen["reads"][name] = [
                prompt.messages[0].content.text,
                read.contents[0].text,
                completed.completion.values[0],
                formed.completion.values[0],
                json.loads(called.content[0].text)["at"],
            ]
        if era == "modern":
            await listens(client, names, seen)
        else:
            await client.set_logging_level("info")
            with anyio.fail_after(PATIENCE):
                while not changed.is_set():
                    await client.call_tool(f"{names[0]}__change", {"n": len(seen["heard"])})
                    with anyio.move_on_after(1):
                        await changed.wait()
        seen["after"] = [tool.name for tool in (await client.list_tools()).tools]
    print(json.dumps(seen))


async def listens(client: Client, names: list[str], seen: dict[str, Any]) -> None:
    uri = f"{names[0]}://one"
    async with client.listen(tools_list_changed=True, resource_subscriptions=[uri]) as subscription:
        kinds: set[str] = set()
        async with anyio.create_task_group() as group:

            async def stir() -> None:
                n = 0
                while True:
                    n += 1
                    await client.call_tool(f"{names[0]}__change", {"n": n})
                    await client.call_tool(f"{names[0]}__touch", {"n": n, "uri": uri})
                    await anyio.sleep(0.5)

            group.start_soon(stir)
            with anyio.fail_after(PATIENCE):
                async for event in subscription:
                    kinds.add(type(event).__name__)
                    if kinds == {"ToolsListChanged", "ResourceUpdated"}:
                        break
            group.cancel_scope.cancel()
        seen["heard"] = sorted(kinds)


anyio.run(main)
