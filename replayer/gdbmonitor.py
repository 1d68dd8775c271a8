"""What `monitor` does in gdb: asking where one is, and going elsewhere. The commands of `rr_py.py` use it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from interfaces.abi import Kind, RegionKind
from interfaces.decode import format_event
from interfaces.errors import RrPyError
from replayer.corefile import image_of
from replayer.pystack import Interpreter
from replayer.pyvalues import locals_of
from replayer.timeline import Checkpoint

if TYPE_CHECKING:
    from replayer.gdbserver import Server

_PRCTL, _PR_SET_NAME = 157, 15
_HELP = """\
when                     which event has happened last, and what is next
seek EVENT               go right behind that event ("end": the last one, "start": the first place)
checkpoint               keep this place
info checkpoints         list what is kept
restart NUMBER           go to a kept place
delete checkpoint NUMBER give it up
back, forward            go to where one was before a jump, and return
py-stack [TID] [-l]      the Python stack of a thread; -l: with local variables
"""


class Monitor:
    """Commands for one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._kept: dict[int, Checkpoint] = {}
        self._next = 1
        self._back: list[Checkpoint] = []
        self._forward: list[Checkpoint] = []
        self._executable: str | None = None
        self._names: dict[int, list[tuple[int, str]]] | None = None

    def run(self, line: str) -> bytes:
        """Run a line; the answer for gdb."""
        try:
            words = shlex.split(line)
        except ValueError:
            words = line.split()
        try:
            text = self._command(words)
        except RrPyError as error:
            text = f"{error.message}\n{error.remedy}\n"
        except (ValueError, IndexError, KeyError):
            text = f"not understood: {line}\n{_HELP}"
        return text.encode().hex().encode() or b"OK"

    def _command(self, words: list[str]) -> str:
        timeline = self._server.timeline
        match words:
            case [] | ["help"]:
                return _HELP
            case ["when"]:
                return self._when()
            case ["where"]:
                return f"{timeline.position} {id(timeline.process)}\n"
            case ["tid"]:
                return f"{timeline.process.tid}\n"
            case ["seek", where]:
                events = {"end": timeline.total, "start": timeline.first}
                target = events[where] if where in events else int(where) + 1
                self._jump(lambda: timeline.seek(target))
                return self._when()
            case ["checkpoint"]:
                number, self._next = self._next, self._next + 1
                self._kept[number] = timeline.checkpoint()
                return f"Checkpoint {number} at {self._place(self._kept[number])}\n"
            case ["info", "checkpoints"]:
                lines = [f"{number} {self._place(one)}" for number, one in sorted(self._kept.items())]
                return "\n".join(lines or ["No checkpoints."]) + "\n"
            case ["restart", number]:
                kept = self._kept[int(number)]
                self._jump(lambda: timeline.restart(kept))
                return self._when()
            case ["delete", "checkpoint", number]:
                timeline.delete(self._kept.pop(int(number)))
                return ""
            case ["back"]:
                return self._go(self._back, self._forward)
            case ["forward"]:
                return self._go(self._forward, self._back)
            case ["py-stack" | "pystack", *rest]:
                words = [word for word in rest if word != "-l"]
                return self._python(int(words[0]) if words else self._server.tid, "-l" in rest)
            case _:
                return f"no such command: {shlex.join(words)}\n{_HELP}"

    @staticmethod
    def _place(checkpoint: Checkpoint) -> str:
        event, _plus, more = str(checkpoint.position).partition(" + ")
        number = int(event.split()[1]) - 1
        return f"event {number}" + (f" + {more}" if more else "")

    def _when(self) -> str:
        timeline = self._server.timeline
        event = timeline.position.event
        reader, domain = timeline.reader, timeline.domain
        last = reader.event(domain, event - 1)
        lines = [f"Event {event - 1} of {timeline.total} has happened: {format_event(last, last.regions)}"]
        if timeline.position.chain:
            lines[0] = f"After event {event - 1} of {timeline.total}: {format_event(last, last.regions)}"
        if event < timeline.total:
            following = reader.event(domain, event)
            lines.append(f"Next: {format_event(following, following.regions)}")
        lines.append(f"Thread {timeline.process.tid}")
        return "\n".join(lines) + "\n"

    def _jump(self, move: Callable[[], None]) -> None:
        """Go elsewhere, and remember where one was."""
        timeline = self._server.timeline
        self._server._unspoil()
        before = timeline.here()
        try:
            move()
        except BaseException:
            before.close()
            raise
        self._back.append(before)
        self._drop(self._forward)
        self._server._tid = timeline.process.tid

    def _go(self, source: list[Checkpoint], other: list[Checkpoint]) -> str:
        timeline = self._server.timeline
        if not source:
            return "There is no such place: nobody has jumped.\n"
        self._server._unspoil()
        target = source.pop()
        other.append(timeline.here())
        timeline.restart(target)
        target.close()
        self._server._tid = timeline.process.tid
        return self._when()

    @staticmethod
    def _drop(places: list[Checkpoint]) -> None:
        for one in places:
            one.close()
        places.clear()

    def close(self) -> None:
        """Give up all places that are kept here."""
        self._drop(self._back)
        self._drop(self._forward)

    def _python(self, tid: int, with_locals: bool) -> str:
        process = self._server.process
        interpreter = Interpreter.find(process, process.mappings())
        if interpreter is None:
            return "This process has no Python interpreter that can be read (CPython 3.11 to 3.14).\n"
        frames = interpreter.stack(tid)
        if not frames:
            return f"Thread {tid} runs no Python code.\n"
        lines = []
        for index, one in enumerate(frames):
            lines.append(f"#{index:<3} {one.function} at {one.file}:{one.line or '?'}")
            if with_locals:
                values = locals_of(process, interpreter.layout, one)
                lines += [f"        {name} = {value}" for name, value in values.items()]
        return "\n".join(lines) + "\n"

    def thread_text(self, tid: int) -> str:
        """What gdb shows beside a thread: its name, or that of the process."""
        timeline = self._server.timeline
        info = timeline.reader.domains[timeline.domain]
        name = self._name_given(tid) or info.comm or os.path.basename(self.executable())
        return "".join(mark for mark in name if mark.isprintable() and mark not in "<>&\"'") or "?"

    def _name_given(self, tid: int) -> str:
        """The name a thread has given itself up to here, "" if none."""
        timeline = self._server.timeline
        if self._names is None:
            self._names = {}
            for chunk in timeline.reader.chunks(timeline.domain):
                events = chunk.events
                named = (events["nr"] == _PRCTL) & (events["args"][:, 0] == _PR_SET_NAME)
                for row in np.flatnonzero(named & (events["kind"] == Kind.SYSCALL)):
                    event = chunk.view(int(row))
                    text = next((one.data for one in event.regions if one.kind == RegionKind.IN), b"")
                    name = text.split(b"\0")[0].decode(errors="replace")
                    self._names.setdefault(event.task, []).append((event.number, name))
        given = [name for number, name in self._names.get(tid, []) if number < timeline.position.event]
        return given[-1] if given else ""

    def executable(self) -> str:
        """The path of the recorded program."""
        if self._executable is None:
            timeline = self._server.timeline
            self._executable = image_of(timeline.reader, timeline.reader.domains[timeline.domain]).exe
        return self._executable
