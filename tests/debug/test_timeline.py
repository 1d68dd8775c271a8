"""Walking through recordings in both directions: breakpoints, watched places, steps, checkpoints."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from replayer import search
from replayer.debuggee import Debuggee, Triggers, Watch, Why
from replayer.errors import NothingToReplayError
from replayer.lines import Lines
from replayer.symbols import Modules
from replayer.timeline import Timeline
from tests.debug.conftest import Record, Recorded
from tracefile import TraceReader

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


class Walk:
    """A timeline and what a test asks of it."""

    def __init__(self, recording: Recorded) -> None:
        self.recording = recording
        self.timeline = Timeline.open(recording.trace)
        self.timeline.end()
        self.addresses: dict[str, int] = {}

    def address(self, name: str) -> int:
        if name not in self.addresses:
            self.addresses[name] = self.timeline.address(name)
        return self.addresses[name]

    def value(self, name: str, size: int = 8) -> int:
        return int.from_bytes(self.timeline.process.read(self.address(name), size), "little", signed=True)

    @property
    def tid(self) -> int:
        return self.timeline.process.tid

    def register(self, name: str) -> int:
        return int(getattr(self.timeline.process.state(self.tid).registers, name))

    def line(self, back: int = 0) -> int:
        """The source line of the pc (of the byte `back` before it)."""
        process = self.timeline.process
        pc = self.register("rip") - back
        module = Modules(process, process.mappings()).at(pc)
        assert module is not None
        with open(self.recording.program, "rb") as stream:
            return Lines(stream).at(pc - module.bias)[0].line


@pytest.fixture(scope="module")
def count(recorded: Record) -> Iterator[Walk]:
    walk = Walk(recorded("count.c"))
    yield walk
    walk.timeline.close()


@pytest.fixture(scope="module")
def racers(recorded: Record) -> Iterator[Walk]:
    walk = Walk(recorded("racers.c"))
    yield walk
    walk.timeline.close()


def test_breakpoints_forward(count: Walk) -> None:
    """GIVEN the first place WHEN going on to a function thrice THEN it is called with 0, 1, 2."""
    timeline = count.timeline
    inner = Triggers(frozenset([count.address("inner")]))
    timeline.seek(timeline.first)
    for expected in range(3):
        stop = timeline.forward(inner)
        assert (stop.why, {stop.pc}) == (Why.BREAKPOINT, set(inner.breakpoints))
        assert count.register("rdi") == expected
    assert timeline.forward().why is Why.EVENT
    assert timeline.position.event == timeline.total


def test_breakpoints_backward(count: Walk) -> None:
    """GIVEN the end WHEN going back to a function thrice THEN it is called with 99, 98, 97."""
    timeline = count.timeline
    timeline.end()
    inner = Triggers(frozenset([count.address("inner")]))
    for expected in (99, 98, 97):
        stop = timeline.backward(inner)
        assert stop is not None and stop.why is Why.BREAKPOINT
        assert count.register("rdi") == expected
    assert count.value("total") == sum(range(97)) * 3


def test_a_condition_backward(count: Walk) -> None:
    """GIVEN the end WHEN going back to where a condition held THEN that call and no later one."""
    timeline = count.timeline
    timeline.end()
    inner = Triggers(frozenset([count.address("inner")]))
    timeline.backward(inner, lambda process: process.state(process.tid).registers.rdi == 33)
    assert (count.register("rdi"), count.value("total")) == (33, sum(range(33)) * 3)


def test_a_watched_place_backward_and_forward(count: Walk) -> None:
    """GIVEN a variable written once WHEN watched from either side THEN the run stops at that line."""
    timeline = count.timeline
    timeline.end()
    watch = Triggers(watches=(Watch(count.address("wrong"), 8),))
    stop = timeline.backward(watch)
    assert stop is not None and stop.why is Why.WATCH and stop.watch == watch.watches[0]
    assert (count.value("wrong"), count.line(back=1)) == (42, count.recording.line("wrong"))
    there = timeline.position
    assert timeline.backward(watch) is None
    assert timeline.position.event == timeline.first
    stop = timeline.forward(watch)
    assert stop.why is Why.WATCH
    assert (timeline.position.event, count.value("wrong")) == (there.event, 42)
    assert timeline.forward(watch).why is Why.EVENT


def test_what_a_call_writes_is_seen(count: Walk) -> None:
    """GIVEN a buffer filled by read() WHEN watched backwards THEN the run stops behind that event."""
    timeline = count.timeline
    timeline.end()
    stop = timeline.backward(Triggers(watches=(Watch(count.address("letters"), 1),)))
    assert stop is not None and stop.by_call
    assert timeline.position.at_event
    assert count.recording.events(0, 5)[-1] == timeline.position.event - 1


def test_steps_are_undone_one_by_one(count: Walk) -> None:
    """GIVEN twenty steps from a call WHEN as many are made back THEN the same registers in turn."""
    timeline = count.timeline
    inner = Triggers(frozenset([count.address("inner")]))
    timeline.seek(timeline.first)
    timeline.forward(inner)
    seen = [timeline.process.state(count.tid).registers]
    for _step in range(20):
        timeline.step()
        seen.append(timeline.process.state(count.tid).registers)
    for expected in reversed(seen[:-1]):
        assert timeline.step_back()
        assert timeline.process.state(count.tid).registers == expected


def test_the_instruction_before_an_event_and_before_a_return(count: Walk) -> None:
    """GIVEN the place behind a call WHEN stepping back THEN the syscall instruction; and into a callee."""
    timeline = count.timeline
    timeline.seek(timeline.total - 1)
    assert timeline.step_back()
    assert timeline.process.read(count.register("rip"), 2) == b"\x0f\x05"
    timeline.backward(Triggers(frozenset([count.address("inner")])))
    while timeline.process.read(count.register("rip"), 1) != b"\xc3":
        timeline.step()
    returns = count.register("rip")
    timeline.step()
    there = timeline.position
    timeline.seek(timeline.total)
    timeline.goto(there)
    assert timeline.step_back()
    assert count.register("rip") == returns


def test_into_a_callee_from_a_breakpoint(count: Walk) -> None:
    """GIVEN a breakpoint behind a call WHEN stepping back from it THEN the callee's last instruction."""
    timeline = count.timeline
    timeline.end()
    timeline.backward(Triggers(frozenset([count.address("inner")])))
    back = int.from_bytes(timeline.process.read(count.register("rsp"), 8), "little")
    timeline.forward(Triggers(frozenset([back])))
    assert timeline.step_back()
    assert timeline.process.read(count.register("rip"), 1) == b"\xc3"
    assert 0 < count.register("rip") - count.address("inner") < 100


