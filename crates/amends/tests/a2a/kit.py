"""What the A2A compatibility kit asks of an agent, asked in our own words, over both bindings.

Usage: kit.py URL CHECK

A message's id chooses what the agent does with it (see examples/a2a/parrot.py). As in the kit, the same id is used for many messages. What is
answered is read by the A2A SDK's own types, which take no member that they do not know."""

import base64
import json
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import ParseDict

URL = sys.argv[1]
HTTP = httpx.Client(timeout=60, headers={"a2a-version": "1.0"})
CARD = HTTP.get(f"{URL}/.well-known/agent-card.json").json()
AT = {}
for interface in CARD["supportedInterfaces"]:
    AT.setdefault(interface["protocolBinding"], interface["url"])

OVER = {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"}
NUMBERS = {
    "TASK_NOT_FOUND": (-32001, 404),
    "TASK_NOT_CANCELABLE": (-32002, 400),
    "PUSH_NOTIFICATION_NOT_SUPPORTED": (-32003, 400),
    "UNSUPPORTED_OPERATION": (-32004, 400),
    "CONTENT_TYPE_NOT_SUPPORTED": (-32005, 400),
    "VERSION_NOT_SUPPORTED": (-32009, 400),
    "INVALID_PARAMS": (-32602, 400),
}
# How each operation is asked for over plain HTTP: the verb, and the path with what it names.
PATHS = {
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "GetTask": ("GET", "/tasks/{id}"),
    "ListTasks": ("GET", "/tasks"),
    "CancelTask": ("POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": ("POST", "/tasks/{id}:subscribe"),
    "CreateTaskPushNotificationConfig": ("POST", "/tasks/{taskId}/pushNotificationConfigs"),
    "GetTaskPushNotificationConfig": ("GET", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "ListTaskPushNotificationConfigs": ("GET", "/tasks/{taskId}/pushNotificationConfigs"),
    "DeleteTaskPushNotificationConfig": ("DELETE", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "GetExtendedAgentCard": ("GET", "/extendedAgentCard"),
}


class Refused(Exception):
    """What was answered with an error: its reason."""


class Binding:
    def __init__(self, name):
        self.name, self.url = name, AT[name]

    def request(self, method, params, headers=None):
        """The request for an operation, and its options."""
        headers = {"content-type": "application/json", **(headers or {})}
        if self.name == "JSONRPC":
            body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
            return HTTP.build_request("POST", self.url, json=body, headers=headers)
        verb, path = PATHS[method]
        rest = dict(params)
        for named in re.findall(r"{(\w+)}", path):
            path = path.replace("{" + named + "}", rest.pop(named))
        if verb == "POST":
            content = json.dumps(rest) if rest else None
            return HTTP.build_request(verb, self.url + path, content=content, headers=headers)
        query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in rest.items()}
        return HTTP.build_request(verb, self.url + path, params=query)

    def ask(self, method, params, headers=None):
        """One operation: what is answered."""
        response = HTTP.send(self.request(method, params, headers))
        body = response.json() if response.content else {}
        if self.name == "JSONRPC":
            assert response.status_code == 200 and body["jsonrpc"] == "2.0" and body["id"] in (7, None), body
            assert response.headers["content-type"].startswith("application/json")
            if "error" in body:
                raise self.refused(body["error"], body["error"]["code"], body["error"].get("data"), 0)
            return body["result"]
        if response.status_code >= 400:
            assert response.headers["content-type"].startswith("application/json")
            assert body["error"]["code"] == response.status_code, body
            raise self.refused(body["error"], response.status_code, body["error"].get("details"), 1)
        assert response.headers["content-type"] == "application/a2a+json", response.headers
        return body

    def refused(self, error, number, details, which):
        info = [detail for detail in details if detail["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"][0]
        assert isinstance(error["message"], str) and info["domain"] == "a2a-protocol.org", error
        assert info["metadata"]["amendsCode"], error
        if info["reason"] in NUMBERS:
            assert NUMBERS[info["reason"]][which] == number, error
        return Refused(info["reason"])

    def events(self, method, params):
        """One operation that is answered by a stream: each event as it comes."""
        response = HTTP.send(self.request(method, params, {"accept": "text/event-stream"}), stream=True)
        try:
            if response.headers["content-type"].startswith("text/event-stream"):
                for line in response.iter_lines():
                    if not line or line.startswith(":"):
                        continue
                    assert line.startswith("data: "), line
                    event = json.loads(line[6:])
                    if self.name == "JSONRPC":
                        assert event["jsonrpc"] == "2.0" and event["id"] == 7, event
                        event = event["result"]
                    ParseDict(event, pb.StreamResponse())
                    yield event
                return
            response.read()
            body = response.json()
            error = body["error"]
            which = 0 if self.name == "JSONRPC" else 1
            raise self.refused(error, error["code"], error.get("data") or error.get("details"), which)
        finally:
            response.close()

    def send(self, how, text="hello", task=None, context=None, **configuration):
        """Sends a message; the task, or the message, that is answered."""
        params = {"message": message(how, text, task, context)}
        if configuration:
            params["configuration"] = configuration
        answer = self.ask("SendMessage", params)
        ParseDict(answer, pb.SendMessageResponse())
        return answer.get("task") or answer["message"]

    def task(self, id, **params):
        task = self.ask("GetTask", {"id": id, **params})
        ParseDict(task, pb.Task())
        return task


BINDINGS = [Binding("JSONRPC"), Binding("HTTP+JSON")]


def message(how, text="hello", task=None, context=None):
    made = {"messageId": f"{how}-run", "role": "ROLE_USER", "parts": [{"text": text}]}
    if task:
        made["taskId"] = task
    if context:
        made["contextId"] = context
    return made


def state(task):
    return task["status"]["state"]


def is_refused(reason, what, *args, **named):
    try:
        got = what(*args, **named)
        got = list(got) if hasattr(got, "__next__") else got
    except Refused as refused:
        assert str(refused) == reason, f"{refused} and not {reason}"
        return
    raise AssertionError(f"not refused with {reason}: {got}")


def every(value, look, key=None):
    """Looks at everything in a value."""
    look(key, value)
    if isinstance(value, dict):
        for name, inner in value.items():
            every(inner, look, name)
    elif isinstance(value, list):
        for inner in value:
            every(inner, look)


def card():
    ParseDict(CARD, pb.AgentCard())
    for name in ["name", "description", "version", "capabilities", "skills", "supportedInterfaces", "defaultInputModes", "defaultOutputModes"]:
        assert CARD.get(name), name
    for interface in CARD["supportedInterfaces"]:
        assert interface["protocolBinding"] in {"JSONRPC", "HTTP+JSON", "GRPC"} and interface["url"].startswith("http")
        assert re.fullmatch(r"\d+\.\d+", interface["protocolVersion"]), interface
    at = f"{URL}/.well-known/agent-card.json"
    fetched = HTTP.get(at)
    assert "max-age" in fetched.headers["cache-control"] and fetched.headers["etag"], fetched.headers
    again = HTTP.get(at, headers={"if-none-match": fetched.headers["etag"]})
    assert (again.status_code, again.content) == (304, b""), again
    assert HTTP.get(at, headers={"if-none-match": '"another"'}).status_code == 200
    for signature in CARD["signatures"]:
        header = json.loads(base64.urlsafe_b64decode(signature["protected"] + "=="))
        assert header["alg"] == "EdDSA" and header["kid"], header
    for binding in BINDINGS:
        ParseDict(binding.ask("GetExtendedAgentCard", {}), pb.AgentCard())


def sending():
    for binding in BINDINGS:
        first, second = binding.send("tck-complete-task", "one"), binding.send("tck-complete-task", "two")
        assert state(first) == state(second) == "TASK_STATE_COMPLETED", first
        assert first["id"] != second["id"] and first["contextId"], "each message is a task of its own"
        assert second["artifacts"][0]["parts"][0]["text"] == "two", second
        assert binding.send("tck-complete-task", context="mine")["contextId"] == "mine"

        def look(key, value):
            assert key is None or not re.fullmatch(r"[a-z]+(_[a-z]+)+", key), f"{key} is not in camel case"
            if key in {"state", "role"}:
                assert isinstance(value, str), value
            if key == "timestamp":
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value), value

        every(first, look)
        began = time.monotonic()
        assert state(binding.send("tck-delayed-complete", returnImmediately=True)) not in OVER
        assert time.monotonic() - began < 1.9, "it did not wait"
        assert state(binding.send("tck-delayed-complete", returnImmediately=False)) == "TASK_STATE_COMPLETED"
        said = binding.send("tck-message-response")
        assert said["role"] == "ROLE_AGENT" and said["messageId"] and said["contextId"], said
        assert said["parts"][0]["text"] == "Direct message response", said
        events = list(binding.events("SendStreamingMessage", {"message": message("tck-message-response")}))
        assert [list(event) for event in events] == [["message"]], events
        assert state(binding.send("tck-reject-task")) == "TASK_STATE_REJECTED"
        failed = binding.send("tck-task-failure")
        assert state(failed) == "TASK_STATE_FAILED" and failed["status"]["message"]["parts"][0]["text"], failed
        more = {"message": {**message("tck-complete-task"), "ofNobody": 1}, "ofNobodyEither": 42}
        assert state(binding.ask("SendMessage", more)["task"]) == "TASK_STATE_COMPLETED"
        headers = {"a2a-extensions": "https://example.com/ext/v1,https://example.com/ext/v2"}
        assert binding.ask("SendMessage", {"message": message("tck-complete-task")}, headers)["task"]


def artifacts():
    for binding in BINDINGS:
        first = lambda how: binding.send(how)["artifacts"][0]
        assert first("tck-artifact-text")["artifactId"]
        assert first("tck-artifact-text")["parts"][0]["text"] == "Generated text content"
        assert first("tck-artifact-data")["parts"][0]["data"] == {"key": "value", "count": 42}
        for how, member in [("tck-artifact-file", "raw"), ("tck-artifact-file-url", "url")]:
            part = first(how)["parts"][0]
            assert part[member] and (part["filename"], part["mediaType"]) == ("output.txt", "text/plain"), part


def errors():
    for binding in BINDINGS:
        is_refused("TASK_NOT_FOUND", binding.task, "tck-nobody")
        is_refused("TASK_NOT_FOUND", binding.ask, "CancelTask", {"id": "tck-nobody"})
        is_refused("TASK_NOT_FOUND", binding.events, "SubscribeToTask", {"id": "tck-nobody"})
        is_refused("TASK_NOT_FOUND", binding.send, "tck-multi", task="tck-nobody")
        is_refused("INVALID_PARAMS", binding.ask, "SendMessage", {"x": 1})
        for how, part in [("raw", {"raw": "dGNr", "mediaType": "application/x-of-nobody"}), ("url", {"url": "https://example.com/x"})]:
            odd = {**message(f"tck-{how}"), "parts": [part]}
            is_refused("CONTENT_TYPE_NOT_SUPPORTED", binding.ask, "SendMessage", {"message": odd})
        send = {"message": message("tck-complete-task")}
        is_refused("CONTENT_TYPE_NOT_SUPPORTED", binding.ask, "SendMessage", send, {"content-type": "text/plain"})
        is_refused("VERSION_NOT_SUPPORTED", binding.ask, "SendMessage", send, {"a2a-version": "99.0"})
        is_refused("VERSION_NOT_SUPPORTED", binding.ask, "SendMessage", send, {"a2a-version": "0.3"})
        assert binding.ask("SendMessage", send, {"a2a-version": "1.0.7"})["task"], "what comes after the second number does not count"
    rpc = lambda body: HTTP.post(AT["JSONRPC"], content=body, headers={"content-type": "application/json"}).json()["error"]["code"]
    assert rpc("{") == -32700 and rpc("[]") == -32600
    assert rpc('{"jsonrpc":"2.0","id":1,"method":"Sing","params":{}}') == -32601
    old = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}}
    answer = HTTP.post(AT["JSONRPC"], json=old, headers={"a2a-version": ""}).json()
    assert answer["error"]["code"] == -32009, answer
    unnamed = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message("tck-complete-task")}}
    assert "result" in HTTP.post(AT["JSONRPC"], json=unnamed, headers={"a2a-version": ""}).json()
    nowhere = HTTP.post(AT["HTTP+JSON"] + "/nowhere", json={})
    assert nowhere.status_code == 404 and nowhere.json()["error"]["status"] == "NOT_FOUND", nowhere.text


