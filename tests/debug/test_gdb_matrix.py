"""Every command of gdb, forwards and backwards, on one thread and on four, in C, C++, Rust and Python.

One thread is debugged with the machine's gdb, four with the one that the test extra installs.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from replayer.descriptors import NUMBERS
from tests.debug.conftest import RUSTC, StartGdb, need
from tests.debug.mi import Gdb
from tracefile import TraceReader

LANGUAGES = ("work.c", "work.cc", "work.rs")
ROUNDS = 12
Start = Callable[..., Gdb]


@pytest.fixture
def start(gdb: StartGdb, newer_gdb: str | None) -> Callable[..., Gdb]:
    """Start gdb on a program with so many threads, at a place."""

    def begin(program: str, threads: int, place: str = "") -> Gdb:
        if program.endswith(".rs"):
            need(RUSTC, "rustc")
        flags = () if program.endswith((".rs", ".py")) else ("-O0",)
        used = {"debugger": newer_gdb} if threads == 4 and newer_gdb else {}
        debugger = gdb(program, place, flags=flags, arguments=(str(threads),), **used)
        debugger.threads = threads
        return debugger

    return begin


@pytest.fixture(params=[(one, n) for one in LANGUAGES for n in (1, 4)], ids=lambda p: f"{p[0]}-{p[1]}")
def work(start: Callable[..., Gdb], request: pytest.FixtureRequest) -> Start:
    """Start gdb on one of the programs, with one or four threads, at a place."""
    program, threads = request.param
    return lambda place="": start(program, threads, place)


def at(debugger: Gdb, mark: str) -> str:
    """gdb's name of a marked line."""
    return f"{debugger.recording.source.name}:{debugger.recording.line(mark)}"


def watch_total(debugger: Gdb, more: str = "") -> str:
    """gdb's command to watch the total, in any frame."""
    if debugger.recording.source.suffix != ".rs":
        return f"watch total{more}"
    debugger.say("set language rust")
    return f"watch work::total{more.replace('total', 'work::total')}"


def go_on(debugger: Gdb, command: str) -> None:
    """Repeat a stepping command until the line is another: a line of Rust may be several for gdb."""
    line = debugger.line()
    while debugger.line() == line:
        debugger.run(command)


def here(debugger: Gdb) -> tuple[int, int, int, int, int, int]:
    """Thread, who, n, total, line and event."""
    values = (debugger.value(name) for name in ("who", "n", "total"))
    return (debugger.thread(), *values, debugger.line(), debugger.event())  # type: ignore[return-value]


def test_breakpoints(work: Start) -> None:
    """GIVEN a breakpoint WHEN met forwards and then backwards THEN thread, values, line and event agree."""
    debugger = work()
    debugger.mi(f"-break-insert {at(debugger, 'adds')}")
    seen: list[tuple[int, int, int, int, int, int]] = []
    while len(seen) < 9 or len({one[0] for one in seen}) < debugger.threads:
        number = len(seen)
        stop = debugger.run("-exec-continue")
        assert stop["reason"] == "breakpoint-hit"
        seen.append(here(debugger))
        assert seen[-1][4] == debugger.recording.line("adds")
        assert number == 0 or seen[-1][3] == seen[-2][3] + 2 * seen[-2][2]
    assert len({one[0] for one in seen}) == debugger.threads
    assert len({one[1] for one in seen}) == debugger.threads
    assert [one[5] for one in seen] == sorted(one[5] for one in seen)
    for expected in seen[-2:-12:-1]:
        assert debugger.run("-exec-continue --reverse")["reason"] == "breakpoint-hit"
        assert here(debugger) == expected


def test_conditions(work: Start) -> None:
    """GIVEN a condition on thread and round WHEN gone to from either side THEN the place where it holds."""
    debugger = work()
    who = debugger.threads - 1
    debugger.mi(f'-break-insert -c "n == 7 && who == {who}" {at(debugger, "adds")}')
    assert debugger.run("-exec-continue")["reason"] == "breakpoint-hit"
    forward = here(debugger)
    assert forward[1:3] == (who, 7) and forward[4] == debugger.recording.line("adds")
    debugger.say("seek end")
    assert debugger.run("-exec-continue --reverse")["reason"] == "breakpoint-hit"
    assert here(debugger) == forward


def test_watchpoints(work: Start) -> None:
    """GIVEN the end WHEN the total is watched back and on again THEN each addition, its line and thread."""
    debugger = work(":end")
    debugger.say(watch_total(debugger))
    last = sum(2 * n for n in range(1, ROUNDS + 1)) * debugger.threads
    back = []
    for _stop in range(6):
        stop = debugger.run("-exec-continue --reverse")
        assert stop["reason"] == "watchpoint-trigger"
        assert int(stop["value"]["old"]) == last
        assert debugger.line() == debugger.recording.line("adds")
        assert debugger.value("total") == last - 2 * debugger.value("n")
        back.append((debugger.thread(), last, debugger.event()))
        last = debugger.value("total")
    for thread, value, event in reversed(back):
        stop = debugger.run("-exec-continue")
        assert int(stop["value"]["new"]) == value
        assert (debugger.thread(), debugger.event()) == (thread, event)
        assert debugger.line() in (debugger.recording.line("adds"), debugger.recording.line("notes"))


def test_a_condition_of_a_watchpoint(work: Start) -> None:
    """GIVEN a watchpoint with a condition WHEN met from either side THEN only where it holds."""
    debugger = work()
    total = sum(2 * n for n in range(1, ROUNDS + 1)) * debugger.threads
    debugger.say(watch_total(debugger, f" if total > {total - 30}"))
    first = debugger.run("-exec-continue")
    assert int(first["value"]["new"]) > total - 30 >= int(first["value"]["old"])
    debugger.say("seek end")
    stop = debugger.run("-exec-continue --reverse")
    while int(stop["value"]["new"]) != int(first["value"]["new"]):
        assert int(stop["value"]["new"]) > total - 30
        stop = debugger.run("-exec-continue --reverse")


