"""Learnt patterns: the ends of stacks that blocked, in one SQLite file that can be merged with others.

A pattern is the kind of resource and the functions from the call that blocks out to the application's frame
(at most six): what a static search looks for in code that did not run. Nothing of the application itself,
and no path, is in the store unless `blamed` is asked for: patterns can be given away.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hangscan.blame import is_library
from hangscan.errors import KnowledgeError
from hangscan.model import KINDS, Candidate
from replayer.backtrace import StackFrame

VERSION = 1
_SUFFIX = 6
_SCHEMA = """
create table if not exists pattern (
  identity text primary key, kind text not null, operation text not null, suffix text not null,
  fix text not null, worst_ms real not null, source text not null
);
create table if not exists seen (identity text not null, trace text not null, primary key (identity, trace));
"""


@dataclass(frozen=True, slots=True)
class Learnt:
    """One pattern. `suffix` are functions from the innermost out; `traces` are hashes of the names of the
    traces it was seen in; `worst_ms` is the longest that was observed."""

    kind: str
    operation: str
    suffix: tuple[str, ...]
    fix: str
    worst_ms: float
    source: str = "learnt"
    traces: tuple[str, ...] = ()

    @property
    def seen(self) -> int:
        """In how many traces it was seen."""
        return len(self.traces)

    @property
    def identity(self) -> str:
        """What makes two patterns one."""
        return identity(self.kind, self.suffix)


def identity(kind: str, suffix: Sequence[str]) -> str:
    """A short hash of kind and functions."""
    return hashlib.sha256("\0".join([kind, *suffix]).encode()).hexdigest()[:16]


def suffix_of(stack: Sequence[StackFrame], blamed: int) -> tuple[str, ...]:
    """The library functions that a stack ends in, innermost first; empty for one of the application alone."""
    own = stack[:blamed] if blamed > 0 else ()
    names = [frame.function for frame in own if is_library(frame) and "+0x" not in frame.function]
    return tuple(names[-_SUFFIX:])


def default_path() -> Path:
    """The user's own store."""
    import platformdirs

    return Path(platformdirs.user_data_dir("rr-py")) / "patterns.sqlite"


class PatternStore:
    """An open store. Use as a context manager, or call `close`."""

    def __init__(self, path: Path, create: bool = True) -> None:
        """Open, or with `create` make, a store; KnowledgeError for what is none."""
        self.path = path
        if not create and not path.exists():
            raise KnowledgeError(f"{path}: there is no pattern store", "`rr-py scan --learn` makes one.")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path)
        except (OSError, sqlite3.Error) as error:
            raise KnowledgeError(f"{path}: {error}", "Name a file that can be written.") from None
        try:
            self._open()
        except sqlite3.Error as error:
            self._db.close()
            raise KnowledgeError(f"{path} is no pattern store: {error}", "Name another file.") from None
        except KnowledgeError:
            self._db.close()
            raise

    def _open(self) -> None:
        version = int(self._db.execute("pragma user_version").fetchone()[0])
        tables = self._db.execute("select count(*) from sqlite_master").fetchone()[0]
        if version not in (0, VERSION) or (version == 0 and tables):
            raise KnowledgeError(
                f"{self.path} is no pattern store of version {VERSION} (it has version {version})",
                "Name another file.",
            )
        self._db.executescript(_SCHEMA)
        self._db.execute(f"pragma user_version = {VERSION}")
        self._db.commit()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def learn(self, candidates: Iterable[Candidate], trace: str) -> tuple[int, int]:
        """Add what blocked; how many patterns were new, and how many known ones were seen again.

        A trace counts once for a pattern, however often it is scanned.
        """
        added = known = 0
        mark = hashlib.sha256(os.path.abspath(trace).encode()).hexdigest()[:16]
        for one in candidates:
            suffix = suffix_of(one.stack, one.blamed)
            if not suffix:
                continue
            if self._put(
                Learnt(one.resource.kind, one.operation, suffix, one.fix, one.observed_max_ms, traces=(mark,))
            ):
                added += 1
            else:
                known += 1
        self._db.commit()
        return added, known

    def _put(self, one: Learnt) -> bool:
        """Add a pattern, or what is new about a known one; whether it was new."""
        name = one.identity
        row = (name, one.kind, one.operation, json.dumps(one.suffix), one.fix, one.worst_ms, one.source)
        new = self._db.execute("insert or ignore into pattern values (?, ?, ?, ?, ?, ?, ?)", row).rowcount
        if not new:
            self._db.execute(
                "update pattern set worst_ms = max(worst_ms, ?) where identity = ?", (one.worst_ms, name)
            )
        marks = [(name, mark) for mark in one.traces]
        self._db.executemany("insert or ignore into seen values (?, ?)", marks)
        return bool(new)

    def all(self) -> list[Learnt]:
        """All patterns, the most seen first."""
        marks: dict[str, list[str]] = {}
        for name, mark in self._db.execute("select identity, trace from seen order by trace"):
            marks.setdefault(name, []).append(mark)
        rows = self._db.execute(
            "select identity, kind, operation, suffix, fix, worst_ms, source from pattern"
        )
        found = [
            Learnt(kind, operation, tuple(json.loads(suffix)), fix, worst, source, tuple(marks.get(name, ())))
            for name, kind, operation, suffix, fix, worst, source in rows
        ]
        return sorted(found, key=lambda one: (-one.seen, -one.worst_ms, one.identity))

    def merge(self, other: Path) -> int:
        """Take in another store (or an export); how many patterns were new. Doing so twice adds nothing."""
        added = sum(self._put(one) for one in read(other))
        self._db.commit()
        return added

    def export(self) -> str:
        """All patterns as the text of one JSON object, for another machine's `merge`."""
        return json.dumps({"version": VERSION, "patterns": [_document(one) for one in self.all()]}, indent=2)


def read(path: Path) -> list[Learnt]:
    """Patterns of a store or of an export; KnowledgeError for anything else."""
    try:
        with path.open("rb") as file:
            sqlite = file.read(16) == b"SQLite format 3\0"
    except OSError as error:
        raise KnowledgeError(f"{path}: {error.strerror}", "Name a store or an export.") from None
    if sqlite:
        with closing(PatternStore(path, create=False)) as store:
            return store.all()
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return list(_learnt(document))
    except (ValueError, KeyError, TypeError) as error:
        raise KnowledgeError(
            f"{path} is no export of patterns: {error}", "Name a store or an export."
        ) from None


def _document(one: Learnt) -> dict[str, Any]:
    return {
        "kind": one.kind, "operation": one.operation, "suffix": list(one.suffix), "fix": one.fix,
        "worst_ms": one.worst_ms, "source": one.source, "traces": list(one.traces),
    }  # fmt: skip


def _learnt(document: Any) -> Iterator[Learnt]:
    if document["version"] != VERSION:
        raise ValueError(f"version {document['version']}, not {VERSION}")
    for entry in document["patterns"]:
        if entry["kind"] not in KINDS or not all(isinstance(name, str) for name in entry["suffix"]):
            raise ValueError(f"pattern {entry!r}"[:200])
        yield Learnt(
            entry["kind"], str(entry["operation"]), tuple(entry["suffix"]), str(entry["fix"]),
            float(entry["worst_ms"]), str(entry["source"]), tuple(map(str, entry["traces"])),
        )  # fmt: skip