def turns():
    for binding in BINDINGS:
        for _ in range(2):
            asks = binding.send("tck-input-required")
            assert state(asks) == "TASK_STATE_INPUT_REQUIRED" and asks["contextId"], asks
            assert state(binding.task(asks["id"])) == "TASK_STATE_INPUT_REQUIRED"
            after = binding.send("tck-complete-task", "an answer", asks["id"])
            assert (after["id"], after["contextId"], state(after)) == (asks["id"], asks["contextId"], "TASK_STATE_COMPLETED"), after
            assert after["artifacts"][0]["parts"][0]["text"] == "an answer", after
        is_refused("UNSUPPORTED_OPERATION", binding.send, "tck-complete-task", task=after["id"])
        is_refused("TASK_NOT_CANCELABLE", binding.ask, "CancelTask", {"id": after["id"]})
        is_refused("UNSUPPORTED_OPERATION", binding.events, "SubscribeToTask", {"id": after["id"]})
        asks = binding.send("tck-input-required")
        is_refused("INVALID_PARAMS", binding.send, "tck-complete-task", task=asks["id"], context="another")
        gone = binding.ask("CancelTask", {"id": asks["id"]})
        assert (gone["id"], state(gone)) == (asks["id"], "TASK_STATE_CANCELED"), gone
        is_refused("TASK_NOT_CANCELABLE", binding.ask, "CancelTask", {"id": asks["id"]})
        working = binding.send("tck-cancel", returnImmediately=True)
        assert state(binding.ask("CancelTask", {"id": working["id"]})) == "TASK_STATE_CANCELED"
        signs = binding.send("tck-auth-required")
        assert state(signs) == state(binding.task(signs["id"])) == "TASK_STATE_AUTH_REQUIRED", signs
        assert signs["status"]["message"]["parts"][0]["text"], signs
        assert state(binding.send("tck-any", "I was there", signs["id"])) == "TASK_STATE_COMPLETED"
        talk = binding.send("tck-multi-turn")
        for words in ["more", "and more"]:
            assert state(binding.send("tck-any", words, talk["id"], talk["contextId"])) == "TASK_STATE_INPUT_REQUIRED", words
        assert state(binding.send("tck-any", "done", talk["id"], talk["contextId"])) == "TASK_STATE_COMPLETED"
        for length in (0, 1, 10):
            assert len(binding.task(talk["id"], historyLength=length).get("history", [])) <= length
        assert "history" not in binding.send("tck-complete-task", historyLength=0)


