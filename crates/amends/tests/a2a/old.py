"""What a client of 0.3 does, with the transports for 0.3 of the A2A SDK, over JSON-RPC and over HTTP and JSON.

Usage: old.py URL"""

import asyncio
import sys

import httpx
from a2a.client import A2ACardResolver
from a2a.compat.v0_3.jsonrpc_transport import CompatJsonRpcTransport
from a2a.compat.v0_3.rest_transport import CompatRestTransport
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError
from google.protobuf.json_format import MessageToDict, ParseDict

URL = sys.argv[1]


def message(id, order, task=None, **more):
    call = {"tool": "charge_card", "args": {"order": order, "amount": 5}}
    made = {"messageId": id, "role": "ROLE_USER", "parts": [{"data": call}], **more}
    return ParseDict({"message": made, "configuration": {}}, pb.SendMessageRequest())


def answer(id, task):
    made = {"messageId": id, "role": "ROLE_USER", "taskId": task, "parts": [{"data": {"choice": "approve"}}]}
    return ParseDict({"message": made, "configuration": {}}, pb.SendMessageRequest())


async def refused(kind, asked):
    try:
        await asked
    except kind:
        return
    raise AssertionError(f"not refused with {kind.__name__}")


async def check(client, name) -> None:
    asks = (await client.send_message(message(f"m1-{name}", f"ord_{name}"))).task
    assert asks.status.state == pb.TaskState.TASK_STATE_INPUT_REQUIRED, asks
    told = MessageToDict(asks)["status"]["message"]["parts"]
    assert told[0]["text"] and told[1]["data"]["responseSchema"]["properties"]["choice"], told
    assert (await client.get_task(pb.GetTaskRequest(id=asks.id))).status.state == asks.status.state
    done = (await client.send_message(answer(f"m2-{name}", asks.id))).task
    assert done.id == asks.id and done.status.state == pb.TaskState.TASK_STATE_COMPLETED, done
    envelope = MessageToDict(done)["artifacts"][0]["parts"][0]["data"]
    assert envelope["status"] == "success", envelope
    events = [event async for event in client.send_message_streaming(message(f"m3-{name}", f"ord_{name}_2"))]
    assert events[0].HasField("task"), events
    last = events[-1].status_update.status.state or events[-1].task.status.state
    assert last == pb.TaskState.TASK_STATE_INPUT_REQUIRED, "a stream of 0.3 ends where somebody is asked"
    task = events[0].task.id
    gone = await client.cancel_task(pb.CancelTaskRequest(id=task))
    assert gone.status.state == pb.TaskState.TASK_STATE_CANCELED, gone
    await refused(TaskNotCancelableError, client.cancel_task(pb.CancelTaskRequest(id=task)))
    await refused(TaskNotFoundError, client.get_task(pb.GetTaskRequest(id="ses_nobody")))
    push = pb.TaskPushNotificationConfig(task_id=task, id="p", url="http://127.0.0.1:1/x")
    kept = await client.create_task_push_notification_config(push)
    assert (kept.task_id, kept.id, kept.url) == (task, "p", push.url), kept
    got = await client.get_task_push_notification_config(pb.GetTaskPushNotificationConfigRequest(task_id=task, id="p"))
    assert got.url == push.url, got
    card = await client.get_extended_agent_card(pb.GetExtendedAgentCardRequest())
    assert card.name == "amends", card
    print(f"{name} holds")


async def main() -> None:
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, URL).get_agent_card()
        at = {face.protocol_binding: face.url for face in card.supported_interfaces if face.protocol_version == "0.3"}
        await check(CompatJsonRpcTransport(http, card, at["JSONRPC"]), "jsonrpc")
        await check(CompatRestTransport(http, card, at["HTTP+JSON"]), "rest")


asyncio.run(main())
