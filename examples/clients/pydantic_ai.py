"""A PydanticAI agent whose tools come through Amends: started by the agent, or from a gateway that runs."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPServerStdio, MCPServerStreamableHTTP

COMMAND = ["amends", "wrap", "--config", "/path/to/wrap.toml", "--", "python3", "/path/to/shop.py"]
URL = "http://127.0.0.1:7070/mcp"

shop = MCPServerStdio(COMMAND[0], args=COMMAND[1:], timeout=60)
gateway = MCPServerStreamableHTTP(URL)


async def main() -> None:
    # One of them: `toolsets=[gateway]` for every upstream of `amends serve`.
    agent = Agent("openai:gpt-5", toolsets=[shop])
    async with agent:
        result = await agent.run("What is the status of order ord_1?")
    print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