def streams():
    for binding in BINDINGS:
        for how in ["tck-stream-001", "tck-stream-003", "tck-stream-ordering-001", "tck-stream-artifact-file", "tck-complete-task"]:
            events = list(binding.events("SendStreamingMessage", {"message": message(how)}))
            assert "task" in events[0], events
            in_order(events)
            given = any("artifactUpdate" in event for event in events) or events[0]["task"].get("artifacts")
            assert given, events
        asks = binding.send("tck-input-required")
        heard, threads = {0: [], 1: [], 2: []}, []
        listening = threading.Barrier(4)

        def hear(n):
            for event in binding.events("SubscribeToTask", {"id": asks["id"]}):
                heard[n].append(event)
                if len(heard[n]) == 1:
                    listening.wait(timeout=30)
                if n == 2:
                    return

        for n in heard:
            threads.append(threading.Thread(target=hear, args=(n,), daemon=True))
            threads[-1].start()
        listening.wait(timeout=30)
        assert state(binding.send("tck-complete-task", "done", asks["id"])) == "TASK_STATE_COMPLETED"
        for thread in threads:
            thread.join(timeout=30)
            assert not thread.is_alive(), "a stream did not end"
        assert "task" in heard[0][0] and len(heard[0]) > 1 and len(heard[2]) == 1, heard
        assert heard[0] == heard[1], "everybody hears the same"
        in_order(heard[0])
        stream = binding.events("SendStreamingMessage", {"message": message("test-resubscribe-message-id")})
        task = next(stream)["task"]
        stream.close()
        again = list(binding.events("SubscribeToTask", {"id": task["id"]}))
        assert again[0]["task"]["id"] == task["id"], again
        in_order(again)


