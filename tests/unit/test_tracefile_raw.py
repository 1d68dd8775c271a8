"""Events looked through as bytes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from interfaces.abi import EVENT_DTYPE, Kind
from tracefile import raw

_LOADED = """
import sys
from pathlib import Path
from tracefile import DomainStart, TraceReader, TraceWriter
path = Path(sys.argv[1]) / "t.bin"
with TraceWriter.create(path, {}) as writer:
    writer.add_domain(DomainStart(domain=1, kind="exec", pid=7))
    writer.add_events(1, 0, bytes(96 * 100_000), b"")
with TraceReader.open(path) as reader:
    assert [len(chunk.raw) for chunk in reader.chunks(1)] == [96 * 100_000]
    assert [event.number for event in next(reader.chunks(1)).views(3, 5)] == [3, 4]
print("numpy" in sys.modules)
"""


@given(st.lists(st.tuples(st.integers(0, 255), st.integers(0, 1000), st.integers(0, 1000)), max_size=40))
def test_bytes_say_what_an_array_says(rows: list[tuple[int, int, int]]) -> None:
    """GIVEN any events WHEN looked through as bytes THEN all is as in an array."""
    events = np.zeros(len(rows), EVENT_DTYPE)
    for row, (kind, offset, length) in zip(events, rows, strict=True):
        row["kind"], row["payload_off"], row["payload_len"] = kind, offset, length
    data = events.tobytes()
    wanted = {Kind.SYSCALL, Kind.FORK, 200}
    found = list(raw.rows(data, raw.KIND_AT, raw.marker(wanted)))
    assert found == [i for i, (kind, _, _) in enumerate(rows) if kind in wanted]
    assert [raw.event(data, row).payload_off for row in found] == [rows[row][1] for row in found]


def test_traces_are_written_and_read_without_numpy(tmp_path: object) -> None:
    """GIVEN a trace of many events WHEN written and read THEN numpy is not imported."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
