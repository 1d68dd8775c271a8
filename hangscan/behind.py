"""Behind a wait for another thread: who ended it, and what that thread was doing meanwhile."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hangscan.environments import Environment, Projected
from hangscan.log import DomainLog
from hangscan.model import Operation
from hangscan.operations import FUTEX, FUTEX_WAKES
from hangscan.walking import computing
from interfaces.abi import Kind

_COMPUTE_NS = 5_000_000


@dataclass(frozen=True, slots=True)
class Behind:
    """The thread that a wait waited for, and its operations during the wait (longest first): those it began
    before it ended the wait. What it did until the other thread got its turn again, nobody waited for."""

    task: int
    operations: tuple[Operation, ...]


class Owners:
    """Finds who was behind the futex waits of one domain."""

    def __init__(self, log: DomainLog, context: Iterable[Operation]) -> None:
        """`context` are operations of all threads that took long."""
        self._log = log
        self._context: dict[int, list[Operation]] = {}
        for operation in context:
            self._context.setdefault(operation.task, []).append(operation)
        self._computed: set[int] = set()
        self._sorted: dict[int, tuple[list[Operation], list[int], int]] = {}
        events = log.events
        wakes = (events["kind"] == Kind.SYSCALL) & (events["nr"] == FUTEX)
        wakes &= np.isin(events["args"][:, 1] & np.uint64(127), FUTEX_WAKES)
        self._wakes = np.flatnonzero(wakes | (events["kind"] == Kind.TASK_EXIT))

    def behind(self, operation: Operation) -> Behind | None:
        """Whom a futex wait waited for; None where that cannot be told."""
        log = self._log
        first = log.release_of(operation.event)
        if first is None:
            return None
        found = self._waker(operation, first)
        if found is None:
            return None
        task, woken = found
        if task not in self._computed:
            self._computed.add(task)
            self._context.setdefault(task, []).extend(computing(log, task, _COMPUTE_NS))
        meanwhile = [
            one
            for one in self._during(task, operation.begin, operation.end)
            if one.end > operation.begin and one.event < woken and one.resource.kind != "lock"
        ]
        meanwhile.sort(key=lambda one: one.begin - one.end)
        return Behind(task, tuple(meanwhile))

    def _during(self, task: int, begin: int, end: int) -> list[Operation]:
        """Operations of a thread that began before `end`, and late enough to reach `begin`."""
        if task not in self._sorted:
            known = sorted(self._context.get(task, ()), key=lambda one: one.begin)
            longest = max((one.end - one.begin for one in known), default=0)
            self._sorted[task] = (known, [one.begin for one in known], longest)
        known, begins, longest = self._sorted[task]
        return known[bisect_left(begins, begin - longest) : bisect_left(begins, end)]

    def _waker(self, operation: Operation, first: int) -> tuple[int, int] | None:
        """(the thread that ended a wait, the event with which it did)."""
        events = self._log.events
        start, stop = np.searchsorted(self._wakes, (first + 1, operation.event))
        between = self._wakes[start:stop]
        address = operation.resource.address
        exits: tuple[int, int] | None = None
        for number in between[::-1].tolist():
            row = events[number]
            task = int(row["task"])
            if task == operation.task:
                continue
            if row["kind"] == Kind.TASK_EXIT:
                exits = exits or (task, number)
            elif int(row["args"][0]) == address or int(row["args"][4]) == address:
                return task, number
        return exits


def clipped(one: Operation, window: Operation) -> float:
    """How long an operation took within the time of another, in milliseconds."""
    return max(0, min(one.end, window.end) - max(one.begin, window.begin)) / 1e6


def projected(environment: Environment, operation: Operation, behind: Behind | None) -> Projected:
    """An operation's time under a model. A wait for another thread grows by what that thread's own operations
    during the wait would take longer: they are not added a second time."""
    alone = environment.project(operation)
    if behind is None or operation.resource.kind not in ("lock", "thread"):
        return alone
    more = luck = 0.0
    once: set[int] = set()
    for other in behind.operations:
        there = environment.project(other)
        if there.figure is None or (there.once and id(there.figure) in once):
            continue
        once.add(id(there.figure))
        more += max(0.0, there.median_ms - clipped(other, operation))
        luck = max(luck, there.tail_ms - there.median_ms)
    return Projected(alone.median_ms + more, alone.median_ms + more + luck, False, alone.figure)


def doing(behind: Behind, window: Operation, most: int = 3) -> str:
    """What the other thread did, in words."""
    parts: dict[str, float] = {}
    for one in behind.operations:
        name = one.name if str(one.resource) == one.resource.kind else f"{one.name} {one.resource}"
        parts[name] = parts.get(name, 0.0) + clipped(one, window)
    shown = sorted(parts.items(), key=lambda item: -item[1])[:most]
    return ", ".join(f"{name} ({ms:.0f} ms)" for name, ms in shown if ms >= 1)
