"""Noticing that a replay makes no progress, without mistaking slow for stuck.

Progress is an event consumed or a process made or ended. A program may compute for long between two events:
the limit then is CPU time, and grows with how long the recorded program took there. One that uses no CPU
and consumes nothing is given the limit in time during which nothing held it up: a debugger, a full output
pipe or a suspended tool stop the clock.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

_TICK_MAX = 1.0
_SLOWER = 20
_CPU_NOTICED = 0.02


class Usage(NamedTuple):
    """CPU seconds of some processes so far, and whether one of them is stopped by a debugger or a signal."""

    cpu: float
    held: bool


def usage(pids: Iterable[int]) -> Usage:
    """Read it from /proc; processes that are gone count nothing."""
    ticks = 0
    held = False
    for pid in pids:
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
            held = held or fields[0] in (b"t", b"T")
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), held)


def writable(descriptors: Iterable[int]) -> bool:
    """Whether output can go on: none of the descriptors is a full pipe or a terminal that was paused."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLOUT)
    wanted = dict(poll.poll(0))
    return all(descriptor in wanted for descriptor in descriptors)


class Watchdog:
    """Judges a replay by what `look` is told from time to time."""

    def __init__(self, limit: float) -> None:
        """`limit`: seconds without progress; of time when idle, of CPU when busy."""
        self._limit = limit
        self._progress: object = None
        self._last: float | None = None
        self._idle = 0.0
        self._cpu_at_progress = 0.0
        self._cpu_before = 0.0

    @property
    def idle(self) -> float:
        """Seconds in which nothing has happened and nothing has been computed."""
        return self._idle

    def look(
        self, now: float, progress: object, used: Usage, free: bool, recorded_gap: Callable[[], float]
    ) -> bool:
        """Whether the replay is stuck.

        `progress` is anything that changes with every event and process; `free`: output can go on;
        `recorded_gap`: seconds the recorded program took to its next event, the most of all domains.
        """
        passed = min(now - self._last, _TICK_MAX) if self._last is not None else 0.0
        self._last = now
        if progress != self._progress:
            self._progress = progress
            self._idle = 0.0
            self._cpu_at_progress = self._cpu_before = used.cpu
            return False
        busy = used.cpu - self._cpu_before
        if busy >= _CPU_NOTICED:
            self._cpu_before = used.cpu
            self._idle = 0.0
        elif free and not used.held:
            self._idle += passed
        computing = used.cpu - self._cpu_at_progress
        if self._idle > self._limit:
            return True
        return computing > self._limit and computing > self._limit + _SLOWER * recorded_gap()
