"""Signals while a program is recorded: its terminal is its own.

Ctrl-C, Ctrl-\\ and the stops of background jobs reach the program, which shares our process group; the
recorder lets them pass. SIGTERM and SIGHUP are for whoever does the work: they are handed on. Every signal
wakes the loop.
"""

from __future__ import annotations

import signal
import socket
import threading
from types import FrameType, TracebackType
from typing import Any, Self

_WAKEUPS = 4096
_IGNORED = (signal.SIGQUIT, signal.SIGTTOU, signal.SIGTTIN)
_NOTED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


class Signals:
    """Dispositions of the recorder, restored on leaving. Outside the main thread nothing can be changed.

    `fileno` becomes readable at every signal; `take` says which of SIGINT, SIGTERM and SIGHUP have come.
    """

    def __init__(self) -> None:
        self._noted: list[int] = []
        self._before: dict[int, Any] = {}
        self._wakeup, self._writer = socket.socketpair()
        self._previous_fd = -1
        self.active = threading.current_thread() is threading.main_thread()

    def fileno(self) -> int:
        return self._wakeup.fileno()

    def __enter__(self) -> Self:
        for end in (self._wakeup, self._writer):
            end.setblocking(False)
        if self.active:
            self._previous_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
            for number in _NOTED:
                if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGCHLD:
                    self._before[number] = signal.signal(number, self._note)
            for number in _IGNORED:
                self._before[number] = signal.signal(number, signal.SIG_IGN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.active:
            for number, handler in self._before.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)
            signal.set_wakeup_fd(self._previous_fd)
        self._wakeup.close()
        self._writer.close()

    def take(self) -> list[int]:
        """What has come since the last time, in order."""
        try:
            while len(self._wakeup.recv(_WAKEUPS)) == _WAKEUPS:
                pass
        except BlockingIOError:
            pass
        noted, self._noted = self._noted, []
        return noted

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            self._noted.append(number)
