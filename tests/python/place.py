"""A folder with a ledger, a book and faults of one test's own, and the gateways that run over it."""

from __future__ import annotations

import json
import os
import re
import select
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

AMENDS = os.environ["AMENDS_BIN"]
PATIENCE = 60.0

# What is declared of the shop's tools. An e-mail is given up soon, so that a doubt is soon there.
CONTRACTS = """
[tools.get_order]
effect = "read"
[tools.get_refund]
effect = "read"
[tools.issue_refund]
effect = "keyed"
key = { argument = "idempotency_key", window = "24h", durable = true }
[tools.charge_card]
effect = "write"
[tools.send_email]
effect = "write"
timeout = "1s"
"""


def eventually(what: str, holds: Callable[[], object]) -> None:
    """Waits until something holds."""
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, f"{what}: not in {PATIENCE} s"
        time.sleep(0.05)


class Gateway:
    """A gateway that runs."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.child = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert self.child.stderr is not None
        said = b""
        until = time.monotonic() + PATIENCE
        while not (found := re.search(rb"http://(127\.0\.0\.1:\d+)", said)):
            assert time.monotonic() < until and self.child.poll() is None, said.decode()
            if select.select([self.child.stderr], [], [], 0.1)[0]:
                said += os.read(self.child.stderr.fileno(), 65536)
        self.address = found[1].decode()

    @property
    def mcp(self) -> str:
        return f"http://{self.address}/mcp"

    def refuses(self, tool: str, token: str | None = None) -> str:
        """The kind of the refusal of a call without arguments, for which nothing is sent."""
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(f"http://{self.address}/call/{tool}", b"{}", headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                return f"none: {response.status}"
        except urllib.error.HTTPError as error:
            answer: dict[str, Any] = json.load(error)
            return str(answer["error"]["kind"])

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()
        if self.child.stderr:
            self.child.stderr.close()


class Place:
    """The folder. Every gateway that was started in it is killed at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gateways: list[Gateway] = []

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)

    @property
    def ledger(self) -> str:
        return f"sqlite:{self.folder / 'amends.db'}"

    def shop(self, *faults: str) -> list[str]:
        """The command of a shop that fails as `TOOL@ORDER=KIND[,KIND…]` says."""
        flags = [flag for fault in faults for flag in ("--fault", fault)]
        return [AMENDS, "shop", "--book", str(self.folder / "book.db"), *flags]

    def wrap(self, *faults: str, config: str = CONTRACTS, timeout: str = "20s") -> list[str]:
        """The command of `amends wrap` around that shop."""
        text = f'[upstreams.wrapped]\ntimeout = "{timeout}"\ndeadline = "40s"\n{config}'
        path = self.write("wrap.toml", text)
        return [AMENDS, "wrap", "--ledger", self.ledger, "--config", path, "--", *self.shop(*faults)]

    def serve(
        self, *faults: str, config: str = CONTRACTS, timeout: str = "20s", token: str | None = None
    ) -> Gateway:
        """A gateway before that shop, on a port of its own, once it knows the shop's tools."""
        text = (
            f'[ledger]\nurl = "{self.ledger}"\n[listen]\nhttp = "127.0.0.1:0"\n'
            f'[upstreams.shop]\ncommand = {json.dumps(self.shop(*faults))}\nprefix = ""\n'
            f'timeout = "{timeout}"\ndeadline = "40s"\n{config}'
        )
        path = self.write("amends.toml", text)
        gateway = Gateway([AMENDS, "serve", "--config", path], self.folder)
        self.gateways.append(gateway)
        eventually("the shop's tools are served", lambda: gateway.refuses("get_order", token) == "invalid_argument")
        return gateway

    def amends(self, *arguments: str) -> str:
        """What the binary prints."""
        command = [AMENDS, *arguments, "--ledger", self.ledger]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def queue(self) -> list[dict[str, Any]]:
        """The questions that are open."""
        said: dict[str, list[dict[str, Any]]] = json.loads(self.amends("queue", "--json"))
        return said["queue"]

    def answer(self, interaction: str, choice: str) -> None:
        """What a person says at the command line."""
        self.amends("answer", interaction, choice, "--by", "ada")

    def effects(self, tool: str, order: str | None = None) -> int:
        """How often the shop really did that."""
        return self._count("effects", tool, order)

    def requests(self, tool: str) -> int:
        """How often the shop was asked for that."""
        return self._count("requests", tool)

    def _count(self, table: str, tool: str, order: str | None = None) -> int:
        book = self.folder / "book.db"
        if not book.exists():
            return 0
        with sqlite3.connect(book, timeout=10) as connection:
            which = "" if order is None else " AND order_id = ?"
            query = f"SELECT count(*) FROM {table} WHERE tool = ?{which}"
            (count,) = connection.execute(query, [tool] if order is None else [tool, order]).fetchone()
        return int(count)

    def close(self) -> None:
        for gateway in self.gateways:
            gateway.kill()
