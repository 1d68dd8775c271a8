"""The recorder's picture of what runs: domains (a log each) and the processes in them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from interposer.channel import Channel
from interposer.shared import Ring
from recorder.drain import Drain
from tracefile import DomainEnd


@dataclass(eq=False, slots=True)
class Domain:
    """One log. `ring` is None once it ended."""

    number: int
    drain: Drain
    ring: Ring | None
    processes: set[Process] = field(default_factory=set)


@dataclass(eq=False, slots=True)
class Process:
    """One recorded process of a domain, as long as its control socket is open.

    `pid` is its id as seen from here, `own_pid` its id in its own namespace. `untraced`: it may by now run
    a program without the core.
    """

    channel: Channel
    domain: Domain
    pid: int
    own_pid: int
    execed: bool = False
    untraced: bool = False
    death_signal: int = 0

    def end(self) -> DomainEnd | None:
        """How it ended, by what it said itself; None: it was killed, or goes on unrecorded."""
        control = self.domain.ring.control if self.domain.ring else None
        if self.execed:
            return self._ended("execed", 0)
        if self.death_signal:
            return self._ended("signaled", self.death_signal)
        if control is not None and control.death_signal:
            return self._ended("signaled", control.death_signal)
        if control is not None and control.exited:
            return self._ended("exited", control.exit_code & 0xFF)
        return None

    def _ended(self, status: str, code: int) -> DomainEnd:
        return DomainEnd(
            domain=self.domain.number, pid=self.pid, status=status, code=code, time=time.monotonic_ns()
        )


def end_of(domain: int, pid: int, status: int | None) -> DomainEnd:
    """How a process ended by its wait status; `lost` without one."""
    now = time.monotonic_ns()
    if status is None:
        return DomainEnd(domain=domain, pid=pid, status="lost", time=now)
    if os.WIFSIGNALED(status):
        return DomainEnd(domain=domain, pid=pid, status="signaled", code=os.WTERMSIG(status), time=now)
    return DomainEnd(domain=domain, pid=pid, status="exited", code=os.WEXITSTATUS(status), time=now)
