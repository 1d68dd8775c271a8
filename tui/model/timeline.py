"""The timeline: for each thread, what it did in each column of the screen.

Works from the index's columns alone: rows that end within one column are counted, longer ones spread, each
block of the index in a few numpy operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from interfaces.abi import Kind
from interfaces.calls import CALLS
from interfaces.model import Block as Blocking
from tui.model.columns import CODES, Block, code_of, table_of_kinds
from tui.model.index import EventIndex

SLOW_NS = 10_000_000.0
"""A call that takes this long without being made for waiting is slow."""


class State(IntEnum):
    """What a thread did for most of a column; SLOW is shown wherever it occurred."""

    NONE = 0
    RUNNING = 1
    CALL = 2
    BATON = 3
    WAITING = 4
    SLOW = 5


_IDLE = frozenset({"fds", "time", "signal", "child", "lock"})
"""What threads wait for on purpose; the disk and a peer are not among it."""


def _states_of_codes() -> npt.NDArray[np.uint8]:
    table = np.zeros(CODES, np.uint8)
    table[table_of_kinds(set(Kind))] = State.RUNNING
    table[table_of_kinds({Kind.SYSCALL, Kind.LIBCALL})] = State.CALL
    for number, call in CALLS.items():
        if call.block == Blocking.WAIT and call.waits_on in _IDLE:
            table[code_of(Kind.SYSCALL, number)] = State.WAITING
    table[table_of_kinds({Kind.RESUME})] = State.BATON
    return table


_STATES = _states_of_codes()


@dataclass(slots=True)
class Lane:
    """One thread: its state in each column, the events that ended there, and whether any failed."""

    task: int
    name: str
    states: npt.NDArray[np.uint8]
    counts: npt.NDArray[np.int64]
    failed: npt.NDArray[np.bool_]


@dataclass(slots=True)
class Timeline:
    """Lanes over [start, end) CLOCK_MONOTONIC nanoseconds, `columns` columns wide."""

    start: int
    end: int
    columns: int
    lanes: list[Lane] = field(default_factory=list)

    def column_of(self, when: int) -> int:
        """The column of a moment; -1 or `columns` where it lies outside."""
        if when < self.start:
            return -1
        return min((when - self.start) * self.columns // max(self.end - self.start, 1), self.columns)

    def time_of(self, column: float) -> int:
        """The moment at which a column begins."""
        return self.start + int(column * (self.end - self.start) / max(self.columns, 1))


class _Fold:
    """Gathers states and counts of lanes by columns."""

    def __init__(self, index: EventIndex, tasks: Sequence[int], timeline: Timeline) -> None:
        self._timeline = timeline
        lanes, columns = len(tasks), timeline.columns
        self._lanes = np.full(max(len(index.tasks), 1), -1, np.int64)
        self._lanes[list(tasks)] = np.arange(lanes)
        self._shape = (lanes, columns)
        size = lanes * columns
        self.counts = np.zeros(size, np.int64)
        self.failed = np.zeros(size, np.int64)
        self._time = np.zeros((len(State), size), np.float64)
        self._edges = np.zeros((len(State), lanes, columns + 1), np.int64)

    def add(self, block: Block) -> None:
        """Take in the rows that a block has by now."""
        count = block.count
        timeline = self._timeline
        columns = timeline.columns
        tasks = block.task[:count]
        lanes = np.where(tasks < len(self._lanes), self._lanes[np.minimum(tasks, len(self._lanes) - 1)], -1)
        end = block.times(0, count).astype(np.int64) - timeline.start
        took = block.took[:count]
        begin = end - took.astype(np.int64)
        span = timeline.end - timeline.start
        chosen = np.flatnonzero((lanes >= 0) & (end >= 0) & (begin < span))
        if not len(chosen):
            return
        lanes, end, begin, took = lanes[chosen], end[chosen], begin[chosen], took[chosen]
        codes = block.code[chosen]
        states = _STATES[codes]
        states = np.where((states == State.CALL) & (took >= SLOW_NS), np.uint8(State.SLOW), states)
        scale = columns / span
        last = (end * scale).astype(np.int64)
        first = np.maximum((begin * scale).astype(np.int64), 0)
        inside = end <= span
        last = np.minimum(last, columns - 1)
        flat = lanes[inside] * columns + last[inside]
        self.counts += np.bincount(flat, minlength=len(self.counts))
        bad = block.error[chosen][inside] > 0
        self.failed += np.bincount(flat[bad], minlength=len(self.counts))
        short = first == last
        places = lanes * columns + last
        for state in np.unique(states).tolist():
            of_state = states == state
            here = of_state & short
            self._time[state] += np.bincount(places[here], took[here], minlength=len(self.counts))
            long = of_state & ~short
            if long.any():
                edges = self._edges[state]
                np.add.at(edges, (lanes[long], first[long]), 1)
                np.add.at(edges, (lanes[long], last[long] + 1), -1)

    def states(self) -> npt.NDArray[np.uint8]:
        """The state of each lane in each column."""
        timeline = self._timeline
        width = (timeline.end - timeline.start) / timeline.columns
        time = self._time.reshape((len(State), *self._shape))
        time += (np.cumsum(self._edges, axis=2)[:, :, :-1] > 0) * width
        slow = time[State.SLOW] > 0
        happened = time.sum(axis=0) + self.counts.reshape(self._shape) > 0
        time[State.RUNNING] += np.maximum(width - time.sum(axis=0), 0)
        found = np.where(happened, np.argmax(time, axis=0), State.NONE).astype(np.uint8)
        found[slow] = State.SLOW
        return found


def summarise(
    index: EventIndex,
    tasks: Sequence[int],
    names: Sequence[str],
    span: tuple[int, int],
    columns: int,
    progress: Callable[[], bool] | None = None,
) -> Timeline:
    """The timeline of some tasks (numbers of the index, a name for each) between two moments.

    `progress` is called between blocks; when it returns False, what is there so far is returned.
    """
    start, end = span
    timeline = Timeline(start, max(end, start + 1), max(columns, 1))
    fold = _Fold(index, tasks, timeline)
    for block in list(index.blocks):
        if not block.count or block.end < start:
            continue
        if block.start > timeline.end + block.longest:
            continue
        fold.add(block)
        if progress is not None and not progress():
            break
    states = fold.states()
    shape = states.shape
    counts, failed = fold.counts.reshape(shape), fold.failed.reshape(shape) > 0
    for lane, (task, name) in enumerate(zip(tasks, names, strict=True)):
        _fill_running(index, timeline, task, states[lane])
        timeline.lanes.append(Lane(task, name, states[lane], counts[lane], failed[lane]))
    return timeline


def _fill_running(index: EventIndex, timeline: Timeline, task: int, states: npt.NDArray[np.uint8]) -> None:
    """A thread that lives and is in no call runs, or wants to."""
    facts = index.facts(task)
    if facts.first_row < 0:
        return
    begin = timeline.column_of(index.key(facts.first_row))
    stop = timeline.column_of(index.key(facts.last_row))
    if stop < 0 or begin >= timeline.columns:
        return
    part = states[max(begin, 0) : min(stop, timeline.columns - 1) + 1]
    part[part == State.NONE] = State.RUNNING