def in_order(events):
    """States only go on, and the last one is the end."""
    order = {"TASK_STATE_SUBMITTED": 0, "TASK_STATE_WORKING": 1, "TASK_STATE_INPUT_REQUIRED": 1, "TASK_STATE_AUTH_REQUIRED": 1}
    states = [(event.get("statusUpdate") or event.get("task")) for event in events]
    states = [state(found) for found in states if found]
    places = [order.get(found, 2) for found in states]
    assert places == sorted(places) and states[-1] in OVER, states


def lists():
    for binding in BINDINGS:
        context = f"list-{binding.name}"
        made = [binding.send("tck-complete-task", f"{n}", context=context)["id"] for n in range(5)]
        asks = binding.send("tck-input-required", context=context)
        whole = binding.ask("ListTasks", {"contextId": context})
        ParseDict(whole, pb.ListTasksResponse())
        assert [task["id"] for task in whole["tasks"]] == [asks["id"], *reversed(made)], "the last that changed comes first"
        assert (whole["nextPageToken"], whole["totalSize"], whole["pageSize"]) == ("", 6, 50), whole
        assert all("artifacts" not in task for task in whole["tasks"])
        with_artifacts = binding.ask("ListTasks", {"contextId": context, "includeArtifacts": True})
        assert with_artifacts["tasks"][1]["artifacts"], with_artifacts
        seen, token = [], ""
        while True:
            page = binding.ask("ListTasks", {"contextId": context, "pageSize": 2, **({"pageToken": token} if token else {})})
            assert page["totalSize"] == 6 and page["pageSize"] == 2 and len(page["tasks"]) <= 2, page
            seen += [task["id"] for task in page["tasks"]]
            if len(seen) == 2:
                # What begins meanwhile is before the page, and moves nothing.
                binding.send("tck-complete-task", context="another")
            token = page["nextPageToken"]
            if not token:
                break
        assert seen == [task["id"] for task in whole["tasks"]], seen
        only = lambda **filters: [task["id"] for task in binding.ask("ListTasks", {"contextId": context, **filters})["tasks"]]
        assert only(status="TASK_STATE_INPUT_REQUIRED") == [asks["id"]]
        assert only(status="TASK_STATE_FAILED") == []
        assert only(statusTimestampAfter=whole["tasks"][0]["status"]["timestamp"]) == [asks["id"]]
        assert len(only(statusTimestampAfter="2020-01-01T00:00:00Z")) == 6 and only(statusTimestampAfter="2999-01-01T00:00:00+02:00") == []
        assert only(historyLength=0) and not binding.ask("ListTasks", {"contextId": "of nobody"})["tasks"]
        for odd in [{"pageSize": 0}, {"pageSize": 101}, {"pageSize": -1}, {"pageToken": "odd"}, {"status": "DREAMING"}, {"statusTimestampAfter": "now"}, {"historyLength": -1}]:
            is_refused("INVALID_PARAMS", binding.ask, "ListTasks", odd)


