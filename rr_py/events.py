"""Which events of a trace a user asked for, and each as a line of text, as strace prints them."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from interfaces.abi import EventFlag, Kind, Region, RegionKind
from interfaces.calls import CALLS, exec_name
from interfaces.decode import Field, Style, decode_args, format_event
from interfaces.decode.scalars import quoted
from interfaces.names.signals import errno_name, signal_name
from rr_py.text import printable

if TYPE_CHECKING:
    from tracefile import Chunk, EventView, TraceReader

QUIET_KINDS = frozenset({Kind.RELEASE, Kind.PREEMPT, Kind.YIELD, Kind.RESUME, Kind.DATA, Kind.CHECKSUM})
"""Kinds that only say how recording went about it; shown on demand."""


@dataclass(frozen=True)
class Filter:
    """What to show. Conditions left None hold for every event; those of a call hold for no other kind.

    `first` and `last` are event numbers within each domain, `last` is included; `paths` are shell patterns.
    """

    pid: int | None = None
    calls: frozenset[int] | None = None
    errnos: frozenset[int] | None = None
    paths: tuple[str, ...] = ()
    first: int = 0
    last: int | None = None
    everything: bool = False

    @property
    def calls_only(self) -> bool:
        return self.calls is not None or self.errnos is not None or bool(self.paths)

    def mask(self, chunk: Chunk, tasks: Tasks) -> npt.NDArray[np.bool_]:
        """The events of the chunk that pass, as far as their headers tell (paths need the payload)."""
        events = chunk.events
        kinds = events["kind"]
        chosen: npt.NDArray[np.bool_]
        if self.calls_only:
            chosen = kinds == Kind.SYSCALL
        elif self.everything:
            chosen = np.ones(len(events), np.bool_)
        else:
            chosen = ~np.isin(kinds, list(QUIET_KINDS))
        if self.calls is not None:
            chosen &= np.isin(events["nr"], list(self.calls))
        if self.errnos is not None:
            chosen &= np.isin(events["result"], [-number for number in self.errnos])
        if self.pid is not None:
            own = [
                task
                for task in np.unique(events["task"]).tolist()
                if self.pid in (task, tasks.process(chunk.domain, task))
            ]
            chosen &= np.isin(events["task"], own)
        numbers = np.arange(chunk.first_event, chunk.end_event)
        chosen &= numbers >= self.first
        if self.last is not None:
            chosen &= numbers <= self.last
        return chosen

    def wants_path(self, event: EventView, regions: Sequence[Region]) -> bool:
        """Whether one of the call's paths matches a pattern, or lies below one."""
        if not self.paths:
            return True
        found = paths_of(event, regions)
        return any(
            fnmatch.fnmatchcase(path, pattern) or path.startswith(pattern.rstrip("/") + "/")
            for path in found
            for pattern in self.paths
        )


def paths_of(event: EventView, regions: Sequence[Region]) -> list[str]:
    """The paths that a call names, and those its descriptors stand for where the recording says so."""
    call = CALLS.get(event.nr)
    arguments = set() if call is None else {i for i, arg in enumerate(call.args) if arg.type == "path"}
    return [
        os.fsdecode(region.data.split(b"\0", 1)[0])
        for region in regions
        if region.kind == RegionKind.PATH or (region.kind == RegionKind.IN and region.arg in arguments)
    ]


class Tasks:
    """Which process a task belongs to, learnt from the events as they go by."""

    def __init__(self, reader: TraceReader) -> None:
        self._first = {number: info.pid for number, info in reader.domains.items()}
        self._processes: dict[tuple[int, int], int] = {}

    def learn(self, chunk: Chunk) -> None:
        """Take in the task starts of a chunk."""
        starts = chunk.events[chunk.events["kind"] == Kind.TASK_START]
        for task, args in zip(starts["task"].tolist(), starts["args"].tolist(), strict=True):
            self._processes[chunk.domain, task] = int(args[1])

    def process(self, domain: int, task: int) -> int:
        """The process id of a task."""
        return self._processes.get((domain, task), self._first[domain])


