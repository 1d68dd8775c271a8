"""One pass over the calls of a recording, domain after domain: what could block which thread, and on what."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hangscan.descriptors import FD_CALLS, Descriptor, Table, Tables
from hangscan.environments import Environment
from hangscan.log import CallRegions, DomainLog, IntArray, numbers
from hangscan.model import Operation, Resource
from hangscan.operations import CANDIDATES, WAITS, Judge, Judged
from interfaces.abi import RESTART, EventFlag, Kind, Region, RegionKind
from interfaces.calls import CALLS
from tracefile import TraceError, TraceReader
from tracefile.passing import Passed, all_of, by_event, origins

_CONTEXT_NS = 1_000_000
_HEAVY = numbers("fsync", "fdatasync", "syncfs", "sync", "msync", "connect", "sync_file_range")
_LEAST_NS = 100_000
_QUICK_NS = 5_000_000
_ALIKE = 4
_BLOCK = 65536
(_SENDFILE,) = numbers("sendfile")
_POSITIONED = numbers("pread64", "preadv", "preadv2")
_FORGET = 100_000
_BATON = (Kind.RELEASE, Kind.YIELD, Kind.PREEMPT)
_CREATORS = (56, 57, 58, 435)


@dataclass(slots=True)
class Walked:
    """One domain: operations of the threads of interest by thread, and what others did that took at least
    a millisecond here, or would elsewhere. `pids` maps threads to processes."""

    log: DomainLog
    operations: dict[int, list[Operation]] = field(default_factory=dict)
    context: list[Operation] = field(default_factory=list)
    pids: dict[int, int] = field(default_factory=dict)


class Walker:
    """Walks the domains in the order of their numbers and hands tables from parents to children."""

    def __init__(self, reader: TraceReader, judge: Judge, environments: Sequence[Environment]) -> None:
        self._reader = reader
        self._judge = judge
        self._environments = environments
        self._slowed: dict[tuple[str, str, str, bool, bool], bool] = {}
        self._alike: dict[object, list[Operation]] = {}
        self._epochs: dict[int, int] = {}
        self._made: dict[int, Table] = {}
        self._touched: set[str] = set()
        self._positions: dict[tuple[str, int], int] = {}
        self._read_to: dict[str, int] = {}
        self._messages: dict[int, dict[int, Passed]] = {}
        self._handed: dict[tuple[int, int], dict[int, Descriptor]] = {}
        messages: list[Passed] = []
        with suppress(TraceError):
            messages = all_of(reader)
        for (domain, event), one in by_event(messages).items():
            self._messages.setdefault(domain, {})[event] = one
        self._origins = origins(messages)

    def walk(self, log: DomainLog, tasks: Iterable[int], compute_ns: int | None) -> Walked:
        """One domain; `tasks` are of interest, and stretches of at least `compute_ns` in which one of them
        makes no call are operations, too (None: no such)."""
        info = self._reader.domains[log.domain]
        table = self._made.pop(log.domain, None) or Table(info.cwd)
        if info.kind == "exec" and info.cwd:
            table.cwd = info.cwd
        walked = Walked(log, pids=_processes(log, info.pid))
        tables = Tables(table, info.pid, walked.pids)
        for task in tasks:
            walked.operations[task] = []
        self._alike.clear()
        self._calls(log, tables, walked)
        for task, mine in walked.operations.items():
            if compute_ns is not None:
                mine.extend(computing(log, task, compute_ns))
            mine.sort(key=lambda one: (one.begin, one.event))
        return walked

    def _calls(self, log: DomainLog, tables: Tables, walked: Walked) -> None:
        events = log.events
        messages = self._messages.get(log.domain, {})
        chosen, slow = _interesting(events, list(walked.operations), list(messages))
        for start in range(0, len(chosen), _BLOCK):
            numbers_here = chosen[start : start + _BLOCK]
            rows = events[numbers_here]
            columns = zip(
                numbers_here.tolist(), rows["task"].tolist(), rows["kind"].tolist(), rows["nr"].tolist(),
                rows["args"].tolist(), rows["result"].tolist(), rows["time_in"].tolist(),
                rows["time_out"].tolist(), rows["flags"].tolist(), rows["ip"].tolist(),
                slow[numbers_here].tolist(), strict=True,
            )  # fmt: skip
            for number, task, kind, nr, args, result, begin, end, flags, ip, is_slow in columns:
                if kind == Kind.TASK_START:
                    if args[2]:
                        tables.fork(args[0], args[1])
                    continue
                if kind == Kind.EXECED:
                    self._made[args[0]] = tables.of(task).copy(after_exec=True)
                    continue
                if number in messages:
                    self._passed(messages[number], tables.of(task))
                if kind != Kind.SYSCALL:
                    continue
                regions = CallRegions(log, number, bool(flags & EventFlag.BLOCKED))
                mine = walked.operations.get(task)
                if nr in CANDIDATES and (mine is not None or is_slow):
                    judged = self._judge.judge(tables.of(task), nr, args, result, regions)
                    if judged is not None:
                        into = walked.context if mine is None else mine
                        first = self._first(judged, nr, args, result)
                        call = (log.domain, task, number, nr, ip, begin, max(begin, end))
                        self._add(into, *call, judged, first)
                if nr in FD_CALLS:
                    if nr in _CREATORS and result > 0:
                        self._created(tables.of(task), regions())
                    else:
                        tables.apply(task, nr, args, result, regions)

    def _passed(self, message: Passed, table: Table) -> None:
        """Descriptors leave with a message, or come with one: then they are what they were to the sender."""
        place = (message.domain, message.event)
        if message.sent:
            self._handed[place] = {fd: table.get(fd) for fd in message.fds}
            return
        known = self._origins.get(place, {})
        for fd in message.fds:
            origin = known.get(fd)
            handed = self._handed.get((origin.domain, origin.event), {}) if origin is not None else {}
            one = handed.get(origin.fd) if origin is not None else None
            table.fds[fd] = replace(one, cloexec=False) if one is not None else Descriptor("inherited")

    def _first(self, judged: Judged, nr: int, args: list[int], result: int) -> bool:
        """Whether an operation touches what nothing has touched before: a name, or bytes of a file.

        Where a descriptor's position is not known (it was inherited, moved or duplicated), reading goes on
        from where it last stood.
        """
        path = judged.path_key
        if not path:
            return False
        if judged.name == "read":
            fd = args[1 if nr == _SENDFILE else 0] & 0xFFFFFFFF
            at = args[3] if nr in _POSITIONED else self._positions.get((path, fd), 0)
            end = at + max(result, 0)
            if nr not in _POSITIONED:
                self._positions[path, fd] = end
            known = self._read_to.get(path, 0)
            self._read_to[path] = max(known, end)
            return end > known or known == 0
        if judged.name == "open" and result >= 0:
            self._positions.pop((path, result), None)
        key = f"{judged.name == 'page faults':d}{path}"
        first = key not in self._touched
        self._touched.add(key)
        return first

    def _created(self, table: Table, regions: list[Region]) -> None:
        """A process was made; a domain of its own inherits the descriptors."""
        for region in regions:
            if region.kind == RegionKind.DOMAIN and len(region.data) >= 8:
                self._made[int.from_bytes(region.data[:8], "little")] = table.copy()

    def _add(
        self, into: list[Operation], domain: int, task: int, number: int, nr: int, ip: int, begin: int,
        end: int, judged: Judged, first: bool,
    ) -> None:  # fmt: skip
        """Keep an operation that took time or would elsewhere; many like ones in a row become one."""
        resource, name = judged.resource, judged.name
        is_wait = nr in WAITS
        if not is_wait and end - begin < _LEAST_NS and not self._slows(resource, name, first):
            return
        alone = is_wait or first or end - begin >= _CONTEXT_NS
        known: list[Operation] = []
        if not alone:
            alike = (task, self._epochs.get(task, 0), nr, ip, resource)
            known = self._alike.setdefault(alike, [])
            if len(known) >= _ALIKE:
                last = known[-1]
                last.calls += 1
                last.end += end - begin
                last.size += judged.size
                return
        operation = Operation(
            domain, task, number, name, resource, begin, end, judged.size, first, wait=is_wait,
            detail={"call": CALLS[nr].name, "ip": ip},
        )  # fmt: skip
        if is_wait:
            self._epochs[task] = self._epochs.get(task, 0) + 1
            if len(self._alike) > _FORGET:
                self._alike.clear()
        elif not alone:
            known.append(operation)
        into.append(operation)

    def _slows(self, resource: Resource, name: str, first: bool) -> bool:
        key = (resource.kind, name, resource.scope, resource.remote_peer, first)
        known = self._slowed.get(key)
        if known is None:
            known = any(one.slows(resource, name, first) for one in self._environments)
            self._slowed[key] = known
        return known


def _interesting(
    events: npt.NDArray[Any], tasks: list[int], messages: list[int]
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Events to look at (those of `messages` among them), in order, and for all events whether they took
    long, or would elsewhere."""
    is_call = (events["kind"] == Kind.SYSCALL) & (events["result"] != RESTART)
    mine = np.isin(events["task"], tasks)
    slow = events["time_out"].astype(np.int64) - events["time_in"].astype(np.int64) >= _CONTEXT_NS
    slow |= np.isin(events["nr"], list(_HEAVY))
    candidates = np.isin(events["nr"], list(CANDIDATES)) & (mine | slow)
    chosen = is_call & (np.isin(events["nr"], list(FD_CALLS)) | candidates)
    chosen |= (events["kind"] == Kind.TASK_START) | (events["kind"] == Kind.EXECED)
    chosen[messages] = True
    return np.flatnonzero(chosen), slow


