"""The recorded processes as a tree of rows, with their threads' counts and what they spent their time on."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from interfaces.names.signals import signal_name
from tracefile import DomainEnd, DomainInfo
from tui.model.decode import printable
from tui.model.index import EventIndex


@dataclass
class Process:
    """A recorded process. Times are CLOCK_MONOTONIC nanoseconds; `end` is None while it is not known.

    `domains` are its address spaces, one after the other with each execve; a process that shares its parent's
    (vfork) has the parent's.
    """

    pid: int
    start: int
    end: int | None
    status: str
    command: str
    domains: list[int] = field(default_factory=list)
    threads: int = 0
    events: int = 0
    depth: int = 0
    branch: str = ""
    parent: Process | None = None
    children: list[Process] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether it ended with an error or by a signal."""
        return self.status not in ("exited 0", "running", "unknown")


def processes(index: EventIndex) -> list[Process]:
    """All processes, each after its parent; siblings in the order in which they began."""
    reader = index.reader
    found: dict[int, Process] = {}
    order: list[Process] = []
    for number in sorted(reader.domains):
        info = reader.domains[number]
        process = found.get(info.pid)
        if process is None or not _continues(info, process):
            process = Process(info.pid, info.time, None, "", "")
            process.parent = _parent(found, info)
            found[info.pid] = process
            order.append(process)
        process.domains.append(number)
        if info.kind == "exec":
            process.command = command_of(info)
        elif not process.command and process.parent is not None:
            process.command = _inherited(process.parent)
    for task in range(len(index.tasks)):
        facts = index.facts(task)
        process = found.get(facts.pid)
        if process is None:
            process = Process(
                facts.pid, index.key(facts.first_row) if facts.first_row >= 0 else 0, None, "", ""
            )
            owner = reader.domains[facts.domain].pid
            process.parent = found.get(owner)
            process.command = _inherited(process.parent) if process.parent else ""
            process.domains.append(facts.domain)
            found[facts.pid] = process
            order.append(process)
        process.threads += 1
        process.events += facts.events
    for process in order:
        ending = _ending(index, process)
        process.end = ending.time if ending else None
        process.status = _status(ending, reader.live)
        if process.parent is not None:
            process.parent.children.append(process)
    return _in_order([process for process in order if process.parent is None])


def command_of(info: DomainInfo) -> str:
    """The command of a domain as one would type it."""
    return printable(shlex.join(info.argv or [info.exe]))


def _inherited(parent: Process) -> str:
    """What a process shows that runs nothing of its own."""
    return parent.command if parent.command.startswith("(") else f"({parent.command})"


def _continues(info: DomainInfo, process: Process) -> bool:
    return info.kind == "exec" and info.parent_domain in process.domains


def _parent(found: dict[int, Process], info: DomainInfo) -> Process | None:
    for process in reversed(found.values()):
        if process.pid == info.ppid and process.pid != info.pid:
            return process
    for process in reversed(found.values()):
        if info.parent_domain in process.domains:
            return process
    return None


def _ending(index: EventIndex, process: Process) -> DomainEnd | None:
    ends = [
        end
        for number in process.domains
        for end in index.reader.domains[number].ends
        if end.pid == process.pid and end.status != "execed"
    ]
    return ends[-1] if ends else None


def _status(end: DomainEnd | None, live: bool) -> str:
    if end is None:
        return "running" if live else "unknown"
    match end.status:
        case "exited":
            return f"exited {end.code}"
        case "signaled":
            return f"killed by {signal_name(end.code)}"
        case "lost":
            return "went on unrecorded"
        case _:
            return "unknown"


def _in_order(roots: list[Process]) -> list[Process]:
    found: list[Process] = []
    stack = [(root, "", "") for root in reversed(roots)]
    while stack:
        process, branch, below = stack.pop()
        process.branch = branch
        process.depth = (process.parent.depth + 1) if process.parent else 0
        process.children.sort(key=lambda child: (child.start, child.pid))
        found.append(process)
        last = len(process.children) - 1
        for i, child in reversed(list(enumerate(process.children))):
            mark, rest = ("└─ ", "   ") if i == last else ("├─ ", "│  ")
            stack.append((child, below + mark, below + rest))
    return found
