"""A PydanticAI agent whose tools come through Amends: started by the agent, or from a gateway that runs."""

import asyncio

from amends_pydantic_ai import AmendsToolset
from pydantic_ai import Agent
from pydantic_ai.tools import DeferredToolRequests

COMMAND = ["amends", "wrap", "--config", "/path/to/wrap.toml", "--", "python3", "/path/to/shop.py"]
URL = "http://127.0.0.1:7070/mcp"

shop = AmendsToolset[None].connect(COMMAND)
gateway = AmendsToolset[None].connect(URL)


async def main() -> None:
    # One of them: `toolsets=[gateway]` for every upstream of `amends serve`.
    agent = Agent("openai:gpt-5", toolsets=[shop], output_type=[str, DeferredToolRequests])
    async with agent:
        result = await agent.run("What is the status of order ord_1?")
    print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
