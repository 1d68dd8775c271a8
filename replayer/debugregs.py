"""The processor's debug registers of a thread of ours: up to four watched places each.

ptrace is needed only for the moment of setting them; they hold when it is gone, and a touched place is then
a SIGTRAP that the core counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from interposer import ptrace
from interposer.errors import Gone
from replayer.errors import ReplayError

_DEBUGREG = 848
_LENGTH = {1: 0, 2: 1, 4: 3, 8: 2}


def set_watches(real_tid: int, places: Sequence[tuple[int, int, bool]]) -> None:
    """Watch (address, bytes, reads too) in the thread; an empty list ends all watching.

    ReplayError when the machine does not let us.
    """
    try:
        ptrace.seize(real_tid)
        ptrace.interrupt(real_tid)
        stopped = ptrace.wait(real_tid)
        if stopped.ended:
            return
        try:
            ptrace.poke_user(real_tid, _DEBUGREG + 7 * 8, 0)
            enable = 0
            for index, (address, size, reads) in enumerate(places):
                ptrace.poke_user(real_tid, _DEBUGREG + index * 8, address)
                enable |= (
                    1 << 2 * index | (3 if reads else 1) << 16 + 4 * index | _LENGTH[size] << 18 + 4 * index
                )
            if enable:
                ptrace.poke_user(real_tid, _DEBUGREG + 6 * 8, 0)
                ptrace.poke_user(real_tid, _DEBUGREG + 7 * 8, enable)
        finally:
            ptrace.detach(real_tid, stopped.forward)
    except Gone:
        return
    except OSError as error:
        raise ReplayError(
            f"watchpoints cannot be set here: {error.strerror}", "Use breakpoints; allow ptrace."
        ) from None


def touched(real_tid: int) -> int:
    """Which of the watched places the last trap was about: bit n for the nth; 0 where that is not known."""
    try:
        ptrace.seize(real_tid)
        ptrace.interrupt(real_tid)
        stopped = ptrace.wait(real_tid)
        if stopped.ended:
            return 0
        try:
            value = ptrace.peek_user(real_tid, _DEBUGREG + 6 * 8) & 15
            ptrace.poke_user(real_tid, _DEBUGREG + 6 * 8, 0)
            return value
        finally:
            ptrace.detach(real_tid, stopped.forward)
    except (Gone, OSError):
        return 0
