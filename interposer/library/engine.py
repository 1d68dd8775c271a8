"""Starting a program under Frida with the stubs of library interfaces in it.

Frida's script only compiles and places stubs; no JavaScript runs when the program calls the library.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import signal
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

from interfaces.errors import ExitStatus, RrPyError
from interfaces.libspec.errors import MissingPackageError
from interfaces.libspec.model import Callback, Function, Interface
from interposer import elf
from interposer.library import generate
from interposer.library.spawn import Keeper, spawn

CONTROL_SIZE = 0x10000
SLOTS = 8
SLOT_SIZE = 0x100000
RECORD, REPLAY, WATCH = 1, 3, 4
_ANSWER_SECONDS = 3
SOURCES = ("runtime.c", "callbacks.c", "streams.c", "signals.c")
_EXPORT = re.compile(r"^extern [^;(]*?\b(rr_\w+)\(", re.MULTILINE)


class EngineError(RrPyError):
    """A program could not be started or changed."""


class Control(ctypes.LittleEndianStructure):
    """struct rr_ctl of runtime.c."""

    _fields_ = [
        *[
            (name, ctypes.c_uint32)
            for name in ("task", "mode", "tool_pid", "pid", "lock", "slot", "sealed", "turn")
        ],
        *[(name, ctypes.c_uint64) for name in ("events", "sequence", "cursor", "end", "event_no", "calls")],
        *[(name, ctypes.c_uint32) for name in ("threads", "multi", "diverged", "stopped")],
        *[(name, ctypes.c_uint32) for name in ("div_task", "div_nr", "div_arg", "div_flags")],
        *[(name, ctypes.c_uint64) for name in ("div_ip", "div_found", "div_expected", "div_offset")],
        ("div_args", ctypes.c_uint64 * 6),
        *[(name, ctypes.c_uint32) for name in ("div_len", "full", "waiting", "unseen")],
        ("div_data", ctypes.c_uint8 * 1024),
        *[(name, ctypes.c_uint32) for name in ("execs", "broken")],
        ("kids", ctypes.c_uint32 * 64),
        *[
            (name, ctypes.c_uint64)
            for name in ("lives", "lives_done", "schedule", "nschedule", "most_lives", "most_done")
        ],
        *[(name, ctypes.c_uint32) for name in ("ends_by", "inexact", "lost", "pad2")],
    ]


@dataclass(slots=True)
class Plan:
    """What to put into a program: the interfaces with their numbers, and the mode.

    Calls made beneath a function of the interfaces that are `nested` (names) are logged, too, between its
    ENTER event and its own: for profiles, not for replay.
    """

    interfaces: Sequence[Interface]
    mode: int
    nested: frozenset[str] = frozenset()
    numbered: list[generate.Numbered] = field(init=False)

    def __post_init__(self) -> None:
        self.numbered = generate.number(self.interfaces)

    def names(self) -> dict[int, tuple[str, str, bool]]:
        """Number -> interface, function or callback, is it a callback."""
        found = {}
        for item in self.numbered:
            for name, number in item.functions.items():
                found[number] = (item.interface.name, name, False)
            for name, number in item.callbacks.items():
                found[number] = (item.interface.name, name, True)
        return found

    def functions(self) -> dict[int, Function | Callback]:
        """Number -> function or callback."""
        found: dict[int, Function | Callback] = {}
        for item in self.numbered:
            found.update((number, item.interface.functions[name]) for name, number in item.functions.items())
            found.update((number, item.interface.callbacks[name]) for name, number in item.callbacks.items())
        return found

    def parameter(self, number: int, index: int) -> str:
        """The name of a parameter of a numbered function."""
        found = self.functions().get(number)
        return (
            found.parameters[index].name
            if found is not None and index < len(found.parameters)
            else str(index)
        )

    def message(self) -> dict[str, Any]:
        folder = files("interposer.library")
        header = (folder / "runtime.h").read_text(encoding="ascii")
        texts = [(folder / name).read_text(encoding="ascii") for name in SOURCES]
        return {
            "runtime": header + "\n".join(texts),
            "runtime_exports": [*_EXPORT.findall(header)],
            "interfaces": [
                {
                    "name": item.interface.name,
                    "libraries": list(item.interface.libraries),
                    "source": generate.source(item, header, nested=item.interface.name in self.nested),
                    "callbacks": item.callbacks,
                    "symbols": {c.name: c.symbol for c in item.interface.callbacks.values() if c.symbol},
                    "functions": [
                        {
                            "name": f.name,
                            "index": i,
                            "variadic": f.variadic,
                            "optional": f.optional,
                            "symbol": f.symbol,
                            "anywhere": f.special == "exec",
                        }
                        for i, f in enumerate(item.interface.functions.values())
                    ],
                }
                for item in self.numbered
            ],
        }


class Engine:
    """One program with stubs in it, and the file it shares with this process.

    The file has a control page and, behind it, an area: the ring of a recording, or the log of a replay.
    """

    def __init__(self, mode: int, area: int) -> None:
        if find_spec("frida") is None:
            raise MissingPackageError("frida")
        self.plan = Plan([], mode)
        self.area_size = area
        folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) and mode != REPLAY else None
        self._fd, self.path = tempfile.mkstemp(prefix="rr-py-library-", dir=folder)
        os.ftruncate(self._fd, CONTROL_SIZE + area)
        self.memory = mmap.mmap(self._fd, CONTROL_SIZE + area)
        self.control = Control.from_buffer(self.memory)
        self.loaded: dict[str, dict[str, Any]] = {}
        self.errors: list[str] = []
        self.seen_modules: list[tuple[int, int, str]] = []
        self.pid = 0
        self._news, self._news_path = tempfile.mkstemp(prefix="rr-py-library-news-", dir=folder)
        self._news_rest = b""
        self._session: Any = None
        self._keeper: Keeper | None = None
        self._entering: Future[tuple[Any, Any]] | None = None
        self._script: Any = None

    def fill_area(self, pieces: Iterable[bytes]) -> int:
        """Write the log that a replay reads behind the control page; returns its size."""
        at = CONTROL_SIZE
        for piece in pieces:
            view = memoryview(piece)
            while view:
                written = os.pwrite(self._fd, view, at)
                view, at = view[written:], at + written
        self.area_size = (at - CONTROL_SIZE + 8192) & ~4095
        os.ftruncate(self._fd, CONTROL_SIZE + self.area_size)
        return at - CONTROL_SIZE

    def read_area(self, offset: int, size: int) -> bytes:
        """Bytes of the log, as it was filled in."""
        return os.pread(self._fd, max(0, min(size, self.control.end - offset)), CONTROL_SIZE + offset)

    def wait_for_change(self, seconds: float) -> None:
        """Wait until the program says that it diverged, or for a moment."""
        address = ctypes.addressof(self.control) + Control.diverged.offset
        limit = (ctypes.c_long * 2)(0, int(seconds * 1e9))
        ctypes.CDLL(None).syscall(202, ctypes.c_void_p(address), 0, 0, limit)

    def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> int:
        """Start the program, waiting, and let Frida enter it meanwhile. Returns its process id.

        `place` must follow, or `kill`.
        """
        find_program(argv[0], env, cwd)
        self._keeper = spawn(argv, env, cwd)
        self.pid = self._keeper.pid
        self._entering = Future()
        Thread(target=self._enter, args=[self._entering], daemon=True).start()
        return self.pid

    def attach(self, pid: int) -> None:
        """Let Frida enter a running program; `place` must follow."""
        self.pid = pid
        self._entering = Future()
        self._enter(self._entering)

    def place(self, plan: Plan) -> None:
        """Put the stubs of a plan in their places."""
        self.plan = plan
        control = self.control
        control.mode, control.tool_pid, control.pid = plan.mode, os.getpid(), self.pid
        control.task = control.task or self.pid
        try:
            self._place()
        except BaseException:
            if self._keeper is not None:
                self.kill()
            raise

    def resume(self) -> None:
        """Let a started program run."""
        if self._keeper is not None:
            self._keeper.go()

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
        """Take the stubs out of a process that goes on; their code stays for threads still in it."""
        with suppress(Exception):
            self._script.exports_sync.stop()
        with suppress(Exception):
            self._script.eternalize()
        with suppress(Exception):
            self._session.detach()

    def kill(self) -> None:
        for pid in [self.pid, *(self.children() if self.plan.mode == REPLAY else [])]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def poll(self) -> int | None:
        """The wait status of the started program once it has ended, None before."""
        return self._keeper.poll() if self._keeper is not None else None

    def children(self) -> list[int]:
        """Recorded or replaying processes that the program made and that live."""
        return [pid for pid in self.control.kids if pid and _lives(pid)]

    def close(self) -> None:
        if self._keeper is not None:
            self._keeper.close()
        for path in (self.path, self._news_path):
            with suppress(OSError):
                os.unlink(path)
        del self.control
        with suppress(BufferError):
            self.memory.close()
        os.close(self._fd)
        os.close(self._news)

    def _enter(self, entered: Future[tuple[Any, Any]]) -> None:
        """Import Frida, which takes a while, and load the script; in a thread, while interfaces are read."""
        try:
            import frida

            session = frida.get_local_device().attach(self.pid)
            agent = (files("interposer.library") / "agent.js").read_text(encoding="utf-8")
            script = session.create_script(agent)
            script.on("message", self._message)
            script.load()
            entered.set_result((session, script))
        except BaseException as why:
            entered.set_exception(why)

    def _place(self) -> None:
        message = self.plan.message()
        message.update(
            path=self.path,
            control=CONTROL_SIZE,
            area=self.area_size,
            replaying=self.plan.mode == REPLAY,
            news=self._news_path,
            spare=[*self._keeper.spare] if self._keeper is not None else [],
        )
        self._session, self._script = self._entered()
        message["foreign"] = _frida_ranges(self.pid)
        message["others"] = _others(self.pid) if self.plan.mode != WATCH else []
        import frida

        try:
            self._script.exports_sync.start(message)
        except frida.core.RPCException as why:
            raise EngineError(f"the stubs cannot be made: {why.args[0]}", "See docs/interfaces.md.") from None
        except frida.InvalidOperationError:
            text = f"process {self.pid} ended while stubs were put into it"
            raise EngineError(text, "Try again.") from None
        for path in (self.path, self._news_path):
            with suppress(OSError):
                os.unlink(path)
        if self.plan.mode == RECORD:
            self._script.eternalize()
            self._session.detach()

    def _entered(self) -> tuple[Any, Any]:
        """What `_enter` came to. Raises EngineError."""
        assert self._entering is not None
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
        self.errors.append(str(message.get("description", message)))

    def read_news(self) -> None:
        """Take in what the script has written: modules that were loaded, functions that were found."""
        self._news_rest += os.read(self._news, 1 << 24)
        *lines, self._news_rest = self._news_rest.split(b"\n")
        for line in lines:
            news = json.loads(line)
            if news["type"] == "module":
                self.seen_modules.append((int(news["base"], 16), int(news["size"]), str(news["path"])))
            else:
                self.loaded[news["name"]] = news


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(") ")[2][:1] not in ("Z", "X")
    except OSError:
        return False


def _others(pid: int) -> list[int]:
    """Threads of a program that has not begun: Frida's, which are to take no signal that is the program's."""
    return [int(name) for name in os.listdir(f"/proc/{pid}/task") if int(name) != pid]


def _frida_ranges(pid: int) -> list[tuple[str, int]]:
    """Where Frida's own code lies in a process: address (as text, for JavaScript) and size."""
    found = []
    with suppress(OSError), open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        for line in file:
            if "frida" in line and "r-xp" in line:
                start, end = (int(word, 16) for word in line.split()[0].split("-"))
                found.append((hex(start), end - start))
    return found


def find_program(name: str, env: Mapping[str, str], cwd: str | None) -> str:
    """The path of a program as execvp finds it; EngineError for one that Frida cannot work in."""
    from interposer.launch import Command

    for candidate in Command((name,), env, cwd).candidates():
        path = os.path.join(cwd or "", candidate)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            _check_dynamic(name, path)
            return os.path.abspath(path)
    raise EngineError(f"{name}: not found", "Check the name and PATH.", ExitStatus.NOT_FOUND)


def _check_dynamic(name: str, path: str) -> None:
    with open(path, "rb") as file:
        head = file.read(2)
    if head == b"#!":
        return
    try:
        interpreter = elf.parse(Path(path).read_bytes()[:65536]).interpreter()
    except elf.ElfError as why:
        raise EngineError(f"{name}: no program for this machine: {why}", "", ExitStatus.CANNOT_RUN) from None
    if not interpreter:
        raise EngineError(
            f"{name} is linked statically: it has no library whose functions could be replaced",
            "Record it at the system-call interface: leave out --interface.",
            ExitStatus.CANNOT_RUN,
        )