@dataclass
class Selection:
    """Goes through a trace and yields what a filter lets pass, with all regions of each event.

    Output that did not fit into an event precedes it in events of kind DATA, and what a call that waited
    was given stands in its RELEASE; both are put together here.
    """

    reader: TraceReader
    filter: Filter
    by_domain: bool = False
    tasks: Tasks = field(init=False)
    _more: dict[tuple[int, int], list[Region]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tasks = Tasks(self.reader)

    def __iter__(self) -> Iterator[tuple[EventView, list[Region]]]:
        masks: dict[int, tuple[Chunk, npt.NDArray[np.bool_]]] = {}
        for chunk, start, stop in self._runs():
            known = masks.get(chunk.domain)
            if known is None or known[0] is not chunk:
                self.tasks.learn(chunk)
                known = masks[chunk.domain] = (chunk, self.filter.mask(chunk, self.tasks))
            chosen = known[1][start:stop]
            for i in self._needed(chunk, start, chosen):
                found = self._event(chunk, start + i, bool(chosen[i]))
                if found is not None:
                    yield found

    def _runs(self) -> Iterator[tuple[Chunk, int, int]]:
        if not self.by_domain:
            yield from self.reader.merged_runs()
            return
        for domain in domains_in_order(self.reader):
            for chunk in self.reader.chunks(domain):
                yield chunk, 0, len(chunk)

    def _needed(self, chunk: Chunk, start: int, chosen: npt.NDArray[np.bool_]) -> list[int]:
        """Chosen events, all DATA and RELEASE events, and the call that each of those belongs to."""
        events = chunk.events[start : start + len(chosen)]
        data = np.flatnonzero((events["kind"] == Kind.DATA) | (events["kind"] == Kind.RELEASE))
        waiting = [(0, task) for domain, task in self._more if domain == chunk.domain]
        if not len(data) and not waiting:
            return list(map(int, np.flatnonzero(chosen)))
        needed = chosen.copy()
        needed[data] = True
        for at, task in [*waiting, *((int(i), int(events["task"][i])) for i in data)]:
            calls = np.flatnonzero((events["kind"][at:] == Kind.SYSCALL) & (events["task"][at:] == task))
            if len(calls):
                needed[at + calls[0]] = True
        return list(map(int, np.flatnonzero(needed)))

    def _event(self, chunk: Chunk, i: int, chosen: bool) -> tuple[EventView, list[Region]] | None:
        event = chunk.view(i)
        regions = chunk.regions(i)
        key = (event.domain, event.task)
        if event.kind in (Kind.DATA, Kind.RELEASE):
            self._more.setdefault(key, []).extend(regions)
        elif event.kind == Kind.SYSCALL:
            regions = self._more.pop(key, []) + regions
        return (event, regions) if chosen and self.filter.wants_path(event, regions) else None


def domains_in_order(reader: TraceReader) -> list[int]:
    """All domains, each parent before its children, children in the order in which the parent made them.

    The order depends on the program and not on the speed of its processes.
    """
    children: dict[int, list[int]] = {}
    for number, info in reader.domains.items():
        children.setdefault(info.parent_domain, []).append(number)
    order: list[int] = []
    seen: set[int] = set()
    stack = sorted(children.get(0, []), reverse=True)
    while stack:
        number = stack.pop()
        if number in seen:
            continue
        seen.add(number)
        order.append(number)

        def place(child: int) -> tuple[int, int]:
            event = reader.domains[child].parent_event
            return (event if event is not None else 1 << 63, child)

        stack.extend(sorted(children.get(number, []), key=place, reverse=True))
    return order + sorted(set(reader.domains) - seen)


class Lines:
    """Text of events; `deterministic` leaves out what differs between recordings of the same behaviour."""

    def __init__(
        self, reader: TraceReader, tasks: Tasks, *, deterministic: bool = False, strings: int = 32
    ) -> None:
        self._reader = reader
        self._tasks = tasks
        self._deterministic = deterministic
        self._strings = strings
        self._names: dict[int, str] = {}

    def label(self, event: EventView) -> str:
        """`[pid 1234] `; the deterministic form counts tasks as they appear: `[task 1] `."""
        if not self._deterministic:
            return f"[pid {event.task:5}] "
        return f"[{self._name(event.task)}] "

    def _name(self, task: int) -> str:
        return self._names.setdefault(task, f"task {len(self._names) + 1}")

    def text(self, event: EventView, regions: list[Region]) -> str:
        """The event without its label."""
        if event.kind == Kind.EXEC:
            return f"+++ running {printable(self._reader.domains[event.domain].exe)} +++"
        if event.kind == Kind.EXECED and (made := self._reader.domains.get(event.args[0])) is not None:
            short, whole = Style(strings=self._strings), Style(strings=4096)
            argv = ", ".join(quoted(os.fsencode(word), short) for word in made.argv)
            return f"{exec_name(event.nr)}({quoted(os.fsencode(made.exe), whole)}, [{argv}]) = 0"
        if self._deterministic and event.kind == Kind.FORK:
            return f"+++ forked from {self._name(event.args[1])} +++"
        if self._deterministic and event.kind == Kind.TASK_START:
            what = "process" if event.args[2] else "thread"
            return f"+++ {what} starts, made by {self._name(event.args[0])} +++"
        text = format_event(event, regions, deterministic=self._deterministic, strings=self._strings)
        answered = event.kind != Kind.LIBCALL and event.flags & EventFlag.UNKNOWN
        return f"{text} (answered by rr-py)" if answered else text


def as_json(event: EventView, regions: list[Region], tasks: Tasks, text: str, strings: int) -> dict[str, Any]:
    """One event as a JSON object. Times are CLOCK_MONOTONIC nanoseconds of the recording machine."""
    found: dict[str, Any] = {
        "domain": event.domain,
        "event": event.number,
        "pid": tasks.process(event.domain, event.task),
        "task": event.task,
        "kind": kind_name(event.kind),
        "time_in": event.time_in,
        "time_out": event.time_out,
        "text": text,
    }
    if event.kind == Kind.SYSCALL:
        call = CALLS.get(event.nr)
        found |= {
            "call": call.name if call else None,
            "nr": event.nr,
            "result": event.result,
            "error": errno_name(-event.result) if -4095 <= event.result < 0 else None,
            "ip": event.ip,
            "args": [field_as_json(item) for item in decode_args(event, regions, strings=strings)],
        }
    elif event.kind in (Kind.SIGNAL, Kind.DEATH):
        found["signal"] = signal_name(event.nr)
    elif event.kind in (Kind.RDTSC, Kind.TASK_EXIT, Kind.CHECKSUM):
        found["result"] = event.result
    elif event.kind == Kind.CPUID:
        found["args"] = list(event.args)
    return found


def field_as_json(item: Field) -> dict[str, Any]:
    """A decoded argument (`interfaces.decode.Field`) with its children."""
    found: dict[str, Any] = {"name": item.name, "type": item.type, "value": item.value}
    if item.children:
        found["children"] = [field_as_json(child) for child in item.children]
    return found


def kind_name(kind: int) -> str:
    try:
        return Kind(kind).name.lower()
    except ValueError:
        return f"kind {kind}"
