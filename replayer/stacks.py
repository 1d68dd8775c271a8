"""Many stacks of one recording in a single replay: at events, and of what a thread computes between two.

for found in Collector(session).collect([Wanted(120), Wanted(340, until=341)]):
    print(found.wanted.event, found.frames or found.samples)
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field

from replayer.backtrace import StackFrame, StackReader
from replayer.domain import LiveDomain
from replayer.inspect import mappings_of
from replayer.memory import Mappings, MemoryFault, ProcessMemory
from replayer.registers import Registers
from replayer.sampling import registers_now, ticking
from replayer.session import Ended, Paused, Session

_SAMPLE_EVERY = 0.005
_MAX_SAMPLES = 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """A stack to get: of the task that makes event `event`, there; with `until`, what that task computes
    between its events `event` and `until`, sampled."""

    event: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a `Wanted`: `frames` at the event (empty where they cannot be read), or `samples` and
    how many `seconds` the replay took from the one event to the other."""

    wanted: Wanted
    frames: tuple[StackFrame, ...] = ()
    samples: tuple[tuple[StackFrame, ...], ...] = ()
    seconds: float = 0.0


@dataclass(slots=True)
class _Window:
    wanted: Wanted
    tid: int
    began: float
    samples: list[tuple[StackFrame, ...]] = field(default_factory=list)


class Collector:
    """One pass over one domain. `ended` is how the replay ended, where it did before the last stack."""

    def __init__(self, session: Session, reader: StackReader | None = None) -> None:
        self._session = session
        self._reader = reader if reader is not None else StackReader()
        self._windows: list[_Window] = []
        self._mappings: dict[int, tuple[str, Mappings]] = {}
        self.ended: Ended | None = None

    def collect(self, wanted: Iterable[Wanted]) -> Iterator[Found]:
        """The stacks, in the order of events; those that a replay does not reach are left out."""
        stops: dict[int, list[Wanted]] = {}
        ends: set[int] = set()
        for one in wanted:
            stops.setdefault(one.event, []).append(one)
            if one.until is not None:
                ends.add(one.until)
        total = self._session.reader.event_count(self._session.domain)
        for event in sorted(stops.keys() | ends):
            if event >= total:
                break
            pause = self._run_to(event + 1)
            if isinstance(pause, Ended):
                self.ended = pause
                break
            finished = [window for window in self._windows if window.wanted.until == event]
            self._windows = [window for window in self._windows if window.wanted.until != event]
            for window in finished:
                seconds = time.monotonic() - window.began
                yield Found(window.wanted, samples=tuple(window.samples), seconds=seconds)
            here = stops.get(event, [])
            if any(one.until is None for one in here):
                frames = self._stack(pause)
                for one in here:
                    if one.until is None:
                        yield Found(one, frames)
            now = time.monotonic()
            self._windows.extend(_Window(one, pause.tid, now) for one in here if one.until is not None)
        for window in self._windows:
            if window.samples:
                seconds = time.monotonic() - window.began
                yield Found(window.wanted, samples=tuple(window.samples), seconds=seconds)
        self._windows = []

    def close(self) -> None:
        """Close what was opened for reading stacks; the session stays open."""
        self._reader.close()

    def _run_to(self, event: int) -> Paused | Ended:
        selector = self._session._supervisor._selector
        sampling = ticking(selector, _SAMPLE_EVERY, self._sample) if self._windows else nullcontext()
        with sampling:
            return self._session.run_to(event)

    def _stack(self, pause: Paused) -> tuple[StackFrame, ...]:
        try:
            pid = pause.real_pid
            return self._reader.read(
                pid, self._memory_of(pid), self._mappings_of(pid), pause.registers(), pause.tid
            )
        except (MemoryFault, OSError):
            return ()

    def _memory_of(self, pid: int) -> ProcessMemory:
        """The memory of a replaying process, the same object all the time: readers keep it."""
        memories = self._session._memories
        if pid not in memories:
            memories[pid] = ProcessMemory(pid)
        return memories[pid]

    def _mappings_of(self, pid: int) -> Mappings:
        """What is mapped, the same object as before where nothing has changed."""
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
        known = self._mappings.get(pid)
        if known is None or known[0] != text:
            known = self._mappings[pid] = (text, mappings_of(pid, self._session.contents))
        return known[1]

    def _sample(self) -> None:
        """Take the stack of every thread that is to be sampled, where it is now."""
        live = self._session._supervisor.domains.get(self._session.domain)
        if live is None or live.finished or live.paused:
            return
        for window in self._windows:
            if len(window.samples) < _MAX_SAMPLES:
                self._sample_one(live, window)

    def _sample_one(self, live: LiveDomain, window: _Window) -> None:
        task = live.tasks.get(window.tid)
        if task is None:
            return
        pid = task.real_pid

        def look(registers: Registers) -> None:
            with suppress(MemoryFault, OSError):
                memory, mappings = self._memory_of(pid), self._mappings_of(pid)
                window.samples.append(self._reader.read(pid, memory, mappings, registers, window.tid))

        registers_now(task.real_tid, look)
