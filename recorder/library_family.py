"""Programs that a program recorded at library interfaces becomes or starts: each is entered and goes on in
the log.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress

from interfaces.abi import EVENT_DTYPE, Kind, RegionKind, iter_regions
from interfaces.arrays import numpy
from interfaces.errors import RrPyError
from interfaces.libspec.model import Function
from interposer.library.engine import Engine
from interposer.library.image import Image
from recorder.library_files import mapped
from tracefile import DomainEnd, DomainStart

_FIRST = 1


class Family:
    """The other programs of a recording.

    `domains` are those entered since the last look; `files` what they run from. `unrecorded` are those that
    could not be: path, reason. How the others ended is seen in the log: in their last call, or in what who
    waited for them was told.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.domains: list[DomainStart] = []
        self.unrecorded: list[tuple[str, str]] = []
        self.files: set[str] = set()
        self.entered = 0
        self._entering: dict[int, threading.Thread] = {}
        self._latest = {engine.pid: _FIRST}
        self._parts: list[tuple[int, int, int]] = []
        self._exits: dict[int, int] = {}
        self._signals: dict[int, int] = {}
        functions = engine.plan.functions().items()
        self._calls = {
            special: [n for n, f in functions if isinstance(f, Function) and f.special == special]
            for special in ("end", "wait")
        }

    def see(self, events: bytes, payload: bytes) -> None:
        """Look at what was logged for processes that ended."""
        if not self.engine.control.multi:
            return
        np = numpy()
        rows = np.frombuffer(events, dtype=EVENT_DTYPE)
        rows = rows[np.isin(rows["nr"], [*self._calls["end"], *self._calls["wait"]])]
        for event in rows[rows["kind"] == Kind.LIBCALL]:
            if event["nr"] in self._calls["end"]:
                self._exits[int(event["task"])] = int(event["args"][0]) & 0xFF
            elif event["result"] > 0:
                at = int(event["payload_off"])
                for region in iter_regions(payload[at : at + int(event["payload_len"])]):
                    if region.kind == RegionKind.OUT and len(region.data) == 4:
                        status = int.from_bytes(region.data, "little")
                        if os.WIFSIGNALED(status):
                            self._signals[int(event["result"])] = os.WTERMSIG(status)
                        break

    def ends(self) -> list[DomainEnd]:
        """How each of the programs ended, as far as the log tells."""
        last = {pid: number for pid, _, number in self._parts}
        found = []
        for pid, task, number in self._parts:
            if last[pid] != number:
                end = ("execed", 0)
            elif task in self._exits:
                end = ("exited", self._exits[task])
            elif pid in self._signals:
                end = ("signaled", self._signals[pid])
            else:
                continue
            found.append(DomainEnd(number, pid, *end, time=time.monotonic_ns()))
        return found

    def step(self) -> bool:
        """Take in what has happened; True while a program is being entered."""
        for message in self.engine.news():
            pid = int(message["pid"])
            if message["is"] == "image":
                self.entered += 1
                number = _FIRST + self.entered
                thread = threading.Thread(
                    target=self._enter,
                    args=[pid, int(message["task"]), number, self._latest.get(pid, _FIRST)],
                    daemon=True,
                )
                self._latest[pid] = number
                self._entering[pid] = thread
                thread.start()
            elif message["is"] == "unrecorded":
                self._lost(pid, message["path"], message["why"])
        for pid, thread in [*self._entering.items()]:
            if not thread.is_alive():
                del self._entering[pid]
        return bool(self._entering)

    def _enter(self, pid: int, task: int, number: int, before: int) -> None:
        """In a thread of its own: Frida takes a while."""
        path = _link(pid, "exe")
        try:
            start = DomainStart(
                domain=number,
                kind="exec",
                pid=pid,
                parent_domain=before,
                ppid=_parent(pid),
                time=time.monotonic_ns(),
                comm=_read(pid, "comm").decode(errors="surrogateescape").strip(),
                exe=path,
                cwd=_link(pid, "cwd"),
                argv=_words(_read(pid, "cmdline")),
                envp=_words(_read(pid, "environ")),
            )
            self.domains.append(start)
            self.engine.enter(pid, Image.of_process(pid, task, number))
            self._parts.append((pid, task, number))
            self.files.update(mapped(pid))
        except Exception as why:
            self._lost(
                pid, path, why.message if isinstance(why, RrPyError) else f"it cannot be entered ({why})"
            )
        finally:
            self.engine.go(pid)

    def _lost(self, pid: int, path: str, why: str) -> None:
        self.engine.forget(pid)
        self.unrecorded.append((path, why))


def _read(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()


def _words(data: bytes) -> list[str]:
    return [os.fsdecode(word) for word in data.split(b"\0")[:-1]]


def _link(pid: int, name: str) -> str:
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/{name}")
    return ""


def _parent(pid: int) -> int:
    return int(_read(pid, "stat").rpartition(b") ")[2].split()[1])


def told(unrecorded: list[tuple[str, str]]) -> list[str]:
    """What to say of programs that were not recorded, one line a program and reason."""
    counts: dict[tuple[str, str], int] = {}
    for item in unrecorded:
        counts[item] = counts.get(item, 0) + 1
    return [
        f"{path or 'a program'} ran unrecorded{f' ({count} times)' if count > 1 else ''}: {why}; "
        "its output is not in the replay"
        for (path, why), count in counts.items()
    ]
