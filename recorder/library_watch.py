"""Watching a running process at library interfaces: its calls as they end, without a trace."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from interfaces import abi
from interfaces.calls import name_of
from interfaces.libspec.model import Callback, Function, Interface
from interfaces.libspec.show import LibFlag, call_text
from interposer.library.engine import SLOT_SIZE, SLOTS, WATCH, Engine, Plan
from interposer.library.errors import EngineError
from recorder.library import Drain

_TICK = 0.02


@dataclass(frozen=True, slots=True)
class Call:
    """A call that ended: thread, begin (CLOCK_MONOTONIC ns), duration (ns), text, caller's address."""

    task: int
    begin: int
    duration: int
    name: str
    text: str
    caller: int


class Watch:
    """The stubs in a running process, until `close`."""

    def __init__(self, pid: int, interfaces: Sequence[Interface], tell: Callable[[Call], None]) -> None:
        plan = Plan(interfaces, WATCH)
        self._known: dict[int, Function | Callback] = plan.functions()
        self._tell = tell
        self.pid = pid
        self._quiet = _waiting(pid)
        self._engine = Engine(WATCH, SLOTS * SLOT_SIZE)
        try:
            self._engine.attach(pid)
            self._engine.place(plan)
            self._engine.read_news()
            if not self._engine.loaded:
                names = ", ".join(so for item in interfaces for so in item.libraries)
                raise EngineError(f"process {pid} has not loaded {names}", "Choose another interface.")
        except BaseException:
            self._engine.detach()
            self._engine.close()
            raise
        self._drain = Drain(self._engine, self._events)

    def step(self) -> bool:
        """Tell what has come; False when the process is gone."""
        self._drain.all()
        if not os.path.exists(f"/proc/{self.pid}"):
            self._drain.all()
            return False
        time.sleep(_TICK)
        return True

    def quiet(self) -> dict[int, str]:
        """Threads that wait in a call they made before the watch began -> its name."""
        now = _waiting(self.pid)
        return {task: name for task, name in self._quiet.items() if now.get(task) == name}

    def close(self) -> None:
        """Take the stubs out again; the process goes on."""
        self._engine.detach()
        self._drain.all()
        self._drain.close()
        self._engine.close()

    def _events(self, first: int, events: bytes, payload: bytes) -> None:
        for at in range(0, len(events), abi.EVENT_SIZE):
            event = abi.Event.from_buffer_copy(events, at)
            if event.flags & (LibFlag.PART | LibFlag.ENTER | LibFlag.CALLBACK | LibFlag.RETURN):
                continue
            self._quiet.pop(event.task, None)
            known = self._known.get(event.nr)
            data = payload[event.payload_off : event.payload_off + event.payload_len]
            try:
                regions = abi.parse_regions(data)
            except ValueError:
                regions = []
            self._tell(
                Call(
                    event.task,
                    event.time_in,
                    event.time_out - event.time_in,
                    known.name if known is not None else str(event.nr),
                    call_text(event, regions, self._known),
                    event.ip,
                )
            )


def _waiting(pid: int) -> dict[int, str]:
    """The threads of a process that wait in a system call -> its name."""
    found = {}
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{task}/syscall", encoding="ascii") as file:
                number = file.read().split(maxsplit=1)[0]
                if number.isdecimal():
                    found[int(task)] = name_of(int(number))
    return found
