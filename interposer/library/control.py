"""The page that a program at a library interface shares with the tool."""

from __future__ import annotations

import ctypes

CONTROL_SIZE = 0x10000
KNOCKS = 32
_SYS_FUTEX, _WAIT, _WAKE = 202, 0, 1
_EVERYBODY = 1 << 30


class Knock(ctypes.LittleEndianStructure):
    """struct rr_knock of runtime.c: a process that is about to become another program."""

    FREE, FILLED, ASKED, SEIZED, STAYS, REFUSED = 0, 1, 2, 3, 4, 5

    _fields_ = [
        *[(name, ctypes.c_uint32) for name in ("state", "pid", "tid", "task")],
        *[(name, ctypes.c_uint64) for name in ("path", "pad")],
    ]

    def answer(self, state: int) -> None:
        """Set the state, and wake the process that waits for it."""
        self.state = state
        wake(ctypes.addressof(self))


class Control(ctypes.LittleEndianStructure):
    """struct rr_ctl of runtime.c."""

    _fields_ = [
        *[
            (name, ctypes.c_uint32)
            for name in ("task", "mode", "tool_pid", "pid", "lock", "slot", "sealed", "turn")
        ],
        *[(name, ctypes.c_uint64) for name in ("events", "sequence", "cursor", "end", "event_no", "calls")],
        *[(name, ctypes.c_uint32) for name in ("threads", "multi", "diverged", "stopped")],
        *[(name, ctypes.c_uint32) for name in ("div_task", "div_nr", "div_arg", "div_flags")],
        *[(name, ctypes.c_uint64) for name in ("div_ip", "div_found", "div_expected", "div_offset")],
        ("div_args", ctypes.c_uint64 * 6),
        *[(name, ctypes.c_uint32) for name in ("div_len", "full", "waiting", "unseen")],
        ("div_data", ctypes.c_uint8 * 1024),
        *[(name, ctypes.c_uint32) for name in ("out_lock", "knock", "broken", "left")],
        ("kids", ctypes.c_uint32 * 64),
        *[
            (name, ctypes.c_uint64)
            for name in ("lives", "lives_done", "schedule", "nschedule", "most_lives", "most_done")
        ],
        *[(name, ctypes.c_uint32) for name in ("ends_by", "inexact", "lost", "untrapped", "whole", "cut")],
        ("knocks", Knock * KNOCKS),
    ]

    def rouse(self) -> None:
        """Wake the tool, which waits for a full slot or a knock."""
        for field in (Control.sealed, Control.knock):
            wake(ctypes.addressof(self) + field.offset)

    def wait_for_knock(self, seen: int, seconds: float) -> None:
        """Wait until `knock` is no longer what it was, or for a moment."""
        wait(ctypes.addressof(self) + Control.knock.offset, seen, seconds)


def wait(address: int, seen: int, seconds: float) -> None:
    """Wait on a word in shared memory while it holds what was seen."""
    limit = (ctypes.c_long * 2)(int(seconds), int(seconds % 1 * 1e9))
    ctypes.CDLL(None).syscall(_SYS_FUTEX, ctypes.c_void_p(address), _WAIT, ctypes.c_long(seen), limit)


def wake(address: int) -> None:
    """Wake all who wait on a word in shared memory."""
    ctypes.CDLL(None).syscall(_SYS_FUTEX, ctypes.c_void_p(address), _WAKE, ctypes.c_long(_EVERYBODY))
