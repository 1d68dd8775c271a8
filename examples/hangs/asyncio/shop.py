"""A little web shop on asyncio. Its handlers look innocent: one keeps orders in SQLite, one sorts prices,
one asks the carrier's web service, one shrinks pictures with a program.

Run: python3 shop.py            (it asks itself a few things and ends)
"""

import asyncio
import contextlib
import pathlib
import sqlite3
import subprocess
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

orders = sqlite3.connect("orders.db")
orders.execute("create table if not exists placed (item text, at real)")


class Carrier(BaseHTTPRequestHandler):
    """The carrier's web service, which takes its time."""

    def do_GET(self) -> None:
        time.sleep(0.25)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"4.90")

    def log_message(self, *arguments: object) -> None:
        pass


def save_order(item: str) -> None:
    orders.execute("insert into placed values (?, ?)", (item, time.time()))
    orders.commit()


def shipping_cost(port: int) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
        return float(answer.read())


async def place_order(item: str, carrier: int) -> str:
    cost = shipping_cost(carrier)
    save_order(item)
    return f"{item}: {cost}"


async def price_list() -> str:
    rows = [f"{number:05}: {number * number % 9973}" for number in range(400_000)]
    return "\n".join(sorted(rows, key=lambda row: row[::-1]))


async def shrink_picture() -> int:
    return subprocess.run(["sleep", "0.2"]).returncode


async def show_picture() -> bytes:
    return pathlib.Path("picture.png").read_bytes()


async def main() -> None:
    carrier = HTTPServer(("127.0.0.1", 0), Carrier)
    threading.Thread(target=carrier.serve_forever, daemon=True).start()
    pathlib.Path("picture.png").write_bytes(b"PNG" * 1000)
    for item in ("pen", "ink"):
        print(await place_order(item, carrier.server_port))
        await asyncio.sleep(0.02)
    print(len(await price_list()))
    await asyncio.sleep(0.02)
    print(await shrink_picture())
    await asyncio.sleep(0.02)
    print(len(await show_picture()))
    await asyncio.sleep(0.02)


with contextlib.closing(orders):
    asyncio.run(main())
