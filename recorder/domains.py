"""The recorder's picture of what runs: domains (a log each) and the processes in them."""

from __future__ import annotations

import os
import signal
import time

from interfaces import abi
from interposer.channel import Channel
from interposer.shared import Ring
from recorder.drain import Drain
from tracefile import DomainEnd


class Domain:
    """One log. `ring` is None once it ended; `ring_fd` is the memory behind it; `joining` processes of other
    domains are on their way to it."""

    __slots__ = ("drain", "joining", "number", "processes", "ring", "ring_fd")

    def __init__(self, number: int, drain: Drain, ring: Ring, ring_fd: int) -> None:
        self.number = number
        self.drain = drain
        self.ring: Ring | None = ring
        self.ring_fd = ring_fd
        self.processes: set[Process] = set()
        self.joining = 0

    def close(self) -> None:
        """Give the ring back. Again does nothing."""
        if self.ring is not None:
            ring, self.ring = self.ring, None
            ring.close()
            os.close(self.ring_fd)


class Process:
    """One recorded process of a domain, as long as its control socket is open.

    `pid` is its id as seen from here, `own_pid` its id in its own namespace. `untraced`: it may by now run
    a program without the core.
    """

    __slots__ = ("channel", "death_signal", "domain", "execed", "joins", "own_pid", "pid", "untraced")

    def __init__(self, channel: Channel, domain: Domain, pid: int, own_pid: int) -> None:
        self.channel = channel
        self.domain = domain
        self.pid = pid
        self.own_pid = own_pid
        self.execed = False
        self.untraced = False
        self.death_signal = 0
        self.joins: Domain | None = None

    def end(self) -> DomainEnd | None:
        """How it ended, by what it said itself or left behind; None: it goes on unrecorded."""
        control = self.domain.ring.control if self.domain.ring else None
        if self.execed:
            return self._ended("execed", 0)
        if self.death_signal:
            return self._ended("signaled", self.death_signal)
        if control is not None and control.death_signal:
            return self._ended("signaled", control.death_signal)
        if control is not None and control.exited:
            return self._ended("exited", control.exit_code & 0xFF)
        if control is None or control.state == abi.RingState.RECORDING:
            return killed(self.domain.number, self.pid)
        return None

    def _ended(self, status: str, code: int) -> DomainEnd:
        return DomainEnd(
            domain=self.domain.number, pid=self.pid, status=status, code=code, time=time.monotonic_ns()
        )


_PF_EXITING = 4


def killed(domain: int, pid: int) -> DomainEnd | None:
    """The end of a process that is dead or dying and could not say so: somebody killed it. None: it lives."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return end_of(domain, pid, signal.SIGKILL)
    except OSError:
        return None
    if fields[0] not in "ZX" and not int(fields[6]) & _PF_EXITING:
        return None
    return end_of(domain, pid, int(fields[49]) or signal.SIGKILL)


def end_of(domain: int, pid: int, status: int | None) -> DomainEnd:
    """How a process ended by its wait status; `lost` without one."""
    now = time.monotonic_ns()
    if status is None:
        return DomainEnd(domain=domain, pid=pid, status="lost", time=now)
    if os.WIFSIGNALED(status):
        return DomainEnd(domain=domain, pid=pid, status="signaled", code=os.WTERMSIG(status), time=now)
    return DomainEnd(domain=domain, pid=pid, status="exited", code=os.WEXITSTATUS(status), time=now)
