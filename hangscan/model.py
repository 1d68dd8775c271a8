"""What a scan speaks of: operations that may block, actions of an event loop, candidates, the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from replayer.backtrace import StackFrame

KINDS = (
    "file", "lock", "thread", "child", "sleep", "socket", "dns", "bus", "display", "pipe", "terminal",
    "filelock", "cpu", "fault",
)  # fmt: skip
"""Kinds of resources that a thread can wait for."""


@dataclass(frozen=True, slots=True)
class Resource:
    """What an operation works on. Empty fields are unknown or do not apply.

    `scope` is where a path lies: "user" (moved by environment models), "system", "memory" (proc, sys, tmpfs
    of the system) or "". `remote_peer` says that a socket's peer is another machine.
    """

    kind: str
    path: str = ""
    scope: str = ""
    filesystem: str = ""
    mount: str = ""
    peer: str = ""
    remote_peer: bool = False
    command: str = ""
    address: int = 0

    def as_json(self) -> dict[str, Any]:
        """The fields that are known."""
        document: dict[str, Any] = {"kind": self.kind}
        for name in ("path", "scope", "filesystem", "mount", "peer", "command"):
            value = getattr(self, name)
            if value:
                document[name] = value
        if self.address:
            document["address"] = f"{self.address:#x}"
        return document

    def __str__(self) -> str:
        name = self.path or self.peer or self.command or (f"{self.address:#x}" if self.address else "")
        return name or self.kind


@dataclass(slots=True)
class Operation:
    """One call (or stretch of computing) that may block. `event` is where its stack is taken.

    `until` is set for computing: the event that ends it. Times are CLOCK_MONOTONIC nanoseconds. `first` says
    that nothing touched the path earlier in the recording; `size` are bytes moved. `calls` like ones may be
    taken together: then `end` is `begin` plus the time of all.
    """

    domain: int
    task: int
    event: int
    name: str
    resource: Resource
    begin: int
    end: int
    size: int = 0
    first: bool = False
    calls: int = 1
    until: int | None = None
    wait: bool = False
    detail: dict[str, Any] = field(default_factory=dict)
    stack: tuple[StackFrame, ...] = ()
    samples: tuple[tuple[StackFrame, ...], ...] = ()

    @property
    def observed_ms(self) -> float:
        """How long it took."""
        return max(0, self.end - self.begin) / 1e6


@dataclass(slots=True)
class Action:
    """What an event loop's thread does between two waits. `last`: no wait follows it; `follows`: the loop was
    left before, or not begun."""

    domain: int
    task: int
    number: int
    begin: int
    end: int
    first_event: int
    last_event: int
    last: bool = False
    follows: bool = False
    operations: list[Operation] = field(default_factory=list)

    @property
    def observed_ms(self) -> float:
        """How long the loop did not answer."""
        return max(0, self.end - self.begin) / 1e6


@dataclass(slots=True)
class Loop:
    """An event loop: its thread, what it is built on, its actions, the stack of a typical wait, and its own
    activations as (function, stack pointer), those of nested loops included."""

    domain: int
    task: int
    pid: int
    comm: str
    toolkit: str
    waits: int
    actions: list[Action]
    stack: tuple[StackFrame, ...] = ()
    frames: frozenset[tuple[str, int]] = frozenset()
    name: str = ""


@dataclass(slots=True)
class Candidate:
    """One place that blocks, or would: repeats with the same stack are one.

    `observed_ms` is the median of its occurrences (one per action), `observed_max_ms` the longest;
    `projected_ms` the worst occurrence under each environment; `worst_ms` the largest of all. `count` is the
    number of occurrences, `calls` of all calls in them. `share` are operations by their part of the time.
    """

    operation: str
    resource: Resource
    observed_ms: float
    observed_max_ms: float
    projected_ms: dict[str, float]
    worst_ms: float
    count: int
    calls: int
    thread: str
    stack: tuple[StackFrame, ...]
    blamed: int
    fix: str
    toolkit: str
    pattern: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    operations: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    actions: tuple[int, ...] = ()
    domain: int = 0
    event: int = 0
    exact: bool = True

    @property
    def blamed_frame(self) -> StackFrame | None:
        """The innermost frame of the application, None without a stack."""
        return self.stack[self.blamed] if 0 <= self.blamed < len(self.stack) else None


@dataclass(slots=True)
class Report:
    """What a scan found, worst first. `notes` say what could not be looked at, and why."""

    trace: str
    command: list[str]
    environments: dict[str, str]
    threshold_ms: float
    loops: list[Loop]
    candidates: list[Candidate]
    below: int = 0
    suppressed: int = 0
    notes: list[str] = field(default_factory=list)
    begin: int = 0
    end: int = 0
