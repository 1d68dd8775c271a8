"""The processes of a trace as a tree, put together from its domains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from interfaces.abi import Kind
from interfaces.errors import ExitStatus, RrPyError
from interfaces.names.signals import signal_name

if TYPE_CHECKING:
    from tracefile import DomainEnd, DomainInfo, TraceReader


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


def processes(reader: TraceReader) -> list[Process]:
    """All processes, each after its parent; siblings in the order in which they began."""
    owner: dict[int, Process] = {}
    found: list[Process] = []
    for number in sorted(reader.domains):
        info = reader.domains[number]
        before = owner.get(info.parent_domain)
        if before is not None and info.kind == "exec" and before.pid == info.pid:
            before.domains.append(info)
            owner[number] = before
            continue
        process = Process(info.pid, info.time, [info])
        process.parent = _parent(found, info, before)
        owner[number] = process
        found.append(process)
    found.extend(_sharing(reader, owner, found))
    for process in found:
        process.end = _end(process)
        if process.parent is not None:
            process.parent.children.append(process)
    for process in found:
        process.children.sort(key=lambda child: (child.time, child.pid))
    return list(_in_order([process for process in found if process.parent is None]))


def _parent(found: list[Process], info: DomainInfo, owner: Process | None) -> Process | None:
    """The latest process with the number the new one calls its parent, else the one whose domain made it."""
    for process in reversed(found):
        if process.pid == info.ppid and process.pid != info.pid:
            return process
    return owner


def _sharing(reader: TraceReader, owner: dict[int, Process], found: list[Process]) -> Iterator[Process]:
    """Processes that lived in their parent's domain and have none of their own."""
    own = {process.pid for process in found}
    for number, info in reader.domains.items():
        if all(end.pid == info.pid for end in info.ends):
            continue
        for chunk in reader.chunks(number):
            starts = chunk.events[
                (chunk.events["kind"] == Kind.TASK_START) & (chunk.events["args"][:, 2] == 1)
            ]
            for task, time in zip(starts["task"].tolist(), starts["time_in"].tolist(), strict=True):
                if task not in own:
                    own.add(task)
                    yield Process(task, time, shared=info, parent=owner[number])


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
