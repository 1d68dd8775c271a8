"""Calls of the C library that are system calls by another name, shown as such.

A trace recorded at a library interface holds calls of functions. Many of libc's (open, read, poll, connect)
take the same arguments as the system call of that name and give the same result: whoever shows or judges
system calls can take them for these. What is left (sqlite3_step, fopen, usleep) stays a library call.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import Any

from interfaces.abi import EventFlag, Kind, Region, RegionKind, parse_regions
from interfaces.arrays import numpy
from interfaces.calls import BY_NAME
from interfaces.errors import RrPyError
from interfaces.libspec.show import LibFlag
from tracefile.chunk import Chunk, EventArray, EventView

_ALIASES = {
    "open64": "open", "openat64": "openat", "pread": "pread64", "pwrite": "pwrite64", "lseek64": "lseek",
    "fcntl64": "fcntl", "stat64": "stat", "lstat64": "lstat", "fstat64": "fstat", "fstatat": "newfstatat",
    "fstatat64": "newfstatat", "statfs64": "statfs", "ftruncate64": "ftruncate", "sendfile64": "sendfile",
    "getrlimit64": "getrlimit", "send": "sendto", "recv": "recvfrom", "waitpid": "wait4",
}  # fmt: skip
"""Functions whose arguments are those of a system call with another name, as far as they go."""


_ERRNO = int(LibFlag.ERRNO)


class AsSystemCalls:
    """Translates the events of one trace; `of` makes one where there is something to translate."""

    def __init__(self, numbers: Mapping[int, int]) -> None:
        """`numbers`: of functions, as events have them, to those of system calls."""
        self._numbers = dict(numbers)

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> AsSystemCalls | None:
        """For the META of a trace; None where it was recorded at system calls, or cannot be read."""
        if not isinstance(meta.get("library"), dict):
            return None
        from interfaces.libspec.model import Function
        from interfaces.libspec.recorded import interfaces_of, numbered

        try:
            known = numbered(interfaces_of(meta))
        except RrPyError:
            return None
        found = {}
        for number, (_, item) in known.items():
            call = BY_NAME.get(_ALIASES.get(item.name, item.name))
            whole = isinstance(item, Function) and item.returns.kind == "integer"
            if call is not None and whole and len(item.parameters) <= max(len(call.args), 1):
                found[number] = call.number
        return cls(found)

    def chunk(self, chunk: Chunk) -> Chunk:
        """The chunk with the calls translated; itself where it has none."""
        np = numpy()
        events = chunk.events
        library = (events["kind"] == Kind.LIBCALL) & (events["flags"] & (0xFF ^ _ERRNO) == 0)
        chosen = np.flatnonzero(library & np.isin(events["nr"], list(self._numbers)))
        if not len(chosen):
            return chunk
        made: EventArray = events.copy()
        failed = (events["flags"] & _ERRNO != 0) & (events["result"] == -1)
        made["nr"][chosen] = [self._numbers[nr] for nr in events["nr"][chosen].tolist()]
        made["kind"][chosen] = Kind.SYSCALL
        made["flags"][chosen] = EventFlag.PRECISE
        for i in chosen[failed[chosen]].tolist():
            made["result"][i] = -error_of(chunk.event_payload(i))
        return Chunk(chunk.domain, chunk.first_event, made, lambda: chunk.payload, chunk._fail)

    def view(self, event: EventView) -> EventView:
        """The event translated; itself where it is no such call."""
        nr = self._numbers.get(event.nr)
        if event.kind != Kind.LIBCALL or nr is None or event.flags & (0xFF ^ _ERRNO):
            return event
        failed = event.flags & _ERRNO and event.result == -1
        return event._replace(
            kind=Kind.SYSCALL,
            nr=nr,
            flags=EventFlag.PRECISE,
            result=-error_of(event.payload) if failed else event.result,
        )


def placed(event: EventView, regions: Sequence[Region]) -> list[Region]:
    """The regions of a translated call, where its arguments point: library calls are logged without."""
    count = len(event.args)
    return [
        region._replace(addr=event.args[region.arg])
        if not region.addr and region.arg < count and region.kind in (RegionKind.IN, RegionKind.OUT)
        else region
        for region in regions
    ]


def error_of(payload: bytes) -> int:
    """The errno that a library call left; EIO where the payload does not say."""
    try:
        regions = parse_regions(payload)
    except ValueError:
        return errno.EIO
    data = next((region.data for region in regions if region.kind == RegionKind.INFO), b"")
    return int.from_bytes(data[:4], "little") or errno.EIO
