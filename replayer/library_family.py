"""The other programs of a recording at library interfaces, in replay.

A process that became another program ends at that place. The other one is started by this process, not by
it, and a little ahead of its time: entering a program takes a tenth of a second. It waits until the log
comes to its beginning.
"""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass, field

from interfaces.abi import Kind
from interfaces.arrays import numpy
from interfaces.errors import RrPyError
from interposer.library.control import Control, wake
from interposer.library.engine import Engine
from interposer.library.image import Image
from replayer.errors import ReplayError
from tracefile import TraceReader

_DOMAIN = 1
_AHEAD = 2
_EVENT_SIZE = 96


@dataclass(slots=True)
class Part:
    """One program: where in the log it begins, and what became of it."""

    number: int
    image: Image
    ends_here: bool
    pid: int = 0
    placed: threading.Event = field(default_factory=threading.Event)
    problem: RrPyError | None = None


class Family:
    """All programs of a replay but the first one."""

    def __init__(self, engine: Engine, reader: TraceReader, main: int, silent: frozenset[int]) -> None:
        """`main`: the task of the first program; `silent`: numbers of events that are the last of a process
        that was killed.
        """
        self._engine, self._reader = engine, reader
        self._parts = _parts(reader, silent)
        self._begun = self._launched = 0
        self._main = main
        self._tasks: dict[int, int] = {main: engine.pid}
        self._statuses: dict[int, int] = {}

    def step(self) -> bool:
        """Start what is due; True while a program is about to begin. Raises what keeps one from starting."""
        for message in self._engine.news():
            if message["is"] == "ended":
                self._statuses[int(message["pid"])] = int(message["status"])
        while self._launched < min(len(self._parts), self._begun + _AHEAD):
            self._launch(self._parts[self._launched])
            self._launched += 1
        control = self._engine.control
        while self._begun < len(self._parts):
            part = self._parts[self._begun]
            if control.event_no != part.number or not part.placed.is_set():
                return bool(control.event_no == part.number)
            if part.problem is not None:
                raise part.problem
            self._tasks[part.image.task] = part.pid
            control.multi = 1
            if not part.ends_here:
                self._engine.go(part.pid)
            control.event_no += 1
            control.cursor += _EVENT_SIZE
            control.turn += 1
            wake(ctypes.addressof(control) + Control.turn.offset)
            self._begun += 1
        return False

    def pid(self, task: int) -> int:
        """The process that plays a task, as far as this one started it; 0 else."""
        return self._tasks.get(task, 0)

    def status(self, task: int) -> int | None:
        """The wait status of the program that plays a task, None while it runs or where it is not known."""
        return self._statuses.get(self.pid(task))

    @property
    def main_status(self) -> int | None:
        """The wait status of the last program that the first process became, None while it runs."""
        pid = self._tasks[self._main]
        return self._engine.status if pid == self._engine.pid else self._statuses.get(pid)

    def living(self) -> list[int]:
        """Processes of these programs that have not ended."""
        return [part.pid for part in self._parts if part.pid and part.pid not in self._statuses]

    def running(self) -> bool:
        """Whether one of them has begun and not ended."""
        return any(
            part.pid not in self._statuses and not part.ends_here for part in self._parts[: self._begun]
        )

    def _launch(self, part: Part) -> None:
        info = self._reader.domains[part.image.domain]
        env = dict(item.partition("=")[::2] for item in info.envp)
        try:
            part.pid = self._engine.spawn(info.argv or [info.exe], env, info.cwd, info.exe, part.image)
        except RrPyError as why:
            text = f"{why.message}: the recorded program started it, and its replay runs it again"
            raise ReplayError(text, "Put the program back, or record again.") from None
        threading.Thread(target=self._place, args=[part], daemon=True).start()

    def _place(self, part: Part) -> None:
        try:
            self._engine.enter(part.pid, part.image)
        except RrPyError as why:
            part.problem = why
        finally:
            part.placed.set()
            control = self._engine.control
            control.knock += 1
            wake(ctypes.addressof(control) + Control.knock.offset)


def _parts(reader: TraceReader, silent: frozenset[int]) -> list[Part]:
    np = numpy()
    found = []
    for chunk in reader.chunks(_DOMAIN):
        events = chunk.events
        for row in np.flatnonzero(events["kind"] == Kind.EXECED).tolist():
            event = events[row]
            domain, _, outputs, errors, kind = (int(word) for word in event["args"][:5])
            number = chunk.first_event + row
            image = Image(int(event["task"]), domain, outputs, errors, kind)
            found.append(Part(number, image, number in silent))
    return found
