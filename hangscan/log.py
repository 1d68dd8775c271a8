"""The events of one domain as one array, and quick questions about it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from interfaces.abi import EVENT_DTYPE, REGION_HEADER, EventFlag, Kind, Region, RegionKind, parse_regions
from interfaces.calls import BY_NAME
from tracefile import Chunk, TraceFormatError, TraceReader
from tracefile.library import AsSystemCalls

IntArray = npt.NDArray[np.int64]


def numbers(*names: str) -> frozenset[int]:
    """Numbers of system calls; names that this table does not have are left out."""
    return frozenset(BY_NAME[name].number for name in names if name in BY_NAME)


class DomainLog:
    """All events of a domain, in memory; payloads are read when asked for."""

    def __init__(self, reader: TraceReader, domain: int) -> None:
        """Reads the headers of all events; calls of a library that are system calls by another name are
        taken for these. A damaged chunk ends the log there: `damage` says why."""
        self.reader = reader
        self.domain = domain
        self.damage = ""
        self._chunks: list[Chunk] = []
        translate = AsSystemCalls.of(reader.meta)
        try:
            for chunk in reader.chunks(domain):
                self._chunks.append(translate.chunk(chunk) if translate is not None else chunk)
        except TraceFormatError as error:
            self.damage = error.message
        parts = [chunk.events for chunk in self._chunks]
        self.events: npt.NDArray[Any] = np.concatenate(parts) if parts else np.zeros(0, EVENT_DTYPE)
        self._firsts = [chunk.first_event for chunk in self._chunks]
        self._by_task: dict[int, IntArray] = {}

    def __len__(self) -> int:
        return len(self.events)

    def regions(self, event: int) -> list[Region]:
        """The payload regions of an event; empty where they are damaged."""
        chunk = self._chunks[bisect_right(self._firsts, event) - 1]
        try:
            return parse_regions(chunk.event_payload(event - chunk.first_event))
        except (ValueError, TraceFormatError):
            return []

    def tasks(self) -> list[int]:
        """Recorded thread ids, in the order of their first events."""
        values, first = np.unique(self.events["task"], return_index=True)
        return [int(value) for value in values[np.argsort(first)]]

    def of_task(self, task: int) -> IntArray:
        """Event numbers of a task, ascending."""
        if task not in self._by_task:
            self._by_task[task] = np.flatnonzero(self.events["task"] == task)
        return self._by_task[task]

    def calls(self, which: Iterable[int], task: int | None = None) -> IntArray:
        """Event numbers of completed calls with these numbers, of all tasks or of one."""
        events = self.events
        chosen = (events["kind"] == Kind.SYSCALL) & np.isin(events["nr"], list(which))
        if task is not None:
            chosen &= events["task"] == task
        return np.flatnonzero(chosen)

    def release_of(self, event: int) -> int | None:
        """For a call that gave up the baton: the event that did; None for one that kept it."""
        of_task = self.of_task(int(self.events[event]["task"]))
        position = int(np.searchsorted(of_task, event)) - 1
        while position >= 0:
            before = int(of_task[position])
            kind = int(self.events[before]["kind"])
            if kind == Kind.RELEASE:
                return before if self.events[before]["nr"] == self.events[event]["nr"] else None
            if kind not in (Kind.DATA, Kind.RESUME, Kind.YIELD):
                return None
            position -= 1
        return None

    def payload(self, event: int) -> bytes:
        """The raw payload of an event; empty where it is damaged."""
        chunk = self._chunks[bisect_right(self._firsts, event) - 1]
        try:
            return chunk.event_payload(event - chunk.first_event)
        except TraceFormatError:
            return b""

    def inputs(self, event: int) -> list[Region]:
        """All regions of a call: what it read (which a blocking call logs when it begins) and what it
        wrote."""
        found = self.regions(event)
        if not self.events[event]["flags"] & EventFlag.BLOCKED:
            return found
        before = self.release_of(event)
        return found if before is None else self.regions(before) + found


class CallRegions:
    """The regions of a call, read when first asked for. `text` alone is quick."""

    __slots__ = ("_blocked", "_event", "_log", "_value")

    def __init__(self, log: DomainLog, event: int, blocked: bool) -> None:
        self._log = log
        self._event = event
        self._blocked = blocked
        self._value: list[Region] | None = None

    def __call__(self) -> list[Region]:
        """All regions."""
        if self._value is None:
            self._value = self._log.inputs(self._event)
        return self._value

    def text(self, arg: int) -> str:
        """The string that argument `arg` points at; "" where it was not recorded."""
        if not self._blocked:
            payload = self._log.payload(self._event)
            if len(payload) >= REGION_HEADER.size:
                _address, size, kind, of, _high = REGION_HEADER.unpack_from(payload)
                if kind == RegionKind.IN and of == arg:
                    data = payload[REGION_HEADER.size : REGION_HEADER.size + size]
                    return data.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
        for region in self():
            if region.arg == arg and region.kind == RegionKind.IN:
                return region.data.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
        return ""
