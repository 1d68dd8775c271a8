"""Where a replaying thread spends its time between two events: its stack, taken every few milliseconds.

The thread is stopped by ptrace for each sample and goes on at once; what it computes is not changed.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from interfaces import abi
from interposer import ptrace
from interposer.errors import Gone
from replayer.registers import Registers

_CLOCK_MONOTONIC = 1
_CLOEXEC_NONBLOCK = 0o2000000 | 0o4000


def registers_now(tid: int, look: Callable[[Registers], None]) -> bool:
    """Stop the thread with real id `tid`, call `look` with its registers, let it go on; False: it is gone.

    `look` is called only while the thread runs the program's own code.
    """
    try:
        ptrace.seize(tid)
    except (Gone, OSError):
        return False
    number = 0
    try:
        ptrace.interrupt(tid)
        stopped = ptrace.wait(tid)
        if stopped.ended:
            return False
        number = stopped.forward
        raw = ptrace.get_registers(tid)
        registers = Registers.from_names({name: int(getattr(raw, name)) for name in _NAMES})
        if not abi.BASE <= registers.rip < abi.END:
            look(registers)
    except Gone:
        return False
    finally:
        with suppress(Gone, OSError):
            ptrace.detach(tid, number)
    return True


_NAMES = (
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp",
    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip",
)  # fmt: skip


@contextmanager
def ticking(selector: selectors.BaseSelector, seconds: float, call: Callable[[], None]) -> Iterator[None]:
    """While the context lives, `call` is called about every `seconds` by whoever serves the selector."""
    libc = ctypes.CDLL(None, use_errno=True)
    timer = libc.timerfd_create(_CLOCK_MONOTONIC, _CLOEXEC_NONBLOCK)
    if timer < 0:
        raise OSError(ctypes.get_errno(), "timerfd_create")
    try:
        period = (int(seconds), int(seconds % 1 * 1e9))
        value = struct.pack("<4q", *period, *period)
        libc.timerfd_settime(timer, 0, value, None)

        def tick(_descriptor: object) -> None:
            with suppress(BlockingIOError):
                os.read(timer, 8)
            call()

        selector.register(timer, selectors.EVENT_READ, tick)
        try:
            yield
        finally:
            selector.unregister(timer)
    finally:
        os.close(timer)
