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
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from interfaces.errors import ExitStatus
from interfaces.libspec.errors import MissingPackageError
from interfaces.libspec.model import Callback, Function, Interface
from interposer import elf
from interposer.library import generate
from interposer.library.control import CONTROL_SIZE, Control, wait
from interposer.library.errors import EngineError
from interposer.library.image import Image, buffer_kind
from interposer.library.keeper import Keeper
from interposer.library.seat import Seat
from interposer.library.spawn import is_dynamic

_LEAVING_SECONDS = 2.0
SLOTS = 8
SLOT_SIZE = 0x100000
RECORD, REPLAY, WATCH = 1, 3, 4
OPEN = ("libc", "pthread", "random")
"""Interfaces that leave out what works on the program's own memory: other functions are no omissions."""
SOURCES = ("runtime.c", "calls.c", "heap.c", "family.c", "callbacks.c", "streams.c", "signals.c", "traps.c")
_ANYWHERE = ("exec", "fork", "output", "end")
"""What is replaced whether the program imports it or not: the C library calls these functions itself."""
_EXPORT = re.compile(r"^extern [^;(]*?\b(rr_\w+)\(", re.MULTILINE)


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
            "divide": self.mode != WATCH and any(item.name == "libc" for item in self.interfaces),
            "instructions": self._instructions() if self.mode != WATCH else {},
            "through": [
                f.name for item in self.interfaces for f in item.functions.values() if f.special == "through"
            ],
            "interfaces": [
                {
                    "name": item.interface.name,
                    "libraries": list(item.interface.libraries),
                    "closed": item.interface.name not in OPEN,
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
                            "anywhere": f.special in _ANYWHERE,
                        }
                        for i, f in enumerate(item.interface.functions.values())
                        if f.special != "instruction"
                    ],
                }
                for item in self.numbered
            ],
        }

    def _instructions(self) -> dict[str, int]:
        """Name of each instruction of the interfaces -> its number as a function."""
        return {
            name: number
            for item in self.numbered
            for name, number in item.functions.items()
            if item.interface.functions[name].special == "instruction"
        }


