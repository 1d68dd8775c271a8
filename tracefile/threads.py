"""The events of one thread of a trace, and what they say apart from what every recording has its own of."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from interfaces.abi import Kind
from interfaces.calls import name_of
from interfaces.decode import Style, format_event
from interfaces.decode.scalars import quoted
from tracefile.chunk import Chunk, EventView
from tracefile.reader import TraceReader

COMPARED = frozenset(
    {
        Kind.SYSCALL,
        Kind.SIGNAL,
        Kind.TASK_START,
        Kind.TASK_EXIT,
        Kind.EXEC,
        Kind.FORK,
        Kind.DEATH,
        Kind.EXECED,
    }
)
"""Kinds that tell what the program did; the others are about recording, or the processor's."""
PARTS = frozenset({Kind.RELEASE, Kind.DATA})
"""Kinds that hold what a later call of the thread read or wrote."""
STRINGS = 1 << 17
_CACHED = 8


@dataclass(frozen=True, slots=True)
class ThreadId:
    """A thread by the kernel's ids at recording time."""

    domain: int
    task: int


class ThreadLog:
    """What one thread did, as numbered items: its events of the kinds COMPARED."""

    def __init__(
        self,
        reader: TraceReader,
        thread: ThreadId,
        numbers: npt.NDArray[np.int64],
        parts: npt.NDArray[np.int64],
    ) -> None:
        """`numbers` are the events that count, `parts` those of the kinds PARTS; both ascending."""
        self.reader = reader
        self.thread = thread
        self.numbers = numbers
        self._parts = parts
        self._chunks: list[Chunk] = []

    def __len__(self) -> int:
        return len(self.numbers)

    def event(self, i: int) -> EventView:
        """Item `i`."""
        return self._view(int(self.numbers[i]))

    def raw(self, i: int) -> tuple[object, ...]:
        """Everything about item `i` that can be compared without decoding; equal items are the same."""
        view = self.event(i)
        parts = (part.payload for part in self._before(i))
        return (view.kind, view.nr, view.args, view.result, view.payload, *parts)

    def text(self, i: int, strings: int = STRINGS) -> str:
        """Item `i` without addresses, ids and times: equal for the same behaviour."""
        view = self.event(i)
        if view.kind == Kind.EXEC:
            return f"+++ running {self.reader.domains[view.domain].exe} +++"
        if view.kind == Kind.FORK:
            return "+++ forked +++"
        if view.kind == Kind.TASK_START:
            return f"+++ {'process' if view.args[2] else 'thread'} starts +++"
        if view.kind == Kind.EXECED and (made := self.reader.domains.get(view.args[0])) is not None:
            style = Style(strings=strings)
            argv = ", ".join(quoted(os.fsencode(word), style) for word in made.argv)
            return f"{name_of(view.nr)}({quoted(os.fsencode(made.exe), style)}, [{argv}])"
        regions = []
        try:
            for part in (*self._before(i), view):
                regions.extend(part.regions)
        except ValueError:
            regions = []
        return format_event(view, regions, deterministic=True, strings=strings)

    def _before(self, i: int) -> list[EventView]:
        """The events before item `i` that hold parts of its payload."""
        first = int(self.numbers[i - 1]) if i else -1
        start, stop = np.searchsorted(self._parts, [first, int(self.numbers[i])])
        return [self._view(number) for number in self._parts[start:stop].tolist()]

    def _view(self, number: int) -> EventView:
        """An event, by way of a few chunks that are kept: two threads of one domain do not share the
        reader's."""
        for chunk in self._chunks:
            if chunk.first_event <= number < chunk.end_event:
                return chunk.view(number - chunk.first_event)
        info = self.reader.domains[self.thread.domain]
        if not 0 <= number < info.event_count:
            raise IndexError(f"domain {info.domain} has {info.event_count} events, there is no {number}")
        firsts = np.frombuffer(info.firsts, np.uint64)
        begin = int(firsts[int(np.searchsorted(firsts, number, "right")) - 1])
        chunk = next(self.reader.chunks(info.domain, begin))
        self._chunks = [chunk, *self._chunks[: _CACHED - 1]]
        return chunk.view(number - chunk.first_event)


def threads_of(reader: TraceReader, domain: int) -> list[ThreadLog]:
    """The threads of a domain, in the order of their first events."""
    numbers: dict[int, list[npt.NDArray[np.int64]]] = {}
    parts: dict[int, list[npt.NDArray[np.int64]]] = {}
    for chunk in reader.chunks(domain):
        tasks = chunk.events["task"]
        wanted = np.isin(chunk.events["kind"], sorted(COMPARED))
        partial = np.isin(chunk.events["kind"], sorted(PARTS))
        present, first = np.unique(tasks, return_index=True)
        for task in present[np.argsort(first)].tolist():
            own = tasks == task
            numbers.setdefault(task, []).append(np.flatnonzero(wanted & own) + chunk.first_event)
            parts.setdefault(task, []).append(np.flatnonzero(partial & own) + chunk.first_event)
    return [
        ThreadLog(reader, ThreadId(domain, task), np.concatenate(found), np.concatenate(parts[task]))
        for task, found in numbers.items()
    ]
