"""Events looked through as bytes, and the way from plain to shuffled events while numpy is on its way."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from interfaces.abi import EVENT_DTYPE, Kind
from tracefile import raw
from tracefile.codec import PLAIN_EVENTS, Compressor, decompress
from tracefile.layout import Codec

_LOADED = """
import sys
from pathlib import Path
from tracefile import DomainStart, TraceReader, TraceWriter
path = Path(sys.argv[1]) / "t.bin"
with TraceWriter.create(path, {}) as writer:
    writer.add_domain(DomainStart(domain=1, kind="exec", pid=7))
    writer.add_events(1, 0, bytes(96 * 50), b"")
with TraceReader.open(path) as reader:
    assert [len(chunk.raw) for chunk in reader.chunks(1)] == [96 * 50]
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
    assert raw.payload_end(data) == max((offset + length for _, offset, length in rows), default=0)


def test_payload_end_without_numpy() -> None:
    """GIVEN a process without numpy WHEN asked THEN the answer is the same."""
    script = (
        "import sys; from tracefile import raw; from interfaces.abi import Event\n"
        "data = b''.join(bytes(Event(payload_off=n, payload_len=2 * n)) for n in (5, 70, 3))\n"
        "print(raw.payload_end(data), raw.payload_end(b''), 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["210", "0", "False"]


def test_short_traces_need_no_numpy(tmp_path: object) -> None:
    """GIVEN a trace of a few events WHEN written and read THEN numpy is not imported."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_events_are_shuffled_where_numpy_is_loaded() -> None:
    """GIVEN numpy is there WHEN events are compressed at any level THEN they are shuffled, and come back."""
    events = np.zeros(500, EVENT_DTYPE)
    events["ip"] = np.arange(500) * 7
    compressor = Compressor()
    for lag in (0.0, 0.5, 1.0):
        compressor.adapt(lag)
        codec, stored = compressor.events(events.tobytes())
        assert codec == Codec.ZSTD_EVENTS
        assert decompress(codec, stored, events.nbytes) == events.tobytes()
    assert PLAIN_EVENTS > 500
