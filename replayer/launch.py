"""Starting replaying processes, and making sure that none of them outlives the replay.

Each start makes a session and process group of its own, which every process made in it stays in (the core
answers setpgid and setsid from the log). So the group is exactly what belongs to this start: it is waited
for and killed as a group, and nothing else ever is. A pipe of which the group holds the reading end sends
SIGKILL to the whole group when the last writing end, which only the replayer has, is closed: by `kill`, or
by the replayer's own death.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

from interfaces import abi
from interposer import surroundings
from replayer.errors import CoreError

FD_LIFELINE = abi.FD_COUNT - 1
"""The lifeline's place among the hidden descriptors; the core leaves it alone."""
_F_SETSIG = 10
_ADDR_NO_RANDOMIZE = 0x0040000
_QUERY = 0xFFFFFFFF
_REMEDY = "Install rr-py again; `rr-py doctor` checks the rest."


def fd_base() -> int:
    """The first hidden descriptor in a replaying process."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    limit = 1024 if soft == resource.RLIM_INFINITY else min(soft, 1024)
    return limit - 16


class Ended(NamedTuple):
    """A replaying process has ended: real process id, and exit code or signal."""

    pid: int
    code: int
    signal: int


class Group:
    """One start of the core, and every process that came of it."""

    def __init__(self, core: Path, domain: int, hidden: dict[int, int]) -> None:
        """Run the core for `domain`; `hidden` maps places among the hidden descriptors to descriptors.

        Raises CoreError when it cannot be started.
        """
        base = fd_base()
        reading, self._lifeline = os.pipe()
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._complaints = os.memfd_create("rr-complaints", os.MFD_CLOEXEC)
        try:
            moves = {base + place: descriptor for place, descriptor in hidden.items()}
            moves[base + FD_LIFELINE] = reading
            moves |= {0: null, 1: null, 2: self._complaints}
            with _fixed_addresses(), _moved(moves, base) as actions:
                self.leader = os.posix_spawn(
                    core, ["rr_core", str(base), str(domain)], {},
                    file_actions=actions, setsid=True, setsigmask=[],
                )  # fmt: skip
            _no_core_files(self.leader)
            _kill_with(reading, self.leader)
        except OSError as error:
            os.close(self._lifeline)
            os.close(self._complaints)
            self._lifeline = -1
            if nested := surroundings.inside_a_recording():
                raise nested from None
            raise CoreError(f"the core {core} cannot be started: {error.strerror}", _REMEDY) from None
        finally:
            os.close(reading)
            os.close(null)
        self.empty = False

    @classmethod
    def adopt(cls, leader: int, reading: int, lifeline: int, complaints: int) -> Self:
        """The group of a process that has made itself the leader of one; takes `lifeline` and `complaints`.

        `reading` is the other end of the lifeline, which the process was given.
        """
        group = cls.__new__(cls)
        group.leader, group._lifeline, group._complaints = leader, lifeline, complaints
        group.empty = False
        _kill_with(reading, leader)
        return group

    def reap(self) -> list[Ended]:
        """Collect those that have ended, without waiting; sets `empty` when none is left."""
        found: list[Ended] = []
        while not self.empty:
            try:
                pid, status = os.waitpid(-self.leader, os.WNOHANG)
            except ChildProcessError:
                self.empty = True
                break
            if not pid:
                break
            if os.WIFSIGNALED(status):
                found.append(Ended(pid, 0, os.WTERMSIG(status)))
            elif os.WIFEXITED(status):
                found.append(Ended(pid, os.WEXITSTATUS(status), 0))
        return found

    def kill(self) -> None:
        """End every process of the group and collect them; doing so again does nothing."""
        if not self.empty:
            with suppress(ProcessLookupError):
                os.killpg(self.leader, signal.SIGKILL)
        while not self.empty:
            try:
                os.waitpid(-self.leader, 0)
            except ChildProcessError:
                self.empty = True
        if self._lifeline >= 0:
            os.close(self._lifeline)
            os.close(self._complaints)
            self._lifeline = -1

    def complaint(self) -> str:
        """What the core said last when it gave up; empty when it did not."""
        data = os.pread(self._complaints, 65536, 0) if self._lifeline >= 0 else b""
        lines = data.decode("utf-8", "replace").strip().splitlines()
        return lines[-1].removeprefix("rr-py core: ") if lines else ""


def _kill_with(reading: int, leader: int) -> None:
    """SIGKILL for the whole group when the other end of the pipe is closed."""
    fcntl.fcntl(reading, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(reading, fcntl.F_SETOWN, -leader)
    fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | os.O_ASYNC)


def _no_core_files(pid: int) -> None:
    """A replayed crash writes no core file: 1 byte also keeps the kernel from starting a crash handler."""
    hard = resource.prlimit(pid, resource.RLIMIT_CORE)[1]
    value = 1 if hard == resource.RLIM_INFINITY else min(hard, 1)
    resource.prlimit(pid, resource.RLIMIT_CORE, (value, value))


@contextmanager
def _moved(moves: dict[int, int], base: int) -> Iterator[list[tuple[int, int, int]]]:
    """posix_spawn's actions for the moves, from copies that lie where no target is."""
    copies: list[int] = []
    try:
        actions = []
        for target, source in moves.items():
            copy = source
            if source in moves or source < 3:
                copy = fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, 3)
                while copy in moves:
                    copies.append(copy)
                    copy = fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, copy + 1)
                copies.append(copy)
            actions.append((os.POSIX_SPAWN_DUP2, copy, target))
        yield actions
    finally:
        for copy in copies:
            os.close(copy)


@contextmanager
def _fixed_addresses() -> Iterator[None]:
    """What this thread starts meanwhile gets fixed addresses, where permitted (it only saves work)."""
    libc = ctypes.CDLL(None)
    before: int = libc.personality(_QUERY)
    if before == -1 or libc.personality(before | _ADDR_NO_RANDOMIZE) == -1:
        yield
        return
    try:
        yield
    finally:
        libc.personality(before)
