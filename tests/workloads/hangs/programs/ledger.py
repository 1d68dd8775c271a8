"""A coroutine stores what it got: it commits on the loop, or ("fixed") in the database's own thread."""

import asyncio
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor

fixed = "fixed" in sys.argv
worker = ThreadPoolExecutor(1)
database = sqlite3.connect("ledger.db", check_same_thread=False)
database.execute("create table entry (amount integer)")


def write_entry(amount: int) -> None:
    database.execute("insert into entry values (?)", (amount,))
    database.commit()


async def store(amount: int) -> None:
    if fixed:
        await asyncio.get_running_loop().run_in_executor(worker, write_entry, amount)
    else:
        write_entry(amount)


async def main() -> None:
    for amount in range(4):
        await store(amount)
        await asyncio.sleep(0.02)


worker.submit(int).result()
asyncio.run(main())