class Engine:
    """A program with stubs in it, those it becomes or starts, and the file they all share with this process.

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
        self.undescribed: list[str] = []
        self.lacking: dict[str, list[str]] = {}
        self.seen_modules: list[tuple[int, int, str]] = []
        self.pid = 0
        self._news, self._news_path = tempfile.mkstemp(prefix="rr-py-library-news-", dir=folder)
        self._news_rest = b""
        self._keeper: Keeper | None = None
        self._status: int | None = None
        self._seats: dict[int, Seat] = {}
        self._message: dict[str, Any] = {}

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

    def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> int:
        """Start the program, waiting, and let Frida enter it meanwhile. Returns its process id.

        `place` must follow, or `kill`.
        """
        find_program(argv[0], env, cwd)
        self._keeper = Keeper(self.control)
        told = self._keeper.spawn(argv, env, cwd)
        self.pid = told["pid"]
        self._take_seat(self.pid, told["spare"])
        return self.pid

    def attach(self, pid: int) -> None:
        """Let Frida enter a running program; `place` must follow. Raises EngineError where it must not."""
        _check_running(pid)
        self.pid = pid
        with suppress(OSError):
            owner = os.stat(f"/proc/{pid}")
            for file in (self._fd, self._news):
                os.fchown(file, owner.st_uid, owner.st_gid)
        self._take_seat(pid, [])

    def place(self, plan: Plan, image: Image | None = None) -> None:
        """Put the stubs of a plan in their places in the first program."""
        self.plan = plan
        control = self.control
        control.mode, control.tool_pid, control.pid = plan.mode, os.getpid(), self.pid
        control.task = control.task or self.pid
        try:
            self._message = plan.message()
            self._message.update(control=CONTROL_SIZE, area=self.area_size, replaying=plan.mode == REPLAY)
            kind = buffer_kind() if plan.mode == RECORD else 0
            self._place(self.pid, image or Image(control.task, kind=kind))
        except BaseException:
            if self._keeper is not None:
                self.kill()
            raise
        for path in (self.path, self._news_path):
            with suppress(OSError):
                os.unlink(path)

    def spawn(self, argv: Sequence[str], env: Mapping[str, str], cwd: str, path: str, image: Image) -> int:
        """Start another program that plays a part of the recording, up to its entry point. Raises
        RrPyError.
        """
        assert self._keeper is not None
        told = self._keeper.spawn(argv, env, cwd if os.path.isdir(cwd) else None, path, image.descriptors())
        self._take_seat(told["pid"], told["spare"])
        return int(told["pid"])

    def enter(self, pid: int, image: Image) -> None:
        """Put the stubs into another program, which waits at its entry point. Raises EngineError."""
        if self.plan.mode == RECORD:
            self._take_seat(pid, [])
        self._place(pid, image)

    def go(self, pid: int) -> None:
        """Let a program run that waits at its entry point."""
        if self._keeper is not None:
            self._keeper.go(pid)

    def resume(self) -> None:
        """Let the first program run."""
        self.go(self.pid)

    def news(self) -> list[dict[str, Any]]:
        """What became of other programs: messages `image`, `unrecorded`, `ended` of the keeper."""
        found = []
        for message in self._keeper.news() if self._keeper is not None else []:
            if message["is"] == "ended" and message["pid"] == self.pid:
                self._status = int(message["status"])
            else:
                found.append(message)
        return found

    def stack(self, tid: int, pid: int = 0) -> list[tuple[str, int]]:
        """Return addresses of a thread: a module's path, an offset in it. None where it cannot be told."""
        seat = self._seats.get(pid or self.pid)
        return seat.stack(tid) if seat is not None else []

    def modules(self) -> list[tuple[int, int, str]]:
        seat = self._seats.get(self.pid)
        return seat.modules() if seat is not None else []

    def detach(self) -> None:
        """Take the stubs out of a process that goes on; their code stays for threads still in it."""
        self.control.stopped = 1
        if any(seat.placed for seat in self._seats.values()) and _lives(self.pid):
            wait(ctypes.addressof(self.control) + Control.left.offset, 0, _LEAVING_SECONDS)
        for seat in self._seats.values():
            seat.detach()

    def kill(self, others: Iterable[int] = ()) -> None:
        """End the first program, and in replay all that play with it."""
        for pid in [self.pid, *others, *(self.children() if self.plan.mode == REPLAY else [])]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @property
    def status(self) -> int | None:
        """The wait status of the first program once it has ended, None before; `news` learns of it."""
        return self._status

    def children(self) -> list[int]:
        """Recorded or replaying processes that the programs made and that live."""
        kids = self.control.kids
        for i, pid in enumerate(kids):
            if pid and not _lives(pid):
                kids[i] = 0
        return [pid for pid in kids if pid]

    def forget(self, pid: int) -> None:
        """A process is no longer recorded."""
        kids = self.control.kids
        for i, known in enumerate(kids):
            if known == pid:
                kids[i] = 0

    def close(self) -> None:
        if self._keeper is not None:
            if self._status is None:
                self.kill()
            self._keeper.close()
        for path in (self.path, self._news_path):
            with suppress(OSError):
                os.unlink(path)
        del self.control
        with suppress(BufferError):
            self.memory.close()
        os.close(self._fd)
        os.close(self._news)

    def _take_seat(self, pid: int, spare: Sequence[int]) -> None:
        self._seats[pid] = Seat(pid, spare, self._told)

    def _place(self, pid: int, image: Image) -> None:
        seat = self._seats[pid]
        mine = f"/proc/{os.getpid()}/fd"
        started = self._keeper is not None
        seat.place(
            {
                **self._message,
                "path": f"{mine}/{self._fd}" if started else self.path,
                "news": f"{mine}/{self._news}" if started else self._news_path,
                "starting": started,
                "watching": self.plan.mode == WATCH,
                "image": image.message(),
            },
            leave=self.plan.mode != REPLAY,
        )

    def _told(self, text: str) -> None:
        self.errors.append(text)

    def read_news(self) -> None:
        """Take in what the scripts have written: modules that were loaded, functions that were found."""
        self._news_rest += os.read(self._news, 1 << 24)
        *lines, self._news_rest = self._news_rest.split(b"\n")
        for line in lines:
            news = json.loads(line)
            if news["type"] == "lacks":
                self.lacking.setdefault(news["name"], []).extend(news["functions"])
            elif news["type"] == "undescribed":
                self.undescribed.append(str(news["path"]))
            elif news["type"] == "module":
                self.seen_modules.append((int(news["base"], 16), int(news["size"]), str(news["path"])))
            else:
                self.loaded[news["name"]] = news


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(") ")[2][:1] not in ("Z", "X")
    except OSError:
        return False


def _check_running(pid: int) -> None:
    """Raises EngineError for a process that Frida cannot enter, or would harm."""
    remedy = "Check the number, and that the process is yours."
    try:
        dynamic = is_dynamic(pid)
    except FileNotFoundError:
        raise EngineError(f"there is no process {pid}", remedy) from None
    except OSError as why:
        raise EngineError(f"process {pid} cannot be looked at: {why.strerror}", remedy) from None
    if not os.path.exists(f"/proc/{pid}/exe"):
        raise EngineError(f"process {pid} runs no program: it has ended, or is the kernel's own", remedy)
    if not dynamic:
        raise EngineError(
            f"the program of process {pid} is linked statically: it has no library whose functions could be "
            "watched",
            "Record it at the system-call interface: rr-py record.",
        )
    for kind, name in (("mnt", "file systems"), ("pid", "processes")):
        if _namespace(pid, kind) != _namespace(os.getpid(), kind):
            raise EngineError(
                f"process {pid} is in a container, with {name} of its own", "Run rr-py in there, too."
            )


def _namespace(pid: int, kind: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return ""


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
