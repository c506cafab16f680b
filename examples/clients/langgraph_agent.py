"""A LangGraph agent whose tools come through Amends: started by the agent, or from a gateway that runs."""

import asyncio

from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.prebuilt import create_react_agent

COMMAND = ["amends", "wrap", "--config", "/path/to/wrap.toml", "--", "python3", "/path/to/shop.py"]
URL = "http://127.0.0.1:7070/mcp"

# One of them: `gateway` has every upstream of `amends serve`.
SERVERS = {
    "shop": {"transport": "stdio", "command": COMMAND[0], "args": COMMAND[1:]},
    "gateway": {"transport": "streamable_http", "url": URL},
}


async def main() -> None:
    client = MultiServerMCPClient({"shop": SERVERS["shop"]})
    agent = create_react_agent("openai:gpt-5", await client.get_tools())
    question = {"messages": [{"role": "user", "content": "What is the status of order ord_1?"}]}
    answer = await agent.ainvoke(question)
    print(answer["messages"][-1].content)


if __name__ == "__main__":
    asyncio.run(main())
