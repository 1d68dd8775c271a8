"""One pass over the calls of a recording, domain after domain: what could block which thread, and on what."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from hangscan.descriptors import FD_CALLS, Table, Tables
from hangscan.log import DomainLog, numbers
from hangscan.model import Operation, Resource
from hangscan.operations import CANDIDATES, WAITS, Judge
from interfaces.abi import RESTART, EventFlag, Kind, Region, RegionKind
from interfaces.calls import CALLS
from tracefile import TraceReader

_CONTEXT_NS = 1_000_000
_HEAVY = numbers("fsync", "fdatasync", "syncfs", "sync", "msync", "connect", "sync_file_range")
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

    def __init__(self, reader: TraceReader, judge: Judge) -> None:
        self._reader = reader
        self._judge = judge
        self._made: dict[int, Table] = {}
        self._touched: set[str] = set()

    def walk(self, log: DomainLog, tasks: Iterable[int], compute_ns: int) -> Walked:
        """One domain; `tasks` are of interest, and stretches of at least `compute_ns` in which one of them
        makes no call are operations, too."""
        info = self._reader.domains[log.domain]
        table = self._made.pop(log.domain, None) or Table(info.cwd)
        if info.kind == "exec" and info.cwd:
            table.cwd = info.cwd
        walked = Walked(log, pids=_processes(log, info.pid))
        tables = Tables(table, info.pid, walked.pids)
        wanted = set(tasks)
        for task in wanted:
            walked.operations[task] = []
        self._calls(log, tables, wanted, walked)
        for task in wanted:
            mine = walked.operations[task]
            mine.extend(computing(log, task, compute_ns))
            mine.sort(key=lambda one: (one.begin, one.event))
        return walked

    def _calls(self, log: DomainLog, tables: Tables, wanted: set[int], walked: Walked) -> None:
        events = log.events
        is_call = (events["kind"] == Kind.SYSCALL) & (events["result"] != RESTART)
        mine = np.isin(events["task"], list(wanted))
        slow = events["time_out"].astype(np.int64) - events["time_in"].astype(np.int64) >= _CONTEXT_NS
        slow |= np.isin(events["nr"], list(_HEAVY))
        chosen = is_call & (
            np.isin(events["nr"], list(FD_CALLS)) | (np.isin(events["nr"], list(CANDIDATES)) & (mine | slow))
        )
        chosen |= (events["kind"] == Kind.TASK_START) | (events["kind"] == Kind.EXECED)
        for number in np.flatnonzero(chosen).tolist():
            row = events[number]
            task, kind, nr = int(row["task"]), int(row["kind"]), int(row["nr"])
            args: list[int] = row["args"].tolist()
            if kind == Kind.TASK_START:
                if args[2]:
                    tables.fork(args[0], args[1])
                continue
            if kind == Kind.EXECED:
                self._made[args[0]] = tables.of(task).copy(after_exec=True)
                continue
            result = int(row["result"])
            regions = _Regions(log, number)
            if nr in CANDIDATES and (task in wanted or slow[number]):
                judged = self._judge.judge(tables.of(task), nr, args, result, regions)
                if judged is not None:
                    operation = Operation(
                        log.domain, task, number, judged.name, judged.resource, int(row["time_in"]),
                        max(int(row["time_out"]), int(row["time_in"])), judged.size, wait=nr in WAITS,
                        detail={"call": CALLS[nr].name, "ip": int(row["ip"])},
                    )  # fmt: skip
                    if not row["flags"] & EventFlag.PRECISE:
                        operation.detail["coarse"] = True
                    if judged.path_key:
                        key = f"{judged.name in ('read', 'page faults'):d}{judged.path_key}"
                        operation.first = key not in self._touched
                        self._touched.add(key)
                    if task in wanted:
                        walked.operations[task].append(operation)
                    else:
                        walked.context.append(operation)
            if nr in FD_CALLS:
                if nr in _CREATORS and result > 0:
                    for region in regions():
                        if region.kind == RegionKind.DOMAIN and len(region.data) >= 8:
                            child = int.from_bytes(region.data[:8], "little")
                            self._made[child] = tables.of(task).copy()
                else:
                    tables.apply(task, nr, args, result, regions)


class _Regions:
    """The regions of a call, read once when first asked for."""

    __slots__ = ("_event", "_log", "_value")

    def __init__(self, log: DomainLog, event: int) -> None:
        self._log = log
        self._event = event
        self._value: list[Region] | None = None

    def __call__(self) -> list[Region]:
        if self._value is None:
            self._value = self._log.inputs(self._event)
        return self._value


def _processes(log: DomainLog, pid: int) -> dict[int, int]:
    """Which process each thread of the domain belongs to."""
    events = log.events
    found: dict[int, int] = {pid: pid}
    for number in np.flatnonzero(events["kind"] == Kind.TASK_START).tolist():
        row = events[number]
        found[int(row["task"])] = int(row["args"][1]) or pid
    return found


def computing(log: DomainLog, task: int, least_ns: int) -> Iterator[Operation]:
    """Stretches of at least `least_ns` in which a thread ran its own code without a call.

    Time in which another thread held the baton does not count.
    """
    mine = log.of_task(task)
    if len(mine) < 2:
        return
    events = log.events
    before, after = mine[:-1], mine[1:]
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
                log.domain,
                task,
                first,
                "compute",
                Resource("cpu"),
                begin,
                end,
                until=last,
                detail={"call": ""},
            )


def commands(reader: TraceReader) -> dict[int, str]:
    """The last program each recorded process executed, by process id."""
    found: dict[int, str] = {}
    for number in sorted(reader.domains):
        info = reader.domains[number]
        if info.kind == "exec":
            found[info.pid] = shlex.join(info.argv)
    return found