def many():
    """More tasks than are read at once, each of them listed once."""
    binding, wanted = BINDINGS[0], 2_050

    def send(n):
        return binding.send("tck-complete-task", str(n), context="many", returnImmediately=True)["id"]

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(send, range(wanted)))
    seen, token = [], ""
    while True:
        page = binding.ask("ListTasks", {"contextId": "many", "pageSize": 100, "pageToken": token})
        assert page["totalSize"] == wanted, page["totalSize"]
        seen += [task["id"] for task in page["tasks"]]
        if not (token := page["nextPageToken"]):
            break
        # Those that were still on their way change places; once all are over, nothing does.
        while binding.ask("ListTasks", {"contextId": "many", "status": "TASK_STATE_COMPLETED"})["totalSize"] < wanted:
            seen, token = [], ""
            time.sleep(0.1)
    assert sorted(seen) == sorted(made), f"{len(seen)} of {len(made)}"


class Receiver(BaseHTTPRequestHandler):
    got = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.got.append((dict(self.headers.items()), json.loads(body)))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def pushes():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hook = f"http://localhost:{server.server_port}/hook"
    for binding in BINDINGS:
        done = binding.send("tck-complete-task")
        config = {"taskId": done["id"], "id": "one", "url": "https://example.com/hook"}
        kept = binding.ask("CreateTaskPushNotificationConfig", config)
        ParseDict(kept, pb.TaskPushNotificationConfig())
        assert (kept["id"], kept["url"], kept["taskId"]) == ("one", config["url"], done["id"]), kept
        named = {"taskId": done["id"], "id": "one"}
        assert binding.ask("GetTaskPushNotificationConfig", named) == kept
        listed = binding.ask("ListTaskPushNotificationConfigs", {"taskId": done["id"]})
        ParseDict(listed, pb.ListTaskPushNotificationConfigsResponse())
        assert listed["configs"] == [kept], listed
        is_refused("TASK_NOT_FOUND", binding.ask, "GetTaskPushNotificationConfig", {"taskId": done["id"], "id": "two"})
        for _ in range(2):
            binding.ask("DeleteTaskPushNotificationConfig", named)
        is_refused("TASK_NOT_FOUND", binding.ask, "GetTaskPushNotificationConfig", named)
        elsewhere = {"taskId": done["id"], "url": "https://elsewhere.example.org/"}
        is_refused("PUSH_NOTIFICATION_NOT_SUPPORTED", binding.ask, "CreateTaskPushNotificationConfig", elsewhere)
        Receiver.got.clear()
        shown = {"scheme": "Bearer", "credentials": "shown"}
        asks = binding.send("tck-input-required", taskPushNotificationConfig={"id": "two", "url": hook, "token": "tok", "authentication": shown})
        binding.send("tck-complete-task", "done", asks["id"])
        until = time.monotonic() + 60
        states = lambda: [state(body.get("statusUpdate") or body["task"]) for _, body in Receiver.got if "artifactUpdate" not in body]
        while "TASK_STATE_COMPLETED" not in states():
            assert time.monotonic() < until, Receiver.got
            time.sleep(0.05)
        for headers, body in Receiver.got:
            ParseDict(body, pb.StreamResponse())
            headers = {name.lower(): value for name, value in headers.items()}
            assert headers["authorization"] == "Bearer shown" and headers["x-a2a-notification-token"] == "tok", headers
            assert headers["content-type"] == "application/a2a+json", headers
    server.shutdown()


CHECKS = [card, sending, artifacts, errors, turns, streams, lists, many, pushes]
wanted = [check for check in CHECKS if len(sys.argv) < 3 or check.__name__ == sys.argv[2]]
assert wanted, sys.argv
for check in wanted:
    check()
    print(f"{check.__name__} holds")
