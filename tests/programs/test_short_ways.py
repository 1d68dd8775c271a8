"""What a call leaves in the trace does not depend on the way it took through the core."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from interfaces.abi import EventFlag, Kind
from tracefile import EventView, TraceReader

from .conftest import Recorder

_CALLS = {0, 1, 8, 17, 18}  # read, write, lseek, pread64, pwrite64


def calls(trace: Path) -> list[tuple[object, ...]]:
    """The calls of a trace of one process, without times and what random numbers decide."""
    with TraceReader.open(trace) as reader:
        events = (event for chunk in reader.chunks(1) for event in chunk.views())
        return [facts(event) for event in events if event.kind == Kind.SYSCALL and event.nr in _CALLS]


def facts(event: EventView) -> tuple[object, ...]:
    flags = event.flags & ~EventFlag.PATCHED
    regions = [(one.kind, one.arg, one.addr, bytes(one.data)) for one in event.regions]
    return (event.nr, flags, event.args[:3], event.result, regions)


def test_the_short_way_leaves_the_events_of_the_long_one(
    rr: Recorder, programs: Callable[[str], Path]
) -> None:
    """GIVEN reads and writes of every kind WHEN recorded through patched sites and through traps
    THEN both traces hold the same calls with the same bytes, and each replays either way."""
    program = programs("plain_calls")
    found = []
    for patch in ("1", "0"):
        rr.trace = rr.top / f"trace-{patch}.bin"
        recorded = rr.record(program, env={"RR_PY_PATCH": patch})
        assert recorded.status == 0
        found.append(calls(rr.trace))
        for other in ("1", "0"):
            assert rr.replay(env={"RR_PY_PATCH": other}).out == recorded.out
    first, second = found
    assert len(first) > 5000
    assert first == second


def test_the_place_that_several_threads_read_from_is_patched(
    rr: Recorder, programs: Callable[[str], Path]
) -> None:
    """GIVEN glibc's read, whose place for several threads lies behind bytes that look like a branch into it
    WHEN it is called often THEN it no longer traps: one of its two system-call instructions is gone."""
    program = programs("places")
    native = rr.native(program, "count")
    if not native.out.startswith(b"2\n"):
        pytest.skip("this C library's read is another one")
    recorded = rr.record(program, "count")
    assert recorded.out == native.out.replace(b"2\n", b"1\n", 1)
