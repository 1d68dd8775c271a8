"""Starting a program so that it waits, with its libraries loaded, at its entry point.

At the entry point stands a loop around pause() until `Waiting.go`: no signal, no stop that the program
could notice, no processor time.
"""

from __future__ import annotations

import os
import signal
import struct
from contextlib import suppress
from dataclasses import dataclass

from interfaces import abi
from interfaces.errors import ExitStatus
from interposer import launch, ptrace
from interposer.errors import Gone, LaunchError

_AT_BASE, _AT_ENTRY = 7, 9
_BREAKPOINT = b"\xcc"
_PAUSE_LOOP = bytes.fromhex("b822000000 0f05 ebf7")
"""mov $__NR_pause, %eax; syscall; jmp to the mov."""


@dataclass(slots=True)
class Waiting:
    """A program that pauses at its entry point, with what stood there and the registers to begin with.

    `spare` are descriptors it holds open that nobody needs, for the one who gets inside first to close.
    """

    pid: int
    entry: int
    original: bytes
    registers: ptrace.Registers
    spare: range

    def go(self) -> int | None:
        """Let it run: traced for the moment in which bytes and registers are put back.

        Returns the wait status of one that has ended meanwhile.
        """
        with suppress(Gone):
            ptrace.seize(self.pid)
            ptrace.interrupt(self.pid)
            wait = ptrace.wait(self.pid)
            if wait.ended:
                return wait.status
            with ptrace.Memory(self.pid) as memory:
                memory.write(self.entry, self.original)
            ptrace.set_registers(self.pid, self.registers)
            ptrace.detach(self.pid, wait.forward)
        return None


class Arriving:
    """A traced program between its execve and its entry point."""

    def __init__(self, pid: int) -> None:
        """At the exec stop. Raises Gone, OSError."""
        self.pid = pid
        self._entry = _auxiliary(pid).get(_AT_ENTRY, 0)
        with ptrace.Memory(pid) as memory:
            self._original = memory.read(self._entry, len(_PAUSE_LOOP))
            memory.write(self._entry, _BREAKPOINT)
        ptrace.resume(pid)

    def step(self, wait: ptrace.Wait) -> Waiting | None:
        """Take in a stop. A program at its entry point is left to wait there, no longer traced. Raises
        Gone.
        """
        if wait.is_group_stop:
            ptrace.listen(self.pid)
            return None
        registers = ptrace.get_registers(self.pid)
        if wait.forward != signal.SIGTRAP or registers.rip != self._entry + 1:
            ptrace.resume(self.pid, wait.forward)
            return None
        registers.rip = self._entry
        ptrace.set_registers(self.pid, registers)
        with ptrace.Memory(self.pid) as memory:
            memory.write(self._entry, _PAUSE_LOOP)
        ptrace.detach(self.pid)
        return Waiting(self.pid, self._entry, self._original, registers, range(0))


def is_dynamic(pid: int) -> bool:
    """Whether a process at its exec stop has a dynamic linker."""
    return bool(_auxiliary(pid).get(_AT_BASE))


def spawn(command: launch.Command) -> Waiting:
    """Start a dynamically linked program, up to its entry point. Raises LaunchError."""
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        child = launch.fork(command, [nothing])
    finally:
        os.close(nothing)
    child.start()
    name = command.argv[0]
    try:
        arriving = Arriving(child.pid)
        waiting = None
        while waiting is None:
            wait = ptrace.wait(child.pid)
            if wait.ended:
                raise LaunchError(
                    f"{name}: ended before its first instruction (wait status {wait.status:#x})",
                    "Check that all its libraries are there: ldd.",
                    ExitStatus.CANNOT_RUN,
                )
            waiting = arriving.step(wait)
    except Gone:
        raise LaunchError(f"{name}: killed before it started", "Try again.", ExitStatus.CANNOT_RUN) from None
    except BaseException:
        child.kill()
        raise
    waiting.spare = range(child.fd_base, child.fd_base + abi.FD_COUNT)
    return waiting


def _auxiliary(pid: int) -> dict[int, int]:
    """What the kernel told a process's dynamic linker."""
    with open(f"/proc/{pid}/auxv", "rb") as file:
        return dict(struct.iter_unpack("<QQ", file.read()))