def test_many_steps_at_once(count: Walk) -> None:
    """GIVEN a place WHEN 50 steps are made at once or one by one THEN the same place."""
    timeline = count.timeline
    inner = Triggers(frozenset([count.address("inner")]))
    timeline.seek(timeline.first)
    timeline.forward(inner)
    start = timeline.position
    timeline.step(50)
    once = timeline.process.state(count.tid).registers
    timeline.goto(start)
    for _step in range(50):
        timeline.step()
    assert timeline.process.state(count.tid).registers == once


def test_kept_checkpoints(count: Walk) -> None:
    """GIVEN a checkpoint between events WHEN restarted THEN memory and registers are those of it."""
    timeline = count.timeline
    inner = Triggers(frozenset([count.address("inner")]))
    timeline.seek(timeline.first)
    for _call in range(5):
        timeline.forward(inner)
    kept = timeline.checkpoint()
    total = count.value("total")
    timeline.end()
    assert count.value("total") != total
    timeline.restart(kept)
    assert (count.value("total"), count.register("rdi")) == (total, 4)
    timeline.forward(inner)
    assert count.register("rdi") == 5
    timeline.delete(kept)


def test_places_that_are_not_there(count: Walk) -> None:
    """GIVEN an event behind the last WHEN sought THEN an error that names the number of events."""
    with pytest.raises(NothingToReplayError, match=str(count.timeline.total)):
        count.timeline.seek(count.timeline.total + 1)


def test_the_guilty_thread(racers: Walk) -> None:
    """GIVEN four threads and one wrong addition WHEN the counter is watched backwards THEN the guilty
    line is found."""
    timeline = racers.timeline
    timeline.end()
    watch = Triggers(watches=(Watch(racers.address("counter"), 8),))
    assert timeline.backward(watch) is not None
    assert racers.value("counter") == 1400
    address = racers.address("counter")

    def small(process: Debuggee) -> bool:
        return int.from_bytes(process.read(address, 8), "little") < 1000

    assert timeline.backward(watch, small) is not None
    before = racers.value("counter")
    assert timeline.forward(watch).why is Why.WATCH
    assert racers.line(back=1) == racers.recording.line("guilty")
    assert racers.value("counter") - before == 1000


