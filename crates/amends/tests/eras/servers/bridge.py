"""Takes the place of a server that listens on a port of this machine: its standard input and output lead there.

Usage: bridge.py PORT
"""

import socket
import sys
import threading

line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))


def there():
    while data := sys.stdin.buffer.read1(65536):
        line.sendall(data)
    line.shutdown(socket.SHUT_WR)


threading.Thread(target=there, daemon=True).start()
while data := line.recv(65536):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
