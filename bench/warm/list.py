#!/usr/bin/env python3
"""Lists the functions that a running gateway enters, for the linker to put next to each other.

    bench/warm/list.py [--binary target/release/amends] [--to crates/amends/warm.ld]

Takes about a minute. Names are listed without what the compiler adds to tell versions of a crate apart, so that the list
outlives changed dependencies. Linux on x86-64; needs `nm`.
"""

import argparse
import collections
import http.client
import json
import pathlib
import re
import socket
import sys
import tempfile
import time

import tracer

ROOT = pathlib.Path(__file__).resolve().parents[2]

COFFEE = """
[listen]
http = "127.0.0.1:{port}"

[machines.coffee]
initial = "created"
terminal = ["closed"]
limits = {{ steps = 10_000 }}

[machines.coffee.actions.take_order]
from = ["created", "fulfilled"]
to = "ordered"
input = {{ type = "object", properties = {{ item = {{ type = "string" }} }}, required = ["item"] }}
guard = "inputs.item != 'tea'"
writes = {{ item = "inputs.item" }}

[machines.coffee.actions.pay]
from = ["ordered"]
to = "paid"
input = {{ type = "object", properties = {{ amount = {{ type = "number" }} }}, required = ["amount"] }}
writes = {{ amount = "inputs.amount" }}

[machines.coffee.actions.fulfil]
from = ["paid"]
to = "fulfilled"

[machines.coffee.actions.close]
from = ["fulfilled"]
to = "closed"
"""

STEPS = [
    ("take_order", {"item": "latte"}),
    ("pay", {"amount": 4.5}),
    ("fulfil", {}),
    ("pay", {}),
    ("take_order", {"item": "tea"}),
]
ORDERS = 60
NAME_MAX = 200
HEAD = """\
/* The functions that a running gateway enters, for the linker to put next to each other:
   docs/decisions/0072-what-is-used-lies-together.md. Written by bench/warm/list.py. */
"""
# Until heartbeats, the signer and the writer's rest have come by.
IDLE_S = 6


class Agent:
    """A client of the stateful era on a connection of its own."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.session = None
        self.number = 0
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "warm", "version": "0"}}
        self.ask("initialize", about)
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.ask("tools/list", {})

    def post(self, message):
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2025-11-25",
        }
        if self.session:
            headers["mcp-session-id"] = self.session
        self.connection.request("POST", "/mcp", json.dumps(message), headers)
        answer = self.connection.getresponse()
        body = answer.read()
        self.session = self.session or answer.getheader("mcp-session-id")
        return body

    def ask(self, method, params):
        self.number += 1
        return self.post({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})

    def call(self, tool, arguments):
        body = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert b'"content"' in body, body


def coffee(agents):
    for agent in agents:
        for _ in range(ORDERS):
            for action, inputs in STEPS:
                agent.call("step", {"action": action, "inputs": inputs})


def shop(agents):
    for agent in agents:
        for n in range(ORDERS):
            agent.call("get_order", {"order": f"ord_{n}"})
            agent.call("issue_refund", {"order": f"ord_{n}", "amount": 5})
            agent.call("charge_card", {"order": f"ord_{n}", "amount": n})
        agent.call("issue_refund", {"order": "ord_lost", "amount": 5})
        agent.call("issue_refund", {"amount": 5})


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(port, said):
    for _ in range(600):
        with socket.socket() as line:
            if line.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"the gateway does not listen: {said.read_text()}")


def run(binary, known, arguments, work):
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        config = pathlib.Path(folder) / "coffee.toml"
        config.write_text(COFFEE.format(port=port))
        traced = tracer.Traced(binary, [part.format(port=port) for part in arguments], folder, known)
        try:
            wait_for(port, pathlib.Path(folder) / "said")
            work([Agent(port), Agent(port)])
            time.sleep(IDLE_S)
        finally:
            traced.stop()
        return traced.entered


def pattern(name):
    """A function's name for the linker: whatever the compiler adds to tell crates apart may be anything, and so may how far back in
    the name it points, which depends on how long that is."""
    name = re.sub(r"17h[0-9a-f]{16}E.*$", "17h*", name)
    name = re.sub(r"\.llvm\.\d+.*$", "*", name)
    if name.startswith("_R"):
        name = re.sub(r"Cs[0-9A-Za-z]{8,13}_", "Cs*_", name)
        name = re.sub(r"B[0-9A-Za-z]{1,3}_", "B*_", name)
    return name if len(name) <= NAME_MAX else name[:NAME_MAX] + "*"


def script(known, entered):
    """First the names of which most is entered, then those that many functions share of which some are."""
    whole, part = collections.Counter(), collections.Counter()
    for size, name in known.values():
        whole[pattern(name)] += size
    for at in entered:
        size, name = known[at]
        part[pattern(name)] += size
    names = list(dict.fromkeys(pattern(known[at][1]) for at in entered))
    mostly = [name for name in names if part[name] * 2 >= whole[name]]
    partly = [name for name in names if part[name] * 2 < whole[name]]
    print(
        f"{len(entered)} functions of {len(known)}, {sum(part.values()) / 1e6:.1f} MB; "
        f"{len(names)} names, {sum(whole[name] for name in names) / 1e6:.1f} MB",
        file=sys.stderr,
    )
    lines = [HEAD, "SECTIONS {\n  .text.warm : {\n"]
    for tier in (mostly, partly):
        # As one list: the linker tries each list once for each function.
        lines += ["    *(\n", *(f".text.{name}\n" for name in tier), "    )\n"]
    return "".join([*lines, "  }\n}\nINSERT BEFORE .text;\n"])


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--binary", default=ROOT / "target/release/amends")
    flags.add_argument("--to", default=ROOT / "crates/amends/warm.ld", type=pathlib.Path)
    given = flags.parse_args()
    known = tracer.functions(given.binary)
    entered = run(given.binary, known, ["serve", "--config", "coffee.toml"], coffee)
    entered += run(given.binary, known, ["up", "--demo", "--listen", "127.0.0.1:{port}"], shop)
    given.to.write_text(script(known, list(dict.fromkeys(entered))))


if __name__ == "__main__":
    main()
