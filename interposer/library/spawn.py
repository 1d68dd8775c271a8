"""Starting a program so that it waits, with its libraries loaded, at its entry point.

Frida's own spawn reaps the child, and with it the program's exit status; here the child stays ours. A jump to
itself stands at the entry point until `Waiting.go`: no signal, no stop that the program could notice.
"""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from interfaces import abi
from interfaces.errors import ExitStatus
from interposer import launch, ptrace
from interposer.errors import Gone, LaunchError

_AT_ENTRY = 9
_BREAKPOINT = b"\xcc"
_LOOP = b"\xeb\xfe"


@dataclass(slots=True)
class Waiting:
    """A program that turns in circles at its entry point.

    `spare` are descriptors it holds open that nobody needs, for the one who gets inside first to close.
    """

    pid: int
    entry: int
    original: bytes
    spare: range

    def go(self) -> None:
        """Let it run: stopped for the moment in which the bytes are put back."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)
        with suppress(OSError), open(f"/proc/{self.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(self.entry)
            memory.write(self.original)
        os.kill(self.pid, signal.SIGCONT)


def spawn(argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> Waiting:
    """Start a dynamically linked program, up to its entry point. Raises LaunchError."""
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        child = launch.fork(launch.Command(tuple(argv), env, cwd), [nothing])
    finally:
        os.close(nothing)
    child.start()
    try:
        entry = _entry(child.pid)
        with ptrace.Memory(child.pid) as memory:
            original = memory.read(entry, 2)
            memory.write(entry, _BREAKPOINT)
            ptrace.resume(child.pid)
            while True:
                wait = ptrace.wait(child.pid)
                if wait.ended:
                    raise LaunchError(
                        f"{argv[0]}: ended before its first instruction (wait status {wait.status:#x})",
                        "Check that all its libraries are there: ldd.", ExitStatus.CANNOT_RUN,
                    )  # fmt: skip
                registers = ptrace.get_registers(child.pid)
                if wait.forward == signal.SIGTRAP and registers.rip == entry + 1:
                    break
                ptrace.resume(child.pid, wait.forward)
            registers.rip = entry
            ptrace.set_registers(child.pid, registers)
            memory.write(entry, _LOOP)
        ptrace.detach(child.pid)
    except Gone:
        raise LaunchError(f"{argv[0]}: killed before it started", "Try again.", ExitStatus.CANNOT_RUN) from None
    except BaseException:
        child.kill()
        raise
    return Waiting(child.pid, entry, original, range(child.fd_base, child.fd_base + abi.FD_COUNT))


def _entry(pid: int) -> int:
    """Where the program itself begins, from what the kernel told its dynamic linker."""
    with open(f"/proc/{pid}/auxv", "rb") as file:
        for key, value in struct.iter_unpack("<QQ", file.read()):
            if key == _AT_ENTRY:
                return int(value)
    raise OSError(f"process {pid} has no entry point")
