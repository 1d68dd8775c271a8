"""The recorded processes as a tree of rows, with their threads' counts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from tracefile import processes as recorded
from tui.model.decode import printable
from tui.model.index import EventIndex


@dataclass(slots=True)
class Process:
    """A recorded process with what the index counts of it. Times are CLOCK_MONOTONIC nanoseconds; `end` is
    None while it is not known. `branch` are the lines of the tree left of it."""

    pid: int
    start: int
    end: int | None
    status: str
    failed: bool
    command: str
    domains: list[int]
    threads: int = 0
    events: int = 0
    branch: str = ""


def processes(index: EventIndex) -> list[Process]:
    """All processes, each after its parent; siblings in the order in which they began."""
    reader = index.reader
    tree = recorded.processes(reader, _sharing(index))
    rows = [_row(process, reader.live) for process in tree]
    below: dict[int, str] = {}
    for process, row in zip(tree, rows, strict=True):
        row.branch, below[id(process)] = _branch(process, below)
    by_domain: dict[tuple[int, int], Process] = {
        (row.pid, domain): row for row in rows for domain in row.domains
    }
    by_pid = {row.pid: row for row in rows}
    threads: set[tuple[int, int]] = set()
    for task in range(len(index.tasks)):
        facts = index.facts(task)
        owner = by_domain.get((facts.pid, facts.domain)) or by_pid.get(facts.pid)
        if owner is not None:
            before = len(threads)
            threads.add((id(owner), facts.tid))  # the same before and behind an execve
            owner.threads += len(threads) - before
            owner.events += facts.events
    return rows


def _sharing(index: EventIndex) -> Iterator[recorded.Sharing]:
    for task in range(len(index.tasks)):
        facts = index.facts(task)
        if facts.pid != index.reader.domains[facts.domain].pid:
            begin = index.key(facts.first_row) if facts.first_row >= 0 else 0
            yield recorded.Sharing(facts.pid, begin, facts.domain)


def _row(process: recorded.Process, live: bool) -> Process:
    end, command = process.end, printable(shlex.join(process.command))
    return Process(
        process.pid,
        process.time,
        end.time if end is not None else None,
        "running" if end is None and live else process.status,
        process.failed,
        f"({command})" if process.ran_nothing else command,
        [info.domain for info in (*process.domains, *([process.shared] if process.shared else []))],
    )


def _branch(process: recorded.Process, below: dict[int, str]) -> tuple[str, str]:
    """The lines of the tree to the left of a process, and those of its children; `below` has its parent's."""
    if process.parent is None:
        return "", ""
    left = below[id(process.parent)]
    last = process.parent.children[-1] is process
    return left + ("└─ " if last else "├─ "), left + ("   " if last else "│  ")
