"""Traces recorded at a library interface: which of their calls are waits, which block, and on what.

Calls of libc that are system calls by another name were translated before (`tracefile.library`). Of the
others the function's name tells. There are no stacks in such a trace: the called function stands for one,
with its caller's address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from hangscan.log import DomainLog, IntArray
from hangscan.model import Operation, Resource
from interfaces.abi import Kind, RegionKind
from interfaces.errors import RrPyError
from interfaces.libspec.model import Callback, Function, Interface
from interfaces.libspec.recorded import interfaces_of, numbered
from interfaces.libspec.show import LibFlag
from replayer.backtrace import StackFrame

WAITS = ("XNextEvent", "XPeekEvent", "curl_multi_poll", "curl_multi_wait")
"""Functions in which an event loop waits for whatever comes."""

_RULES: tuple[tuple[str, str, str], ...] = (
    ("sleep", "sleep", "sleep"), ("usleep", "sleep", "sleep"), ("sqlite3_sleep", "sleep", "sleep"),
    ("system", "child", "wait"), ("popen", "child", "wait"), ("wait", "child", "wait"),
    ("fopen*", "file", "open"), ("mkstemp*", "file", "open"), ("mkdtemp", "file", "change"),
    ("opendir", "file", "open"), ("readdir*", "file", "readdir"), ("realpath", "file", "stat"),
    ("euidaccess", "file", "stat"), ("remove", "file", "change"), ("fclose", "file", "close"),
    ("fread*", "file", "read"), ("fget*", "file", "read"), ("getdelim", "file", "read"),
    ("getline", "file", "read"), ("fwrite*", "file", "write"), ("fput*", "file", "write"),
    ("fflush", "file", "write"), ("fprintf", "file", "write"),
    ("gzopen*", "file", "open"), ("gzclose", "file", "close"), ("gz*", "file", "read"),
    ("sqlite3_*", "file", "run a database statement"),
    ("PQ*", "socket", "ask a database server"), ("lo_*", "socket", "ask a database server"),
    ("curl_*", "socket", "transfer"), ("SSL_*", "socket", "transfer"), ("BIO_*", "socket", "transfer"),
    ("X*", "display", "round trip"),
    ("pthread_join", "thread", "wait"), ("pthread_barrier_wait", "thread", "wait"),
    ("pthread_cond_*wait", "lock", "wait"), ("pthread_mutex_*lock", "lock", "wait"),
    ("pthread_rwlock_*lock", "lock", "wait"), ("sem_*wait", "lock", "wait"),
)  # fmt: skip
"""Pattern of the name, kind of resource, operation; the first that fits. Anything else computes."""

_SKIPPED = LibFlag.CALLBACK | LibFlag.RETURN | LibFlag.PART | LibFlag.ENTER | LibFlag.RELEASE
_LEAST_NS = 1_000_000
_PATHS = ("path", "filename", "file_name", "file")


class LibraryCalls:
    """The functions of the interfaces that a trace was recorded at."""

    def __init__(self, known: Mapping[int, tuple[Interface, Function | Callback]]) -> None:
        self._known = known
        self.waits = [number for number, (_, item) in known.items() if item.name in WAITS]
        """Numbers of the functions in WAITS."""

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> LibraryCalls | None:
        """For the META of a trace; None where it holds system calls. Unreadable interfaces have no names."""
        if not isinstance(meta.get("library"), dict):
            return None
        try:
            return cls(numbered(interfaces_of(meta)))
        except RrPyError:
            return cls({})

    def idle(self, log: DomainLog) -> IntArray:
        """Events in which a loop waits."""
        events = log.events
        return np.flatnonzero((events["kind"] == Kind.LIBCALL) & np.isin(events["nr"], self.waits))

    def operations(self, log: DomainLog, task: int) -> Iterator[Operation]:
        """The calls of a thread that took a millisecond or more."""
        events = log.events
        took = events["time_out"].astype(np.int64) - events["time_in"].astype(np.int64)
        chosen = (events["kind"] == Kind.LIBCALL) & (events["task"] == task) & (took >= _LEAST_NS)
        chosen &= events["flags"] & int(_SKIPPED) == 0
        for number in np.flatnonzero(chosen).tolist():
            row = events[number]
            name = self.name(int(row["nr"]))
            kind, what = rule_of(name)
            yield Operation(
                log.domain, task, number, what, Resource(kind, self._path(log, number)),
                int(row["time_in"]), int(row["time_out"]), wait=int(row["nr"]) in self.waits,
                detail={"call": name, "ip": int(row["ip"])},
            )  # fmt: skip

    def name(self, number: int) -> str:
        """A function's name, its number where the trace does not say."""
        return self._known[number][1].name if number in self._known else f"function {number}"

    def stack(self, log: DomainLog, event: int, call: str) -> tuple[StackFrame, ...]:
        """What stands for the stack of a call: the function, and the address it was called from."""
        row = log.events[event]
        number = int(row["nr"]) if row["kind"] == Kind.LIBCALL else 0
        libraries = self._known[number][0].libraries if number in self._known else ("libc.so.6",)
        ip = int(row["ip"])
        return (
            StackFrame(call, "", 0, libraries[0] if libraries else "", "native"),
            StackFrame(f"{ip:#x}", "", 0, "the program", "native", pc=ip),
        )

    def _path(self, log: DomainLog, event: int) -> str:
        described = self._known.get(int(log.events[event]["nr"]))
        if described is None:
            return ""
        wanted = {i for i, one in enumerate(described[1].parameters) if one.name in _PATHS}
        for region in log.regions(event):
            if region.kind == RegionKind.IN and region.arg in wanted:
                return region.data.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
        return ""


def rule_of(name: str) -> tuple[str, str]:
    """(kind of resource, operation) of a library function."""
    for glob, kind, what in _RULES:
        if fnmatchcase(name, glob):
            return kind, what
    return "cpu", "compute"
