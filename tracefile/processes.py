"""The processes of a trace as a tree, put together from its domains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from interfaces.abi import Kind
from interfaces.errors import ExitStatus, RrPyError
from interfaces.names.signals import signal_name
from tracefile.domains import DomainInfo
from tracefile.reader import TraceReader
from tracefile.records import DomainEnd


class NoProcessError(RrPyError):
    """The trace has no process of that number."""

    def __init__(self, pid: int, known: Iterable[int]) -> None:
        shown = sorted(known)
        listed = ", ".join(map(str, shown[:8])) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")
        super().__init__(
            f"no process {pid} in this trace; it has {listed or 'none'}",
            "See rr-py ps.",
            ExitStatus.TOOL_FAILED,
        )


@dataclass
class Process:
    """One recorded process.

    `domains` are its address spaces one after the other: a new one with each execve. A process that shares
    its parent's (vfork, or fork with shared memory) has its parent's domain, `shared`, and none of its own.
    `time` is when it began, CLOCK_MONOTONIC nanoseconds.
    """

    pid: int
    time: int
    domains: list[DomainInfo] = field(default_factory=list)
    shared: DomainInfo | None = None
    end: DomainEnd | None = None
    parent: Process | None = None
    children: list[Process] = field(default_factory=list)

    @property
    def events(self) -> int:
        """Events of its own domains."""
        return sum(info.event_count for info in self.domains)

    @property
    def command(self) -> list[str]:
        """What it ran last; for a process that ran nothing of its own, what its parent ran."""
        for info in reversed(self.domains):
            if info.kind == "exec":
                return info.argv or [info.exe]
        return self.parent.command if self.parent else []

    @property
    def ran_nothing(self) -> bool:
        """True for a process that only continued its parent's program."""
        return all(info.kind != "exec" for info in self.domains)

    @property
    def failed(self) -> bool:
        """Whether it ended with an error or by a signal."""
        return self.end is not None and (self.end.status, self.end.code) != ("exited", 0)

    @property
    def status(self) -> str:
        """`exited 0`, `killed by SIGTERM`, or `unknown` where the recording stops before."""
        if self.end is None:
            return "unknown"
        match self.end.status:
            case "exited":
                return f"exited {self.end.code}"
            case "signaled":
                return f"killed by {signal_name(self.end.code)}"
            case "lost":
                return "went on unrecorded"
            case _:
                return "unknown"


class Sharing(NamedTuple):
    """A process that lived in its parent's domain: id, when it began, and the domain."""

    pid: int
    time: int
    domain: int


def processes(reader: TraceReader, sharing: Iterable[Sharing] | None = None) -> list[Process]:
    """All processes, each after its parent; siblings in the order in which they began.

    `sharing`: those that may have no domain of their own, by who knows (None: the events are looked
    through).
    """
    owner: dict[int, Process] = {}
    latest: dict[int, Process] = {}
    found: list[Process] = []
    for number in sorted(reader.domains):
        info = reader.domains[number]
        before = owner.get(info.parent_domain)
        if before is not None and info.kind == "exec" and before.pid == info.pid:
            before.domains.append(info)
            owner[number] = before
            continue
        process = Process(info.pid, info.time, [info])
        parent = latest.get(info.ppid)
        process.parent = parent if parent is not None and info.ppid != info.pid else before
        owner[number] = latest[info.pid] = process
        found.append(process)
    for pid, time, domain in _sharing(reader) if sharing is None else sharing:
        if pid not in latest:
            latest[pid] = Process(pid, time, shared=reader.domains[domain], parent=owner[domain])
            found.append(latest[pid])
    for process in found:
        process.end = _end(process)
        if process.parent is not None:
            process.parent.children.append(process)
    for process in found:
        process.children.sort(key=lambda child: (child.time, child.pid))
    return list(_in_order([process for process in found if process.parent is None]))


def _sharing(reader: TraceReader) -> Iterator[Sharing]:
    """Processes that may have lived in their parent's domain, by the events that began them."""
    for number, info in reader.domains.items():
        if all(end.pid == info.pid for end in info.ends):
            continue
        for chunk in reader.chunks(number):
            starts = chunk.events[
                (chunk.events["kind"] == Kind.TASK_START) & (chunk.events["args"][:, 2] == 1)
            ]
            for task, time in zip(starts["task"].tolist(), starts["time_in"].tolist(), strict=True):
                yield Sharing(task, time, number)


def _end(process: Process) -> DomainEnd | None:
    places = [*process.domains, *([process.shared] if process.shared else [])]
    ends = [end for info in places for end in info.ends if end.pid == process.pid and end.status != "execed"]
    return ends[-1] if ends else None


def _in_order(level: list[Process]) -> Iterator[Process]:
    stack = list(reversed(level))
    while stack:
        process = stack.pop()
        yield process
        stack.extend(reversed(process.children))
