"""Asks the server a few things, over one connection each, and lets it end."""

import socket
import sys
import time


def ask(line: str) -> str:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
        connection.sendall(line.encode() + b"\n")
        return connection.recv(256).decode().strip()


for _attempt in range(100):
    try:
        ask("GET nothing")
        break
    except ConnectionError:
        time.sleep(0.05)
for number in range(5):
    print(ask(f"SET key{number} value{number}"), ask(f"GET key{number}"))
print(ask("STATS"))
print(ask("LOG"))
ask("QUIT")
