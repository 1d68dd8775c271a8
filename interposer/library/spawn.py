"""Starting a program so that it waits, with its libraries loaded, at its entry point.

Frida reaps what it spawns and what it works in, and with it the program's exit status. So a keeper process is
the program's parent. At the entry point stands a loop around pause() until `Waiting.go`: no signal, no stop
that the program could notice, no processor time.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from interfaces import abi
from interfaces.errors import ExitStatus, RrPyError
from interposer import launch, ptrace
from interposer.errors import Gone, LaunchError

_AT_ENTRY = 9
_BREAKPOINT = b"\xcc"
_PAUSE_LOOP = bytes.fromhex("b822000000 0f05 ebf7")
"""mov $__NR_pause, %eax; syscall; jmp to the mov."""


@dataclass(slots=True)
class Keeper:
    """A process between this one and the program: its parent, who alone learns how it ended.

    Frida waits for children of its own process, whichever they are; the program must not be one of them.
    `spare` are descriptors the program holds open that nobody needs, for who gets inside first to close.
    """

    pid: int
    spare: list[int]
    _process: int
    _commands: int
    _answers: int
    _status: int | None = None

    def go(self) -> None:
        """Let the program run from its entry point."""
        with suppress(OSError):
            os.write(self._commands, b"g")

    def poll(self) -> int | None:
        """The wait status of the program once it has ended, None before."""
        if self._status is None and select.select([self._answers], [], [], 0)[0]:
            data = os.read(self._answers, 4)
            self._status = int.from_bytes(data, "little") if len(data) == 4 else signal.SIGKILL
            with suppress(ChildProcessError):
                os.waitpid(self._process, 0)
        return self._status

    def close(self) -> None:
        os.close(self._commands)
        os.close(self._answers)
        if self._status is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(self._process, 0)


def spawn(argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> Keeper:
    """Start a dynamically linked program, up to its entry point. Raises RrPyError."""
    commands_read, commands = os.pipe()
    answers, answers_write = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(commands)
            os.close(answers)
            _keep(argv, env, cwd, commands_read, answers_write)
        finally:
            os._exit(ExitStatus.TOOL_FAILED)
    os.close(commands_read)
    os.close(answers_write)
    with open(os.dup(answers), encoding="utf-8", buffering=1, closefd=True) as file:
        line = _line(file.fileno())
    told: dict[str, Any] = {"error": f"{argv[0]}: could not be started", "remedy": "", "status": 126}
    if line:
        told = json.loads(line)
    if "error" in told:
        os.close(commands)
        os.close(answers)
        with suppress(ChildProcessError):
            os.waitpid(process, 0)
        raise LaunchError(told["error"], told["remedy"], ExitStatus(told["status"]))
    return Keeper(told["pid"], told["spare"], process, commands, answers)


def _line(descriptor: int) -> bytes:
    """What is written up to a newline, and no byte further."""
    found = b""
    while not found.endswith(b"\n"):
        byte = os.read(descriptor, 1)
        if not byte:
            return b""
        found += byte
    return found


def _keep(argv: Sequence[str], env: Mapping[str, str], cwd: str | None, commands: int, answers: int) -> None:
    """The keeper's life: start, tell, wait for the word, let go, wait for the end, tell."""
    try:
        waiting = _spawn(argv, env, cwd)
    except RrPyError as why:
        told = {"error": why.message, "remedy": why.remedy, "status": int(why.status)}
        os.write(answers, json.dumps(told).encode() + b"\n")
        return
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.write(answers, json.dumps({"pid": waiting.pid, "spare": [*waiting.spare]}).encode() + b"\n")
    for standard in (0, 1, 2):
        os.close(standard)
    status = None
    if os.read(commands, 1) != b"g":
        os.kill(waiting.pid, signal.SIGKILL)
    else:
        status = waiting.go()
    if status is None:
        status = os.waitpid(waiting.pid, 0)[1]
    os.write(answers, status.to_bytes(4, "little"))


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


def _spawn(argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> Waiting:
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
            original = memory.read(entry, len(_PAUSE_LOOP))
            memory.write(entry, _BREAKPOINT)
            ptrace.resume(child.pid)
            while True:
                wait = ptrace.wait(child.pid)
                if wait.ended:
                    raise LaunchError(
                        f"{argv[0]}: ended before its first instruction (wait status {wait.status:#x})",
                        "Check that all its libraries are there: ldd.",
                        ExitStatus.CANNOT_RUN,
                    )
                registers = ptrace.get_registers(child.pid)
                if wait.forward == signal.SIGTRAP and registers.rip == entry + 1:
                    break
                ptrace.resume(child.pid, wait.forward)
            registers.rip = entry
            ptrace.set_registers(child.pid, registers)
            memory.write(entry, _PAUSE_LOOP)
        ptrace.detach(child.pid)
    except Gone:
        raise LaunchError(
            f"{argv[0]}: killed before it started", "Try again.", ExitStatus.CANNOT_RUN
        ) from None
    except BaseException:
        child.kill()
        raise
    return Waiting(child.pid, entry, original, registers, range(child.fd_base, child.fd_base + abi.FD_COUNT))


def _entry(pid: int) -> int:
    """Where the program itself begins, from what the kernel told its dynamic linker."""
    with open(f"/proc/{pid}/auxv", "rb") as file:
        for key, value in struct.iter_unpack("<QQ", file.read()):
            if key == _AT_ENTRY:
                return int(value)
    raise OSError(f"process {pid} has no entry point")
