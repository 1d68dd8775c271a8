"""Programs that a program recorded at library interfaces becomes or starts: each is entered and goes on in
the log.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress

from interfaces.errors import RrPyError
from interposer.library.engine import Engine
from interposer.library.image import Image
from tracefile import DomainStart

_FIRST = 1


class Family:
    """The other programs of a recording.

    `domains` are those entered since the last look. `unrecorded` are those that could not be: path, reason.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.domains: list[DomainStart] = []
        self.unrecorded: list[tuple[str, str]] = []
        self.entered = 0
        self._entering: dict[int, threading.Thread] = {}

    def step(self) -> bool:
        """Take in what has happened; True while a program is being entered."""
        for message in self.engine.news():
            pid = int(message["pid"])
            if message["is"] == "image":
                self.entered += 1
                number = _FIRST + self.entered
                thread = threading.Thread(
                    target=self._enter, args=[pid, int(message["task"]), number], daemon=True
                )
                self._entering[pid] = thread
                thread.start()
            elif message["is"] == "unrecorded":
                self._lost(pid, message["path"], message["why"])
        for pid, thread in [*self._entering.items()]:
            if not thread.is_alive():
                del self._entering[pid]
        return bool(self._entering)

    def _enter(self, pid: int, task: int, number: int) -> None:
        """In a thread of its own: Frida takes a while."""
        path = _link(pid, "exe")
        try:
            start = DomainStart(
                domain=number,
                kind="exec",
                pid=pid,
                parent_domain=_FIRST,
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
        except (OSError, RrPyError) as why:
            self._lost(pid, path, why.message if isinstance(why, RrPyError) else str(why))
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
