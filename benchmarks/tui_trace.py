"""Makes traces of any size for the TUI's tests and benchmark: `python -m benchmarks.tui_trace OUT EVENTS`.

What is in them looks like a small server: threads that open, read and close files, wait in poll and futex,
and now and then fail or take long; a child process beside it. The same numbers always give the same trace.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from interfaces.abi import EVENT_DTYPE, REGION_HEADER, SLOT_EVENTS, EventFlag, Kind, RegionKind
from interfaces.calls import BY_NAME
from tracefile import DomainEnd, DomainStart, TraceWriter

START_NS = 1_000_000_000_000
FIRST_TID = 4711
CHILD_PID = 4720
THREADS = 6
PATHS = ("/etc/hostname", "/var/lib/app/users.db", "/tmp/cache/0017", "/home/user/.config/app/settings.toml")
_BUFFER = 0x7F0000001000
_PATH = 0x7F0000002000
_READ = b"The quick brown fox jumps over the lazy dog. " * 2


def region(kind: RegionKind, arg: int, address: int, data: bytes) -> bytes:
    """One payload region, padded."""
    return REGION_HEADER.pack(address, len(data), kind, arg, 0) + data + b"\0" * (-len(data) % 8)


class Pattern:
    """One chunk's worth of events as a template: only tasks, times and numbers differ between chunks."""

    ROUND = (
        ("openat", 5, 2_000),
        ("fstat", 0, 400),
        ("read", 60, 9_000),
        ("read", 0, 700),
        ("close", 0, 500),
        ("poll", 1, 150_000),
        ("futex", 0, 30_000),
        ("getpid", 0, 120),
    )

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def chunk(self, count: int, tasks: list[int], start: int) -> tuple[npt.NDArray[np.void], bytes, int]:
        """(events, payload, time of the end) of `count` events beginning at `start` nanoseconds."""
        events = np.zeros(count, EVENT_DTYPE)
        place = np.arange(count)
        step = place % len(self.ROUND)
        numbers = np.array([BY_NAME[name].number for name, _, _ in self.ROUND], np.uint16)
        results = np.array([result for _, result, _ in self.ROUND], np.int64)
        lengths = np.array([length for _, _, length in self.ROUND], np.float64)
        events["kind"] = Kind.SYSCALL
        events["nr"] = numbers[step]
        events["ip"] = 0x555555555000 + 16 * step.astype(np.uint64)
        events["flags"] = EventFlag.PRECISE
        events["task"] = np.array(tasks, np.uint32)[place // len(self.ROUND) % len(tasks)]
        events["result"] = results[step]
        took = (lengths[step] * self._random.lognormal(0.0, 0.5, count)).astype(np.uint64) + np.uint64(50)
        slow = self._random.random(count) < 0.004
        took[slow] *= np.uint64(400)
        failed = (self._random.random(count) < 0.01) & (step == 0)
        events["result"][failed] = -2
        ends = np.uint64(start) + np.cumsum(took + np.uint64(200), dtype=np.uint64)
        events["time_out"] = ends
        events["time_in"] = ends - took
        args = events["args"]
        args[step == 0, 0] = np.uint64(2**64 - 100)
        args[step == 0, 1] = _PATH
        args[(step >= 1) & (step <= 4), 0] = 5
        args[step == 1, 1] = _BUFFER
        args[(step == 2) | (step == 3), 1] = _BUFFER
        args[(step == 2) | (step == 3), 2] = 4096
        payload = bytearray()
        for i in np.flatnonzero((step == 0) | (step == 2)).tolist():
            if step[i] == 0:
                path = PATHS[i // len(self.ROUND) % len(PATHS)].encode() + b"\0"
                data = region(RegionKind.IN, 1, _PATH, path)
            else:
                data = region(RegionKind.OUT, 1, _BUFFER, _READ[:60])
            events["payload_off"][i] = len(payload)
            events["payload_len"][i] = len(data)
            payload += data
        return events, bytes(payload), int(ends[-1])


def make_trace(path: Path, events: int, *, finish: bool = True) -> Path:
    """A trace of `events` events, nine tenths of a server with six threads, the rest of a child of it.

    Without `finish` it looks as if its recorder had been killed.
    """
    writer = TraceWriter.create(
        path, {"version": "0", "command": ["server", "--port", "80"], "monotonic_ns": START_NS}
    )
    tids = [FIRST_TID + i for i in range(THREADS)]
    writer.add_domain(
        DomainStart(
            domain=1, kind="exec", pid=FIRST_TID, time=START_NS, comm="server", exe="/usr/bin/server",
            cwd="/srv", argv=["server", "--port", "80"], envp=["HOME=/root"],
        )
    )  # fmt: skip
    if not events:
        writer.close({"status": 0}) if finish else writer.abandon()
        return path
    if events > 1:
        writer.add_domain(
            DomainStart(
                domain=2, kind="exec", pid=CHILD_PID, parent_domain=1, parent_event=0, ppid=FIRST_TID,
                time=START_NS, comm="worker", exe="/usr/bin/worker", argv=["worker", "--child"],
            )
        )  # fmt: skip
    pattern = Pattern(7)
    child = Pattern(8)
    templates: dict[tuple[int, int], tuple[npt.NDArray[np.void], bytes, int]] = {}
    clocks = {1: START_NS, 2: START_NS}
    written = {1: 0, 2: 0}
    wanted = {1: events - events // 10, 2: events // 10}
    while any(written[d] < wanted[d] for d in written):
        domain = min((d for d in written if written[d] < wanted[d]), key=lambda d: clocks[d])
        count = min(SLOT_EVENTS, wanted[domain] - written[domain])
        key = (domain, count)
        if key not in templates:
            maker, tasks = (pattern, tids) if domain == 1 else (child, [CHILD_PID])
            templates[key] = maker.chunk(count, tasks, 0)
        events_of, payload, length = templates[key]
        chunk = events_of.copy()
        chunk["time_in"] += np.uint64(clocks[domain])
        chunk["time_out"] += np.uint64(clocks[domain])
        if not written[domain]:
            _begin(chunk, domain)
        writer.add_events(domain, written[domain], chunk.tobytes(), payload)
        clocks[domain] += length * (9 if domain == 2 else 1)
        written[domain] += count
    if finish:
        for domain, pid in ((1, FIRST_TID), (2, CHILD_PID)):
            if written[domain]:
                writer.end_domain(DomainEnd(domain=domain, pid=pid, status="exited", time=clocks[domain]))
        writer.close({"status": 0})
    else:
        writer.flush()
        writer.abandon()
    return path


def _begin(chunk: npt.NDArray[np.void], domain: int) -> None:
    """The first event of a program is its start."""
    first = chunk[:1]
    first["kind"] = Kind.EXEC
    first["nr"] = 0
    first["payload_len"] = 0
    first["result"] = 0


if __name__ == "__main__":
    make_trace(Path(sys.argv[1]), int(sys.argv[2]))
