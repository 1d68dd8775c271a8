"""Going back from the middle of a long computation, where nothing has counted how it was come to."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from replayer import arrivals
from replayer.debuggee import Triggers, Why
from replayer.errors import ReplayError
from replayer.registers import Registers
from replayer.timeline import Timeline
from tests.debug.conftest import Record, StartGdb

KINDS = ("in_register", "in_memory", "by_calls")


class Interrupted:
    """A timeline that was interrupted in a function of `loops.c`."""

    def __init__(self, timeline: Timeline, kind: str) -> None:
        self.timeline = timeline
        timeline.end()
        self.function = Triggers(frozenset([timeline.address(kind)]))
        self.called = Triggers(frozenset([timeline.address("called")]))
        self.places = timeline.address("spun"), timeline.address("calls")
        timeline.seek(timeline.first)
        timeline.forward(self.function)
        timeline.interrupted = lambda: True
        self.stop = timeline.forward()
        timeline.interrupted = None
        self.position = timeline.position
        self.seen = self.look()

    def look(self) -> tuple[Registers, list[int]]:
        """Registers and variables."""
        return self.timeline.registers(), [self.timeline.read_int(one) for one in self.places]


@pytest.fixture(params=range(len(KINDS)), ids=KINDS)
def there(recorded: Record, request: pytest.FixtureRequest) -> Iterator[Interrupted]:
    """Interrupted in each kind of loop."""
    with Timeline.open(recorded("loops.c", str(request.param)).trace) as timeline:
        yield Interrupted(timeline, KINDS[request.param])


def test_every_way_back(there: Interrupted) -> None:
    """GIVEN a computation that was interrupted WHEN stepped back, gone back to a breakpoint, and come back by
    its name THEN the same registers and memory each time, and the last breakpoint before."""
    timeline = there.timeline
    assert there.stop.why is Why.INTERRUPTED and len(there.position.chain) == 2
    looks = [there.seen]
    for _step in range(12):
        assert timeline.step_back()
        looks.append(there.look())
    assert len({str(one) for one in looks}) == len(looks)
    for expected in reversed(looks[:-1]):
        timeline.step()
        assert there.look() == expected
    timeline.goto(there.position)
    assert there.look() == there.seen
    found = timeline.backward(there.called)
    if there.seen[1][1]:
        assert found is not None and found.why is Why.BREAKPOINT
        assert there.seen[1][1] - there.look()[1][1] in (0, 1)
        timeline.goto(there.position)
    else:
        assert found is None
        timeline.goto(there.position)
    assert timeline.backward(there.function) is not None
    assert there.look()[0].rip in there.function.breakpoints and sum(there.look()[1]) == 0
    timeline.end()
    timeline.goto(timeline.interruptions.real(there.position))
    assert there.look() == there.seen


def test_a_place_that_cannot_be_found(recorded: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN a place that the search gives up on WHEN stepped back from THEN words that say so, and all goes
    on from there."""
    monkeypatch.setattr(arrivals, "number_of", lambda *_arguments: None)
    with Timeline.open(recorded("loops.c", "0").trace) as timeline:
        there = Interrupted(timeline, "in_register")
        with pytest.raises(ReplayError, match="not found again"):
            timeline.step_back()
        assert there.look() == there.seen
        timeline.step()
        timeline.goto(there.position)
        assert there.look() == there.seen


def test_gdb_goes_back_from_an_interrupt(gdb: StartGdb) -> None:
    """GIVEN Ctrl-C in a long computation WHEN stepped back and on, and gone back THEN the same place, and the
    function's start."""
    debugger = gdb("loops.c", fresh=True)
    debugger.mi("-break-insert in_register")
    debugger.run("-exec-continue")
    debugger.mi("-exec-continue")
    os.kill(debugger.debugger(), signal.SIGINT)
    stop = debugger.stopped()
    assert (stop["signal-name"], stop["frame"]["func"]) == ("SIGINT", "in_register")
    event = debugger.event()
    here = [debugger.value(name) for name in ("$pc", "$rax", "spun")]
    for _step in range(3):
        debugger.run("-exec-step-instruction --reverse")
    assert [debugger.value(name) for name in ("$pc", "$rax", "spun")] != here
    for _step in range(3):
        debugger.run("-exec-step-instruction")
    assert [debugger.value(name) for name in ("$pc", "$rax", "spun")] == here
    assert debugger.run("-exec-continue --reverse")["reason"] == "breakpoint-hit"
    assert (debugger.value("spun"), debugger.event()) == (0, event)
