"""A trace that is still being written, and one whose recorder was killed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tracefile
from interfaces.abi import EVENT_DTYPE
from tracefile import DomainEnd, DomainStart, TraceReader, TraceWriter, blob_digest


def numbered(first: int, count: int) -> bytes:
    """Events whose results count on from `first`."""
    events = np.zeros(count, EVENT_DTYPE)
    events["result"] = np.arange(first, first + count)
    return events.tobytes()


def results(reader: TraceReader, domain: int) -> list[int]:
    return [int(result) for chunk in reader.chunks(domain) for result in chunk.events["result"]]


def test_reading_while_writing(tmp_path: Path) -> None:
    path = tmp_path / "trace.bin"
    trace = TraceWriter.create(path, {"command": ["x"]})
    with TraceReader.open(path) as reader:
        assert reader.live and not reader.complete and reader.meta == {"command": ["x"]}
        assert reader.stopped == "it is still being recorded."
        assert not reader.refresh()
        trace.add_domain(DomainStart(domain=1, kind="exec", pid=7, comm="x"))
        trace.add_events(1, 0, numbered(0, 10), b"")
        trace.flush()
        assert reader.refresh()
        assert results(reader, 1) == list(range(10))
        assert reader.stopped == "it is still being recorded; domain 1 (process 7, x) stops after 10 events."
        follow = reader.chunks(1)
        assert len(next(follow)) == 10
        trace.add_events(1, 10, numbered(10, 5), b"")
        trace.add_blob(blob_digest(b"content"), [b"content"])
        trace.flush()
        assert not reader.has_blob(blob_digest(b"content"))
        assert reader.refresh() and not reader.refresh()
        assert [chunk.first_event for chunk in follow] == [10]
        assert reader.has_blob(blob_digest(b"content"))
        trace.end_domain(DomainEnd(domain=1, pid=7, status="exited"))
        trace.close({})
        assert reader.refresh()
        assert (reader.complete, reader.live, reader.stopped, reader.truncated) == (True, False, "", 0)
        assert not reader.refresh()
        assert reader.verify()


def test_a_chunk_that_is_half_there_is_taken_later(tmp_path: Path) -> None:
    """GIVEN a reader that looks while a chunk is being written WHEN it looks again THEN it takes it whole."""
    whole = tmp_path / "trace.bin"
    with TraceWriter.create(whole, {}) as trace:
        trace.add_domain(DomainStart(domain=1, kind="exec", pid=7))
        for number in range(5):
            trace.add_events(1, number * 10, numbered(number * 10, 10), os.urandom(50))
    data = whole.read_bytes()
    part = tmp_path / "trace-2.bin"
    part.write_bytes(data[:200])
    counts = []
    with TraceReader.open(part) as reader:
        for end in range(201, len(data) + 1):
            with part.open("ab") as file:
                file.write(data[end - 1 : end])
            reader.refresh()
            assert reader.damage is None
            counts.append(reader.total_events)
        assert sorted(set(counts)) == [0, 10, 20, 30, 40, 50] and counts == sorted(counts)
        assert reader.complete and results(reader, 1) == list(range(50))


def test_content_that_is_not_there_yet_is_taken_later(tmp_path: Path) -> None:
    """GIVEN a last chunk whose bytes are still zero (a power cut looks like this) WHEN it is looked at THEN
    it is left out; and taken once the bytes are there."""
    path = tmp_path / "trace.bin"
    trace = TraceWriter.create(path, {})
    trace.add_domain(DomainStart(domain=1, kind="exec", pid=7))
    trace.add_events(1, 0, numbered(0, 10), os.urandom(500))
    trace.add_events(1, 10, numbered(10, 10), os.urandom(500))
    trace.abandon()
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(-400, os.SEEK_END)
        file.write(bytes(400))
    with TraceReader.open(path) as reader:
        assert reader.event_count(1) == 10 and reader.truncated > 400 and reader.damage is None
        path.write_bytes(data)
        assert reader.refresh() and reader.event_count(1) == 20 and reader.truncated == 0


ENDLESS = """
import sys
import numpy as np
from interfaces.abi import EVENT_DTYPE
from tracefile import DomainStart, TraceWriter
trace = TraceWriter.create(sys.argv[1], {})
trace.add_domain(DomainStart(domain=1, kind="exec", pid=7, comm="endless"))
noise = np.random.default_rng(1)
first = 0
while True:
    count = int(noise.integers(1, 500))
    events = np.zeros(count, EVENT_DTYPE)
    events["result"] = np.arange(first, first + count)
    trace.add_events(1, first, events.tobytes(), noise.bytes(int(noise.integers(0, 100_000))))
    if not first:
        trace.flush()
    first += count
    sys.stdout.write("x")
    sys.stdout.flush()
"""


@pytest.mark.parametrize("seed", range(10))
def test_a_killed_recorder(tmp_path: Path, seed: int) -> None:
    """GIVEN a recorder killed at a random moment WHEN its trace is read THEN all whole chunks are there."""
    path = tmp_path / "trace.bin"
    root = Path(tracefile.__file__).parent.parent
    child = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(path)],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    with child:
        wanted = random.Random(seed).randrange(10, 200)
        assert len(child.stdout.read(wanted)) == wanted
        child.kill()
    with TraceReader.open(path) as reader:
        assert not reader.complete and not reader.live and reader.damage is None
        count = reader.event_count(1)
        assert count > 0 and reader.verify()
        assert results(reader, 1) == list(range(count))
        assert reader.stopped.startswith("the recorder was killed")
        assert f"domain 1 (process 7, endless) stops after {count} events" in reader.stopped
