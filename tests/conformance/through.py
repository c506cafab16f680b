"""The suite's client through Amends: `through.py AMENDS URL`.

Amends is started in front of the server at that URL, the client is given the address of Amends, and Amends is ended.
"""

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import anyio

import client

PATIENCE_S = 15


def main(amends, url):
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "amends.toml")
        config.write_text(
            f'[ledger]\nurl = "memory:"\n[listen]\nhttp = "127.0.0.1:0"\n[upstreams.suite]\nprefix = ""\nurl = "{url}"\n'
        )
        gateway = subprocess.Popen([amends, "serve", "--config", config], stderr=subprocess.PIPE, text=True)
        try:
            address = next(line.split("//", 1)[1].split(";")[0] for line in gateway.stderr if "listens on" in line)
            await_upstream(address)
            anyio.run(client.main, f"http://{address}/mcp")
        finally:
            gateway.terminate()
            gateway.communicate()


def await_upstream(address):
    """Waits until the server has been asked for its tools. Where it never lists any, that is for the client to see."""
    give_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up:
        with urllib.request.urlopen(f"http://{address}/health") as answer:
            if json.load(answer)["upstreams"]["suite"]["listed"]:
                return
        time.sleep(0.02)


if __name__ == "__main__":
    main(*sys.argv[1:])
