"""An MCP server whose answers are written by hand, byte for byte.

Usage: hand.py LOG [--strict]

Every line that arrives is added to LOG, after a line that says `started`. With --strict, `initialize` takes a moment,
and nothing else is taken before `notifications/initialized`, as some servers do.
"""

import json
import sys
import time

LOG = sys.argv[1]
STRICT = "--strict" in sys.argv

TOOLS = (
    '{"tools":[{"name":"numbers","inputSchema":{"type":"object","x-order":[1.0,1e5]},"annotations":{"readOnlyHint":true},'
    '"execution":{"taskSupport":"optional"},"icons":[],"x-\\u00e9":"\\u00e9 é","_meta":{"vendor/n":1.0}},'
    + ",".join('{"inputSchema":{"type":"object"},"name":"%s"}' % name for name in (
        "escapes", "duplicates", "nulls", "deep", "big", "strange", "meta", "echo", "ask_all", "chat", "wait"))
    + '],"x-unknown":null, "vendor/z" : {"b":1,"a":2.50}}'
)
RESULTS = {
    "numbers": '{"structuredContent":{"one":1.0,"exp":1e5,"EXP":1E+05,"big":10000000000000000000001,"zero":-0,"small":0.10},'
    '"content":[{"type":"text","text":"n"}],"isError":false}',
    "escapes": '{"content":[{"text":"\\u00e9 é \\/ / \\u2028 \\ud83d\\ude00 😀 \\u0000","type":"text"}]}',
    "duplicates": '{"content":[],"x":1,"x":2,"structuredContent":{"a":1,"a":2}}',
    "nulls": '{ "content" : [ ] , "structuredContent":{"null":null},"nextCursor":null\t,"isError" : false }',
    "deep": '{"content":[],"structuredContent":{"deep":' + "[" * 1000 + "]" * 1000 + "}}",
    "big": '{"content":[{"type":"text","text":"' + "é" * 524288 + '"}]}',
    "strange": '{"vendor/x":{"b":1,"a":[2.0]},"content":[{"type":"hologram","beam":1.0,"z":1,"a":2},{"type":"text","text":"t","x":{}}]}',
    "meta": '{"_meta":{"vendor/trace":"t","n":1.0},"content":[]}',
}
PASSED = {
    "prompts/list": '{"prompts":[{"name":"p","x":1.0}],"nextCursor":null}',
    "prompts/get": '{"messages":[],"x":1e2}',
    "resources/list": '{"resources":[{"uri":"x://y","name":"n","size":1.0}]}',
    "resources/templates/list": '{"resourceTemplates":[]}',
    "resources/read": '{"contents":[{"uri":"x://y","text":"\\u00e9"}]}',
    "completion/complete": '{"completion":{"values":["a"],"total":1.0}}',
    "logging/setLevel": "{}",
    "ping": "{}",
}

greeted = False
# The ids of our own requests that have no answer yet, and the id of the call that waits for them.
asking = {"call": None, "open": [], "answers": []}


def send(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(id, result):
    send('{"jsonrpc":"2.0","id":%s,"result":%s}' % (json.dumps(id), result))


def refuse(id, code, message):
    send('{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"%s","data":{"n":1.0}}}' % (json.dumps(id), code, message))


def call(id, params, line):
    name = params["name"]
    if name in RESULTS:
        answer(id, RESULTS[name])
    elif name == "echo":
        answer(id, '{"content":[{"type":"text","text":%s}]}' % json.dumps(line))
    elif name == "chat":
        # Fifty messages before the answer, and each must stay before it.
        for n in range(50):
            send('{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d,"x":1.0}}' % n)
        send('{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}')
        answer(id, '{"content":[]}')
    elif name == "ask_all":
        asking.update(call=id, open=["s-1", 7, id], answers=[])
        send('{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}')
        send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9,"reason":"never mind"}}')
        send('{"jsonrpc":"2.0","id":"s-1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1.0,"x":"\\u00e9"}}')
        send('{"jsonrpc":"2.0","id":7,"method":"roots/list"}')
        send('{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"message":"?","requestedSchema":{}}}' % json.dumps(id))
    elif name == "wait":
        pass
    else:
        refuse(id, -32602, "no such tool")


def answered(message, line):
    if message["id"] in asking["open"]:
        asking["open"].remove(message["id"])
        asking["answers"].append(line)
    if asking["call"] is not None and not asking["open"]:
        text = json.dumps(asking["answers"])
        answer(asking["call"], '{"content":[],"structuredContent":{"answers":%s}}' % text)
        asking["call"] = None


def heard(line):
    global greeted
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method is None:
        answered(message, line)
    elif method == "initialize":
        if STRICT:
            time.sleep(0.3)
        version = message["params"]["protocolVersion"]
        answer(id, '{"protocolVersion":"%s","capabilities":{"tools":{},"prompts":{},"resources":{},"completions":{},"x":1.0},'
                   '"serverInfo":{"name":"hand","version":"1"}}' % version)
    elif method == "notifications/initialized":
        greeted = True
    elif id is None:
        pass
    elif STRICT and not greeted:
        refuse(id, -32600, "not greeted")
    elif method == "tools/list":
        answer(id, TOOLS)
    elif method == "tools/call":
        call(id, message["params"], line)
    elif method in PASSED:
        answer(id, PASSED[method])
    else:
        refuse(id, -32601, "no such method")


with open(LOG, "a", encoding="utf-8") as log:
    log.write("started\n")
    log.flush()
    for line in sys.stdin:
        log.write(line)
        log.flush()
        if line.strip():
            heard(line.rstrip("\n"))
