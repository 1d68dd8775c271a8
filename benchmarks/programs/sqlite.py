"""Inserts argv[2] rows into a new SQLite database argv[1], makes an index and sums a column."""

import sqlite3
import sys
from pathlib import Path

path, rows = Path(sys.argv[1]), int(sys.argv[2])
path.unlink(missing_ok=True)
base = sqlite3.connect(path)
base.execute("create table item(id integer primary key, name text, price real)")
for start in range(0, rows, 10_000):
    with base:
        base.executemany(
            "insert into item(name, price) values(?, ?)",
            ((f"name {i}", i * 0.5) for i in range(start, min(start + 10_000, rows))),
        )
with base:
    base.execute("create index by_price on item(price)")
print(base.execute("select count(*), sum(price) from item").fetchone())
