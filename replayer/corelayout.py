"""Where the core keeps what a session looks at: the blocks of its threads.

The offsets are those of `struct thread` and `struct sigframe` in interposer/core/core.h and kernel.h;
tests/unit/test_replayer_corelayout.py has the C compiler compare them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from interfaces import abi
from replayer.memory import Mapping, Memory, MemoryFault

THREAD_TID = 56
THREAD_PID = 60
THREAD_FRAME = 72
THREAD_ALIVE = 144
THREAD_IN_USE = 148
FRAME_CONTEXT = 8
_HEAD = 152
SLOT_TABLE = 0x7FFE0000
SLOT_TABLE_SIZE = 0x10000


@dataclass(frozen=True, slots=True)
class ThreadBlock:
    """A live thread: its recorded ids, and the address of its saved ucontext (0: it has none)."""

    tid: int
    pid: int
    context: int


def hidden(address: int) -> bool:
    """Whether an address belongs to the core and not to the program."""
    return abi.BASE <= address < abi.END or SLOT_TABLE <= address < SLOT_TABLE + SLOT_TABLE_SIZE


def thread_blocks(memory: Memory, mappings: Iterator[Mapping] | list[Mapping]) -> list[ThreadBlock]:
    """The live threads of an address space, by recorded thread id."""
    found = []
    for mapping in mappings:
        start = max(mapping.start, abi.THREADS)
        end = min(mapping.end, abi.THREADS + abi.MAX_THREADS * abi.THREAD_STRIDE)
        for address in range(start + (abi.THREADS - start) % abi.THREAD_STRIDE, end, abi.THREAD_STRIDE):
            try:
                head = memory.read(address, _HEAD)
            except MemoryFault:
                continue
            tid, pid = struct.unpack_from("<II", head, THREAD_TID)
            (frame,) = struct.unpack_from("<Q", head, THREAD_FRAME)
            (alive,) = struct.unpack_from("<I", head, THREAD_ALIVE)
            (in_use,) = struct.unpack_from("<I", head, THREAD_IN_USE)
            if alive and in_use and tid:
                found.append(ThreadBlock(tid, pid, frame + FRAME_CONTEXT if frame else 0))
    return sorted(found, key=lambda block: block.tid)
