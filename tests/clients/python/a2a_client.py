"""A driver around the A2A SDK's client: one operation for each line of standard input, one line of JSON for each answer."""

import asyncio
import json
import sys

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, ParseDict


async def main() -> None:
    url, options = sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    headers = {"authorization": f"Bearer {options['token']}"} if "token" in options else {}
    http = httpx.AsyncClient(timeout=60, headers=headers)
    config = ClientConfig(
        httpx_client=http,
        streaming=options.get("streaming", False),
        polling=options.get("polling", False),
        supported_protocol_bindings=[options.get("binding", "JSONRPC")],
        use_client_preference=True,
    )
    client = await ClientFactory(config).create_from_url(url)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        asked = json.loads(line)
        try:
            answer = await do(client, asked)
        except Exception as error:  # noqa: BLE001
            answer = {"failed": type(error).__name__, "message": str(error), "data": getattr(error, "data", None)}
        print(json.dumps(answer), flush=True)
    await client.close()


async def do(client, asked):
    op, params = asked["op"], asked.get("params", {})
    if op == "send":
        request = ParseDict(params, pb.SendMessageRequest())
        return [MessageToDict(event) async for event in client.send_message(request)]
    if op == "get":
        return MessageToDict(await client.get_task(ParseDict(params, pb.GetTaskRequest())))
    if op == "list":
        return MessageToDict(await client.list_tasks(ParseDict(params, pb.ListTasksRequest())))
    if op == "cancel":
        return MessageToDict(await client.cancel_task(ParseDict(params, pb.CancelTaskRequest())))
    if op == "subscribe":
        request = ParseDict(params, pb.SubscribeToTaskRequest())
        return [MessageToDict(event) async for event in client.subscribe(request)]
    if op == "push":
        request = ParseDict(params, pb.TaskPushNotificationConfig())
        return MessageToDict(await client.create_task_push_notification_config(request))
    if op == "card":
        return MessageToDict(await client.get_extended_agent_card(pb.GetExtendedAgentCardRequest()))
    raise ValueError(op)


asyncio.run(main())
