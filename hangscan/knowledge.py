"""What is known beforehand: functions that block, what to call instead, and how event loops are recognised.

Read from the TOML files in knowledge/. Names are shell globs, matched against a frame's function (and its
source file, or without one its module, where `files` is given).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from hangscan.errors import KnowledgeError
from hangscan.model import KINDS
from replayer.backtrace import StackFrame

FOLDER = Path(__file__).with_name("knowledge")
_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A function that blocks its caller.

    `whole` makes all calls below it in one action one operation; `nested` says that it runs an event loop of
    its own meanwhile, which is no idle wait. `call` are names as Python code writes them, for static search.
    """

    functions: tuple[str, ...]
    toolkit: str
    kind: str
    operation: str
    fix: str
    files: tuple[str, ...] = ()
    fix_for: tuple[tuple[str, str], ...] = ()
    whole: bool = False
    nested: bool = False
    call: tuple[str, ...] = ()

    def advice(self, toolkit: str) -> str:
        """What to do instead in a program whose loop is of `toolkit`."""
        return dict(self.fix_for).get(toolkit, self.fix)


@dataclass(frozen=True, slots=True)
class LoopRule:
    """Functions that mean: this wait is the idle wait of a loop of `toolkit`."""

    functions: tuple[str, ...]
    toolkit: str
    files: tuple[str, ...] = ()
    pulled: str = ""
    """They return after an event, and the loop, which may call handlers, is their caller's: "always", or
    "directly", where an application calls them itself and not a library for a purpose of its own."""


class _Rule(Protocol):
    @property
    def functions(self) -> tuple[str, ...]: ...
    @property
    def files(self) -> tuple[str, ...]: ...


R = TypeVar("R", bound=_Rule)


@dataclass(slots=True)
class Matcher(Generic[R]):
    """Finds the first rule that a frame matches, quickly."""

    rules: Sequence[R]
    _exact: dict[str, list[tuple[int, R]]] = field(default_factory=dict)
    _globs: list[tuple[int, str, R]] = field(default_factory=list)
    _known: dict[tuple[str, str, str], R | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for order, rule in enumerate(self.rules):
            for name in rule.functions:
                if _WILD & set(name):
                    self._globs.append((order, name, rule))
                else:
                    self._exact.setdefault(name, []).append((order, rule))

    def match(self, frame: StackFrame) -> R | None:
        """The rule for a frame, or None."""
        key = (frame.function, frame.file, frame.module)
        if key not in self._known:
            self._known[key] = self._find(*key)
        return self._known[key]

    def _find(self, function: str, file: str, module: str) -> R | None:
        found = [
            (order, rule) for order, rule in self._exact.get(function, []) if _file_fits(rule, file, module)
        ]
        found += [
            (order, rule)
            for order, name, rule in self._globs
            if fnmatchcase(function, name) and _file_fits(rule, file, module)
        ]
        return min(found, key=lambda item: item[0])[1] if found else None


def _file_fits(rule: _Rule, file: str, module: str) -> bool:
    """Whether a frame's source file, or without one its module, is one that the rule speaks of."""
    return not rule.files or any(fnmatchcase(file or module, glob) for glob in rule.files)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """All rules."""

    patterns: Matcher[Pattern]
    loops: Matcher[LoopRule]


_PULLED = ("", "always", "directly")


@cache
def builtin() -> Knowledge:
    """What comes with the tool."""
    return read(sorted(FOLDER.glob("*.toml")))


def read(paths: Iterable[Path]) -> Knowledge:
    """Rules of several files; KnowledgeError names the file and the table that is wrong."""
    patterns: list[Pattern] = []
    loops: list[LoopRule] = []
    for path in paths:
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise KnowledgeError(f"{path}: {error}", "Repair or remove the file.") from None
        for number, table in enumerate(document.get("pattern", []), 1):
            patterns.append(_pattern(path, number, table))
        for number, table in enumerate(document.get("loop", []), 1):
            where = f"{path}: loop {number}"
            names = _texts(where, table, "functions")
            files = _texts(where, table, "files", True)
            pulled = str(table.get("pulled", ""))
            if pulled not in _PULLED:
                raise KnowledgeError(f"{where}: pulled is {pulled!r}", "Write always, or directly.")
            loops.append(LoopRule(names, str(table.get("toolkit", "")), files, pulled))
    return Knowledge(Matcher(patterns), Matcher(loops))


def _pattern(path: Path, number: int, table: Any) -> Pattern:
    where = f"{path}: pattern {number}"
    if not isinstance(table, dict) or table.get("kind") not in KINDS:
        raise KnowledgeError(f"{where}: kind is none of {', '.join(KINDS)}", "Repair or remove the file.")
    return Pattern(
        functions=_texts(where, table, "functions"),
        toolkit=str(table.get("toolkit", "")),
        kind=table["kind"],
        operation=str(table.get("operation", "")),
        fix=str(table.get("fix", "")),
        files=_texts(where, table, "files", True),
        fix_for=tuple((str(key), str(value)) for key, value in dict(table.get("fix_for", {})).items()),
        whole=bool(table.get("whole", False)),
        nested=bool(table.get("nested", False)),
        call=_texts(where, table, "call", True),
    )


def _texts(where: str, table: dict[str, Any], key: str, optional: bool = False) -> tuple[str, ...]:
    value = table.get(key, [] if optional else None)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise KnowledgeError(f"{where}: {key} is a list of texts", "Repair or remove the file.")
    return tuple(value)


DEFAULT_FIXES = {
    "file": "do it in a worker thread, or with the toolkit's asynchronous file functions",
    "fault": "read the file in a worker thread before it is needed",
    "lock": "never hold this lock during I/O; copy under the lock, or try it and come back",
    "thread": "let the other thread wake the event loop when it is done",
    "child": "start the program and let the event loop see its end (pidfd, SIGCHLD)",
    "sleep": "a timer of the event loop",
    "socket": "a non-blocking socket that the event loop watches",
    "dns": "resolve names in a worker thread or with an asynchronous resolver",
    "bus": "the asynchronous form of the call, with a callback",
    "display": "ask early and take the answer later, or keep what was asked once",
    "pipe": "a non-blocking pipe that the event loop watches",
    "terminal": "a non-blocking terminal that the event loop watches",
    "filelock": "LOCK_NB and a retry by timer, or a worker thread",
    "cpu": "compute in a worker thread or process, or in small steps between events",
}
_TOOLKIT_THREADS = {
    "asyncio": "await asyncio.to_thread(...)",
    "trio": "await trio.to_thread.run_sync(...)",
    "GLib": "a GTask (g_task_run_in_thread)",
    "Qt": "QtConcurrent::run with a QFutureWatcher",
    "Tk": "a thread, and root.after to look for its result",
    "libuv": "uv_queue_work",
}


def default_fix(kind: str, toolkit: str) -> str:
    """Advice where no pattern has any."""
    text = DEFAULT_FIXES.get(kind, "do it off this thread")
    if kind in ("file", "cpu", "dns", "socket", "fault") and toolkit in _TOOLKIT_THREADS:
        return f"{text}: {_TOOLKIT_THREADS[toolkit]}"
    return text
