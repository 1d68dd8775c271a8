"""Frida inside one process: it only compiles and places stubs, no JavaScript runs when the program calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from importlib.resources import files
from threading import Thread
from typing import Any

from interposer.library.errors import EngineError

_ANSWER_SECONDS = 3


class Seat:
    """The script in a process that waits at its entry point, or runs."""

    def __init__(self, pid: int, spare: Sequence[int], tell: Callable[[str], None]) -> None:
        """Begin to enter. `spare` are descriptors for the script to close; `tell` hears of its errors."""
        self.pid = pid
        self.spare = [*spare]
        self._tell = tell
        self._entering: Future[tuple[Any, Any]] = Future()
        self._session: Any = None
        self._script: Any = None
        self.placed = False
        Thread(target=self._enter, daemon=True).start()

    def place(self, message: Mapping[str, Any], *, leave: bool) -> None:
        """Put the stubs in their places; with `leave` the script is then on its own. Raises EngineError."""
        self._session, self._script = self._entered()
        import frida

        try:
            self._script.exports_sync.start(
                {
                    **message,
                    "spare": self.spare,
                    "foreign": _frida_ranges(self.pid, begun=not message["starting"]),
                    "others": _others(self.pid) if message["starting"] else [],
                }
            )
        except frida.core.RPCException as why:
            raise EngineError(f"the stubs cannot be made: {why.args[0]}", "See docs/interfaces.md.") from None
        except frida.InvalidOperationError:
            text = f"process {self.pid} ended while stubs were put into it"
            raise EngineError(text, "Try again.") from None
        self.placed = True
        if leave:
            with suppress(frida.InvalidOperationError):
                self._script.eternalize()
                self._session.detach()

    def stack(self, tid: int) -> list[tuple[str, int]]:
        """Return addresses of a thread: a module's path, an offset in it. None where it cannot be told."""
        found: Future[list[tuple[str, int]]] = Future()

        def ask() -> None:
            with suppress(Exception):
                found.set_result([(str(a), int(b)) for a, b in self._script.exports_sync.stack(tid)])

        Thread(target=ask, daemon=True).start()
        try:
            return found.result(_ANSWER_SECONDS)
        except TimeoutError:
            return []

    def modules(self) -> list[tuple[int, int, str]]:
        try:
            return [(int(base, 16), size, path) for base, size, path in self._script.exports_sync.modules()]
        except Exception:
            return []

    def detach(self) -> None:
        """Leave the process; what is placed there stays."""
        with suppress(Exception):
            self._session.detach()

    def _enter(self) -> None:
        """Import Frida, which takes a while, and load the script; in a thread, while interfaces are read."""
        try:
            import frida

            session = frida.get_local_device().attach(self.pid)
            agent = (files("interposer.library") / "agent.js").read_text(encoding="utf-8")
            script = session.create_script(agent)
            script.on("message", self._message)
            script.load()
            self._entering.set_result((session, script))
        except BaseException as why:
            self._entering.set_exception(why)

    def _entered(self) -> tuple[Any, Any]:
        """What `_enter` came to. Raises EngineError."""
        why = self._entering.exception()
        if why is None:
            return self._entering.result()
        import frida

        known = (
            frida.ProcessNotFoundError,
            frida.PermissionDeniedError,
            frida.ProcessNotRespondingError,
            frida.TransportError,
            frida.NotSupportedError,
            frida.InvalidOperationError,
        )
        if isinstance(why, known):
            text = f"Frida cannot enter process {self.pid}: {why}"
            raise EngineError(text, "Check the number, and that the process is yours.") from None
        raise why

    def _message(self, message: Mapping[str, Any], data: object) -> None:
        self._tell(str(message.get("description", message)))


def _others(pid: int) -> list[int]:
    """Threads of a program that has not begun: Frida's, which are to take no signal that is the program's."""
    return [int(name) for name in os.listdir(f"/proc/{pid}/task") if int(name) != pid]


def _frida_ranges(pid: int, *, begun: bool) -> list[tuple[str, int]]:
    """Where Frida's own code lies in a process: address (as text, for JavaScript) and size.

    In one that has not `begun` that is also what is executable and of no file.
    """
    found = []
    with suppress(OSError), open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        for line in file:
            place, permissions, _, _, _, *path = line.split()
            if "x" in permissions and ("frida" in line or not (path or begun)):
                start, end = (int(word, 16) for word in place.split("-"))
                found.append((hex(start), end - start))
    return found
