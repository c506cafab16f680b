"""An agent of the OpenAI Agents SDK whose tools come through Amends: started by the agent, or from a gateway that runs."""

import asyncio

from agents import Agent, Runner
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

COMMAND = ["amends", "wrap", "--config", "/path/to/wrap.toml", "--", "python3", "/path/to/shop.py"]
URL = "http://127.0.0.1:7070/mcp"

shop = MCPServerStdio(params={"command": COMMAND[0], "args": COMMAND[1:]}, client_session_timeout_seconds=60)
gateway = MCPServerStreamableHttp(params={"url": URL}, client_session_timeout_seconds=60)


async def main() -> None:
    # One of them: `gateway` has every upstream of `amends serve`.
    async with shop as server:
        agent = Agent(name="clerk", instructions="Help with orders.", mcp_servers=[server])
        result = await Runner.run(agent, "What is the status of order ord_1?")
    print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main())
