"""Domains of an open trace: what began, how it ended, and where its events lie."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import NamedTuple

from tracefile.errors import TraceFormatError
from tracefile.records import BootImage, DomainEnd, DomainStart


class DomainStop(NamedTuple):
    """Where the log of a domain breaks off without its process having ended."""

    domain: int
    pid: int
    comm: str
    events: int
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"

    @property
    def place(self) -> str:
        """Which domain, and after how many events, in words without control characters."""
        comm = "".join(mark if mark.isprintable() else "?" for mark in self.comm) or "?"
        return f"domain {self.domain} (process {self.pid}, {comm}) stops after {self.events} events"


class DomainInfo:
    """A domain of an open trace. `summary` lacks argv, envp and boot; `load()` reads them from the file.

    `offsets` and `firsts` are, for each chunk of events, its place in the file and the number of its first
    event; `cut` is why events after `event_count` are not usable, where the file has more.
    """

    def __init__(self, summary: DomainStart, load: Callable[[], DomainStart]) -> None:
        self.summary = summary
        self.load = load
        self.ends: list[DomainEnd] = []
        self.offsets = array("Q")
        self.firsts = array("Q")
        self.event_count = 0
        self.cut: TraceFormatError | None = None

    @property
    def domain(self) -> int:
        """Number of the domain."""
        return self.summary.domain

    @property
    def kind(self) -> str:
        """'exec' or 'fork'."""
        return self.summary.kind

    @property
    def parent_domain(self) -> int:
        """The domain that made this one; 0 for the program that was started."""
        return self.summary.parent_domain

    @property
    def parent_event(self) -> int | None:
        """The parent's event that made this one, where known."""
        return self.summary.parent_event

    @property
    def pid(self) -> int:
        """Process id at recording time."""
        return self.summary.pid

    @property
    def ppid(self) -> int:
        """Parent's process id at recording time."""
        return self.summary.ppid

    @property
    def time(self) -> int:
        """When it began, CLOCK_MONOTONIC nanoseconds."""
        return self.summary.time

    @property
    def comm(self) -> str:
        """The short name of the process."""
        return self.summary.comm

    @property
    def exe(self) -> str:
        """Path of the program."""
        return self.summary.exe

    @property
    def cwd(self) -> str:
        """Working directory at the start."""
        return self.summary.cwd

    @property
    def start(self) -> DomainStart:
        """Everything that was recorded about the start; read anew each time."""
        return self.load()

    @property
    def argv(self) -> list[str]:
        """The arguments; read anew each time."""
        return list(self.load().argv)

    @property
    def envp(self) -> list[str]:
        """The environment; read anew each time."""
        return list(self.load().envp)

    @property
    def boot(self) -> BootImage | None:
        """The image the kernel made; read anew each time."""
        return self.load().boot

    @property
    def end(self) -> DomainEnd | None:
        """How its last process ended; None while that is not known."""
        return self.ends[-1] if self.ends else None