def _processes(log: DomainLog, pid: int) -> dict[int, int]:
    """Which process each thread of the domain belongs to."""
    events = log.events
    found: dict[int, int] = {pid: pid}
    for number in np.flatnonzero(events["kind"] == Kind.TASK_START).tolist():
        row = events[number]
        found[int(row["task"])] = int(row["args"][1]) or pid
    return found


def computing(log: DomainLog, task: int, least_ns: int) -> Iterator[Operation]:
    """Stretches of at least `least_ns` in which a thread ran its own code, quick calls that wait for nothing
    included.

    Time in which another thread held the baton does not count.
    """
    mine = log.of_task(task)
    events = log.events[mine]
    took = events["time_out"].astype(np.int64) - events["time_in"].astype(np.int64)
    bound = (events["kind"] != Kind.SYSCALL) & (events["kind"] != Kind.RDTSC) & (events["kind"] != Kind.DATA)
    bound |= (took >= _QUICK_NS) | ((events["flags"] & EventFlag.BLOCKED) != 0)
    bound |= np.isin(events["nr"], list(WAITS)) & (events["kind"] == Kind.SYSCALL)
    edges = mine[bound]
    if len(edges) < 2:
        return
    before, after = edges[:-1], edges[1:]
    events = log.events
    gaps = events["time_in"][after].astype(np.int64) - events["time_out"][before].astype(np.int64)
    for position in np.flatnonzero(gaps >= least_ns).tolist():
        first, last = int(before[position]), int(after[position])
        if events[first]["kind"] in _BATON or events[last]["kind"] == Kind.RESUME:
            continue
        begin = int(events[first]["time_out"])
        for other in (first - 1, last - 1):
            if other >= 0 and int(events[other]["task"]) != task:
                begin = max(begin, int(events[other]["time_out"]))
        end = int(events[last]["time_in"])
        if end - begin >= least_ns:
            yield Operation(
                log.domain, task, first, "compute", Resource("cpu"), begin, end, until=last,
                detail={"call": ""},
            )  # fmt: skip


def commands(reader: TraceReader) -> dict[int, str]:
    """The last program each recorded process executed, by process id."""
    found: dict[int, str] = {}
    for number in sorted(reader.domains):
        info = reader.domains[number]
        if info.kind == "exec":
            found[info.pid] = shlex.join(info.argv)
    return found