def test_steps(work: Start) -> None:
    """GIVEN a line WHEN step, next, finish and stepi are undone THEN lines, values and events come back."""
    debugger = work()
    line = debugger.recording.line
    debugger.mi(f"-break-insert {at(debugger, 'calls')}")
    for _stop in range(5):
        debugger.run("-exec-continue")
    debugger.mi("-break-delete")
    began = here(debugger)
    assert began[4] == line("calls")
    debugger.run("-exec-step")
    assert (debugger.line(), debugger.value("n"), debugger.event()) == (line("twice"), began[2], began[5])
    debugger.run("-exec-finish")
    assert (debugger.line(), debugger.thread()) == (line("calls"), began[0])
    go_on(debugger, "-exec-next")
    assert here(debugger) == (*began[:4], line("adds"), began[5])
    go_on(debugger, "-exec-next")
    assert here(debugger) == (*began[:3], began[3] + 2 * began[2], line("notes"), began[5])
    go_on(debugger, "-exec-next --reverse")
    assert here(debugger) == (*began[:4], line("adds"), began[5])
    go_on(debugger, "-exec-step --reverse")
    if debugger.line() == line("calls"):
        go_on(debugger, "-exec-step --reverse")
    assert debugger.mi("-stack-info-frame")["frame"]["func"].endswith(("twice", "twice(long)"))
    assert debugger.event() == began[5]
    debugger.run("-exec-finish --reverse")
    assert here(debugger) == began
    go_on(debugger, "-exec-next")
    go_on(debugger, "-exec-next --reverse")
    assert here(debugger) == began
    pcs = []
    for _step in range(6):
        pcs.append((debugger.value("$pc"), debugger.value("$sp"), debugger.thread()))
        debugger.run("-exec-step-instruction")
    for expected in reversed(pcs):
        debugger.run("-exec-step-instruction --reverse")
        assert (debugger.value("$pc"), debugger.value("$sp"), debugger.thread()) == expected
    assert here(debugger) == began


def test_places(work: Start) -> None:
    """GIVEN a kept place WHEN gone elsewhere, back, forward and restarted THEN thread, values and event."""
    debugger = work()
    debugger.mi(f"-break-insert {at(debugger, 'adds')}")
    for _stop in range(3):
        debugger.run("-exec-continue")
    kept = here(debugger)
    number = re.search(r"Checkpoint (\d+)", debugger.say("checkpoint"))
    assert number is not None
    assert f"event {kept[5]}" in debugger.say("info checkpoints")
    assert re.search(rf"vent {kept[5]} of \d+", debugger.say("when"))
    for _stop in range(3):
        debugger.run("-exec-continue")
    other = here(debugger)
    assert other != kept
    debugger.say(f"restart {number[1]}")
    assert here(debugger) == kept
    debugger.say("back")
    assert here(debugger) == other
    debugger.say("forward")
    assert here(debugger) == kept
    debugger.say(f"seek {kept[5] + 2}")
    assert debugger.event() == kept[5] + 2
    debugger.run("-exec-continue --reverse")
    while here(debugger) != kept:
        assert debugger.event() >= kept[5]
        debugger.run("-exec-continue --reverse")
    debugger.say(f"delete checkpoint {number[1]}")
    assert "No checkpoints" in debugger.say("info checkpoints")


def test_calls(work: Start) -> None:
    """GIVEN a stop reached forwards, and one reached backwards WHEN a function is called THEN its value, and
    the run is as it was."""
    debugger = work()
    debugger.mi(f"-break-insert {at(debugger, 'adds')}")
    debugger.run("-exec-continue")
    debugger.run("-exec-continue")
    for command in ("-exec-continue", "-exec-continue --reverse"):
        debugger.run(command)
        before = here(debugger)
        assert debugger.value("twice(21)") == 42
        debugger.mi("-gdb-set var total = 5")
        assert debugger.value("total") == 5
        debugger.say("print twice(1)")
        assert here(debugger) == before


@pytest.mark.parametrize("threads", [1, 4])
def test_python(start: Callable[..., Gdb], threads: int) -> None:
    """GIVEN a Python program in os.listdir WHEN such calls are gone to, on and back THEN its frames."""
    debugger = start("work.py", threads)
    recording = debugger.recording
    with TraceReader.open(recording.trace) as reader:
        calls = [(number, reader.event(1, number).task) for number in recording.events(NUMBERS["getdents64"])]
    changes = [n for n in range(8, len(calls)) if calls[n][1] != calls[n - 1][1]]
    debugger.say(f"seek {calls[(changes or [len(calls) - 4])[-1] - 2][0] - 1}")
    debugger.mi("-break-insert -f getdents64")
    seen = []
    for _stop in range(4):
        debugger.run("-exec-continue")
        text = debugger.say("py-stack -l")
        assert f"look at {recording.source}:{recording.line('lists')}" in text
        assert f"worker at {recording.source}:{recording.line('calls')}" in text
        secret = re.search(r"secret = '(\d)-(\d)'", text)
        assert secret is not None
        seen.append((debugger.thread(), secret[0], debugger.event()))
    assert len({one[0] for one in seen}) == min(threads, 2)
    for expected in reversed(seen[:-1]):
        debugger.run("-exec-continue --reverse")
        secret = re.search(r"secret = '(\d)-(\d)'", debugger.say("py-stack -l"))
        assert secret is not None
        assert (debugger.thread(), secret[0], debugger.event()) == expected
