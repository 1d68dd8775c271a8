"""The debugger's part of a ring's control area: struct rr_debug of interposer/core/debug.h.

The layouts are the core's; tests/debug/test_debugring.py has the C compiler compare them.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum

from interfaces import abi
from interposer.shared import Ring

DEBUG_OFFSET = 0x8000
BREAKPOINTS = 1024
WATCHES = 4

_u8, _u32, _s32, _u64 = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64


class Park(IntEnum):
    """enum rr_park: why a task is parked."""

    EVENT = 0
    BREAK = 1
    STEP = 2
    WATCH = 3
    CALL_WATCH = 4
    TASK = 5
    FAULT = 6
    POKED = 7
    CALL = 8
    SIGNAL = 9


REQUEST_NONE, REQUEST_CLONE, REQUEST_MAP, REQUEST_UNMAP = range(4)


class Breakpoint(ctypes.LittleEndianStructure):
    """struct rr_breakpoint"""

    _fields_ = [("addr", _u64), ("byte", _u8), ("inserted", _u8), ("soft", _u8), ("pad", _u8 * 5)]


class WatchSlot(ctypes.LittleEndianStructure):
    """struct rr_watch"""

    _fields_ = [("addr", _u64), ("len", _u32), ("kind", _u32), ("value", _u64)]


class Debug(ctypes.LittleEndianStructure):
    """struct rr_debug"""

    _fields_ = [
        ("enabled", _u32),
        ("reason", _u32),
        ("steps", _u64),
        ("step_tid", _u32),
        ("go_over", _u32),
        ("range_start", _u64),
        ("range_end", _u64),
        ("skip", _u64),
        ("hits", _u64),
        ("hits_event", _u64),
        ("hits_in_event", _u64),
        ("stepped", _u64),
        ("core_watch", _u32),
        ("diverted", _u32),
        ("request", _u32),
        ("reply", _s32),
        ("signal", _u32),
        ("nbreak", _u32),
        ("watches", WatchSlot * WATCHES),
        ("stepped_event", _u64),
        ("stepped_in_event", _u64),
        ("soft_hits", _u64),
        ("stop_signals", _u64),
        ("request_addr", _u64),
        ("reserved", _u64 * 3),
        ("breaks", Breakpoint * BREAKPOINTS),
    ]


def debug_area(ring: Ring) -> Debug:
    """The live structure of a ring; must be dropped before the ring is closed."""
    return Debug.from_buffer(ring._memory, DEBUG_OFFSET)


assert ctypes.sizeof(Debug) <= abi.RING_CTL - DEBUG_OFFSET