def test_breakpoints_of_four_threads_in_order(racers: Walk) -> None:
    """GIVEN a function that four threads call WHEN met forwards and then backwards THEN in reverse order."""
    timeline = racers.timeline
    add = Triggers(frozenset([racers.address("add")]))
    timeline.seek(timeline.first)
    forward = []
    for _call in range(200):
        timeline.forward(add)
        forward.append((racers.tid, racers.register("rdi"), racers.register("rsi"), racers.value("counter")))
    assert len({one[0] for one in forward}) > 1
    for expected in list(reversed(forward[:-1]))[:25]:
        timeline.backward(add)
        here = (racers.tid, racers.register("rdi"), racers.register("rsi"), racers.value("counter"))
        assert here == expected


def test_nothing_is_left_behind(recorded: Record) -> None:
    """GIVEN a timeline with checkpoints WHEN closed THEN its processes are gone."""
    timeline = Timeline.open(recorded("racers.c").trace)
    timeline.seek(timeline.total // 2)
    timeline.checkpoint()
    timeline.end()
    timeline.seek(timeline.total // 3)
    processes = [timeline.process, *(one.process for one in timeline.checkpoints)]
    pids = [one.real_pid for one in processes if one is not None]
    timeline.close()
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists() and _is_ours(pid)]


def _is_ours(pid: int) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/exe").endswith("rr_core")
    except OSError:
        return False


def test_back_from_a_place_reached_in_several_ways(count: Walk) -> None:
    """GIVEN a place reached by breakpoints, steps and another breakpoint WHEN going back THEN no match is
    left out."""
    timeline = count.timeline
    inner = Triggers(frozenset([count.address("inner")]))
    both = Triggers(inner.breakpoints, (Watch(count.address("wrong"), 8),))
    timeline.seek(timeline.first)
    timeline.forward(inner)
    timeline.forward(inner)
    timeline.step(3)
    timeline.forward(both)
    timeline.forward(both)
    assert count.register("rdi") == 3
    for expected in (2, 1, 0):
        assert timeline.backward(both) is not None
        assert count.register("rdi") == expected


def test_back_over_a_second_of_computing(recorded: Record) -> None:
    """GIVEN a second of computing and then 900 hits WHEN gone back from the end with a condition THEN it
    takes no more than a few times the run itself."""
    walk = Walk(recorded("spin.c"))
    timeline = walk.timeline
    try:
        rare = Triggers(frozenset([walk.address("rare")]))
        with TraceReader.open(walk.recording.trace) as reader:
            info = reader.domains[1]
            took = (info.end.time - info.time) / 1e9 if info.end is not None else 1.0
        began = time.monotonic()
        assert (
            timeline.backward(rare, lambda process: process.state(process.tid).registers.rdi == 1) is not None
        )
        assert time.monotonic() - began < 5 * max(took, 1.0) + 5
        assert walk.register("rdi") == 1
    finally:
        timeline.close()


def test_shared_memory_is_not_shared_with_checkpoints(recorded: Record) -> None:
    """GIVEN memory shared with a file and a child WHEN gone to and fro THEN each place has its own values."""
    walk = Walk(recorded("shared.c"))
    timeline = walk.timeline
    try:
        change = Triggers(frozenset([walk.address("change")]))

        def value() -> int:
            return timeline.read_int(timeline.read_int(walk.address("anonymous")))

        timeline.seek(timeline.first)
        for n in range(1, 6):
            timeline.forward(change)
            assert (walk.register("rdi"), value()) == (n, sum(range(n)))
        for n in (4, 3, 2, 1):
            timeline.backward(change)
            assert (walk.register("rdi"), value()) == (n, sum(range(n)))
        timeline.end()
        assert value() == 155
        timeline.seek(timeline.first)
        timeline.forward(change)
        assert value() == 0
    finally:
        timeline.close()


def test_long_searches_tell_how_far_they_are(recorded: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN every step worth telling WHEN searched backwards THEN what is told names events."""
    monkeypatch.setattr(search, "_TELL_EVERY", -1.0)
    walk = Walk(recorded("spin.c"))
    timeline = walk.timeline
    told: list[tuple[float, str]] = []
    timeline.progress = lambda part, text: told.append((part, text))
    try:
        timeline.backward(Triggers(frozenset([walk.address("spin")])))
        assert told and all(0 <= part <= 1 and "event" in text for part, text in told)
        assert walk.register("rip") == walk.address("spin")
    finally:
        timeline.close()
