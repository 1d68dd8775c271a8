"""Tasks that keep the baton without making a call, while others, or a signal, wait for it.

Switches and signals happen at system calls. A task that spins in user space makes none; the recorder asks
it to stop where it is (SIGSTKFLT to the thread, which the core takes), and the core, unless the task seems to
compute rather than to wait, logs the whole state of that place. It is asked again until it does. What that
costs decides how soon it is done for the next time.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from interfaces import abi

_WAITERS = 0x80000000
_PATIENCE = 0.02
_COST_FACTOR = 10
_PATIENCE_MAX = 5.0
_AGAIN = 0.02
POKE = signal.SIGSTKFLT
"""Nothing on x86-64 sends it; the core takes it."""


class _Watched:
    __slots__ = ("asked", "events", "patience", "since")

    def __init__(self, since: float) -> None:
        self.events = -1
        self.since = since
        self.patience = _PATIENCE
        self.asked = 0.0


class SpinWatch:
    """One watch for all domains of a recording."""

    def __init__(self) -> None:
        self._watched: dict[int, _Watched] = {}

    def look(self, number: int, control: abi.Ring, poke: Callable[[int], bool]) -> bool:
        """Look at a domain; ask its baton holder to stop where that is due. Whether to look again soon.

        `poke` sends `POKE` to a task of the domain, and tells whether it could.
        """
        waited_for = control.pending_signals or (control.ntasks > 1 and control.baton & _WAITERS)
        if control.state != abi.RingState.RECORDING or not waited_for:
            self._watched.pop(number, None)
            return bool(control.ntasks > 1)
        now = time.monotonic()
        watched = self._watched.setdefault(number, _Watched(now))
        if control.event_count != watched.events:
            if watched.asked:
                cost = now - watched.asked
                watched.patience = min(_PATIENCE_MAX, max(_PATIENCE, _COST_FACTOR * cost))
            watched.events, watched.since, watched.asked = control.event_count, now, 0.0
        elif now - watched.since >= watched.patience and not watched.asked:
            holder = control.baton & ~_WAITERS
            if holder and poke(holder):
                watched.asked = now
        elif watched.asked and now - watched.asked > _AGAIN:
            watched.asked = 0.0
        return True

    def forget(self, number: int) -> None:
        """The domain has ended."""
        self._watched.pop(number, None)
