"""Runs a stdio server and writes down every line that is sent to it.

Usage: tee.py LOG COMMAND…
"""

import subprocess
import sys

log, *command = sys.argv[1:]
child = subprocess.Popen(command, stdin=subprocess.PIPE)
with open(log, "ab", buffering=0) as file:
    for line in sys.stdin.buffer:
        file.write(line)
        child.stdin.write(line)
        child.stdin.flush()
child.stdin.close()
child.wait()
