"""System calls that Python has no function for, made through the C library's `syscall`.

One place for ctypes: the rest of the package calls typed functions. Every function raises OSError with the
kernel's errno unless it says otherwise.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long

_SYS_PERSONALITY = 135
_SYS_PRCTL = 157
_SYS_ARCH_PRCTL = 158
_SYS_TGKILL = 234
_SYS_FUTEX = 202

_ADDR_NO_RANDOMIZE = 0x0040000
_ASKED_FOR_FIXED = 0x0080000  # a bit without a meaning on x86, as in core/record.c
_PERSONALITY_QUERY = 0xFFFFFFFF
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
_PR_SET_SYSCALL_USER_DISPATCH = 59
_ARCH_SET_CPUID = 0x1012
_FUTEX_WAIT = 0
_FUTEX_WAKE = 1
_NSEC = 1_000_000_000
_ALL = 0x7FFFFFFF


def _call(number: int, *arguments: int) -> int:
    result: int = _syscall(ctypes.c_long(number), *(ctypes.c_ulong(a) for a in arguments))
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def futex_wake(address: int) -> int:
    """Wake everyone who waits on the 32-bit word at `address` (shared memory). Returns how many waited."""
    return _call(_SYS_FUTEX, address, _FUTEX_WAKE, _ALL, 0, 0, 0)


class _TimeSpec(ctypes.Structure):
    _fields_ = (("sec", ctypes.c_long), ("nsec", ctypes.c_long))


def futex_wait(address: int, value: int, seconds: float) -> None:
    """Sleep until somebody wakes the 32-bit word at `address` (shared memory), unless it is not `value`.

    For so long at the most; a signal may end it early. Other threads run meanwhile.
    """
    timeout = _TimeSpec(*divmod(int(seconds * _NSEC), _NSEC))
    with suppress(BlockingIOError, InterruptedError, TimeoutError):
        _call(_SYS_FUTEX, address, _FUTEX_WAIT, value, ctypes.addressof(timeout), 0, 0)


def tgkill(pid: int, tid: int, number: int) -> bool:
    """Send a signal to one thread of a process; False when it has no such thread (any more)."""
    try:
        _call(_SYS_TGKILL, pid, tid, number)
    except OSError:
        return False
    return True


def disable_aslr() -> bool:
    """Give this process and what it execs fixed addresses; False where a sandbox refuses."""
    try:
        persona = _call(_SYS_PERSONALITY, _PERSONALITY_QUERY)
        asked = _ASKED_FOR_FIXED if persona & _ADDR_NO_RANDOMIZE else 0
        _call(_SYS_PERSONALITY, persona | _ADDR_NO_RANDOMIZE | asked)
    except OSError:
        return False
    return True


def has_user_dispatch() -> bool:
    """Whether this kernel can hand a program's system calls back to it (Syscall User Dispatch, 5.11)."""
    try:
        _call(_SYS_PRCTL, _PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0)
    except OSError:
        return False
    return True


def has_cpuid_faulting() -> bool:
    """Whether CPUID can be made to trap (ARCH_SET_CPUID). Asks by allowing what is allowed already."""
    try:
        _call(_SYS_ARCH_PRCTL, _ARCH_SET_CPUID, 1)
    except OSError:
        return False
    return True


def is_subreaper() -> bool:
    flag = ctypes.c_int()
    _call(_SYS_PRCTL, _PR_GET_CHILD_SUBREAPER, ctypes.addressof(flag), 0, 0, 0)
    return bool(flag.value)


def set_subreaper(on: bool) -> None:
    """Whether orphans among our descendants become our children (instead of init's)."""
    _call(_SYS_PRCTL, _PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)
