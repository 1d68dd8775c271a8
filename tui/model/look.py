"""What only a replay can tell about an event: stack, source, registers, threads, memory.

A session is kept and goes forward where it can; going back begins anew. Only one request runs at a time.
"""

from __future__ import annotations

import linecache
import os
import threading
from pathlib import Path

from interfaces.errors import ExitStatus, RrPyError
from replayer import Ended, Paused, Session
from replayer.backtrace import StackFrame, StackReader
from replayer.memory import MemoryFault
from replayer.registers import Registers
from tui.model.decode import printable
from tui.model.detail import Node
from tui.model.hexdump import hex_lines

MEMORY_SIZE = 256
_CONTEXT = 2
_GENERAL = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
            "r14", "r15", "rip", "eflags")  # fmt: skip


class LookError(RrPyError):
    """The replay did not reach the event, or has nothing there to show."""


class Looker:
    """Replays a trace, in the background, to events that are asked about."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._pause: Paused | None = None
        self._reader = StackReader()

    def look(self, domain: int, event: int, what: str) -> Node:
        """The tree for `what`: "stack", "registers", "threads", or an address, right behind an event.

        Raises RrPyError (LookError where the replay diverged or cannot show it).
        """
        with self._lock:
            pause = self._go(domain, event)
            try:
                match what:
                    case "stack":
                        return self._stack(pause, pause.tid)
                    case "registers":
                        return _registers(pause)
                    case "threads":
                        return self._threads(pause)
                    case _:
                        return _memory(pause, what)
            except MemoryFault as why:
                raise LookError(str(why), "Try an event a little later.", ExitStatus.TOOL_FAILED) from why

    def close(self) -> None:
        """End the replay."""
        with self._lock:
            self._drop()
            self._reader.close()

    def _drop(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = self._pause = None

    def _go(self, domain: int, event: int) -> Paused:
        pause, wanted = self._pause, event + 1
        if pause is not None and pause.domain == domain and pause.event == wanted:
            return pause
        if pause is None or pause.domain != domain or pause.event > wanted:
            self._drop()
            self._session = Session.open(self._trace, domain)
        assert self._session is not None
        try:
            found = self._session.run_to(wanted)
        except BaseException:
            self._drop()
            raise
        if isinstance(found, Ended):
            self._drop()
            text = found.message or "the replay ended before"
            raise LookError(
                f"the replay did not get to event {event}: {text}",
                "rr-py replay says more.",
                ExitStatus.DIVERGED if found.divergence is not None else ExitStatus.TOOL_FAILED,
            )
        self._pause = found
        return found

    def _frames(self, pause: Paused, tid: int) -> tuple[StackFrame, ...]:
        return self._reader.read(pause.real_pid, _Memory(pause), pause.mappings(), pause.registers(tid), tid)

    def _stack(self, pause: Paused, tid: int) -> Node:
        frames = self._frames(pause, tid)
        nodes = [_frame(number, frame) for number, frame in enumerate(frames)]
        return Node("stack", f"{len(frames)} frames of thread {tid}", nodes or [Node("no frames")])

    def _threads(self, pause: Paused) -> Node:
        node = Node("threads")
        for thread in pause.threads():
            mark = " (made this event)" if thread.stopped_here else ""
            try:
                stack = self._stack(pause, thread.tid)
            except (MemoryFault, RrPyError) as why:
                node.children.append(Node(f"thread {thread.tid}{mark}", str(getattr(why, "message", why))))
                continue
            stack.text, stack.open = f"thread {thread.tid}{mark}", thread.stopped_here
            stack.value = f"{len(stack.children)} frames"
            node.children.append(stack)
        node.value = str(len(node.children))
        return node


class _Memory:
    """A paused process's memory as the unwinder reads it."""

    def __init__(self, pause: Paused) -> None:
        self._pause = pause

    def read(self, address: int, size: int) -> bytes:
        return self._pause.read(address, size)


def _frame(number: int, frame: StackFrame) -> Node:
    where = f"{frame.file}:{frame.line}" if frame.file and frame.line else os.path.basename(frame.module)
    kind = f" [{frame.kind}]" if frame.kind != "native" else ""
    return Node(
        f"#{number} {printable(frame.function)}{kind}",
        printable(where),
        [Node(line) for line in source_lines(frame.file, frame.line)],
        open=number == 0,
    )


def source_lines(file: str, line: int) -> list[str]:
    """The lines around one of a source file, that one marked; empty where the file is not here."""
    if not file or not line:
        return []
    found = []
    for number in range(max(line - _CONTEXT, 1), line + _CONTEXT + 1):
        text = linecache.getline(file, number)
        if text:
            shown = printable(text.rstrip("\n").expandtabs())
            found.append(f"{'>' if number == line else ' '} {number:5} {shown}")
    return found


def _registers(pause: Paused) -> Node:
    registers: Registers = pause.registers()
    return Node(
        "registers",
        f"of thread {pause.tid}",
        [Node(name, f"{value:#018x}  {_meaning(pause, value)}") for name in _GENERAL
         if (value := getattr(registers, name, None)) is not None],
    )  # fmt: skip


def _meaning(pause: Paused, value: int) -> str:
    """What an address lies in; the number in decimal where it is none."""
    for mapping in pause.mappings():
        if mapping.start <= value < mapping.end:
            name = os.path.basename(mapping.path) or "memory"
            return f"{printable(name)}+{value - mapping.start + mapping.offset:#x} {mapping.prot}"
    return str(value) if value < 1 << 63 else str(value - (1 << 64))


def address_of(pause: Paused, text: str) -> int:
    """An address, a register's name, or one with an offset: `rsp+0x20`."""
    name, sign, offset = text.partition("+") if "+" in text else text.partition("-")
    try:
        base = getattr(pause.registers(), name.strip()) if name.strip() in _GENERAL else int(name, 0)
        return int(base) + (int(offset, 0) if sign == "+" else -int(offset, 0) if sign else 0)
    except ValueError:
        raise LookError(
            f"{text!r} is no address", "Such as 0x7fffffffe000 or rsp+16.", ExitStatus.TOOL_FAILED
        ) from None


def _memory(pause: Paused, text: str) -> Node:
    address = address_of(pause, text)
    data = b""
    for size in (MEMORY_SIZE, 64, 16, 1):
        try:
            data = pause.read(address, size)
            break
        except (MemoryFault, OverflowError):
            continue
    if not data:
        raise LookError(f"nothing is mapped at {address:#x}", "See the registers.", ExitStatus.TOOL_FAILED)
    return Node(
        f"memory at {address:#x}", _meaning(pause, address), [Node(line) for line in hex_lines(data, address)]
    )
