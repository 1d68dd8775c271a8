"""Environment models: how long operations would take elsewhere. One TOML file each; users may add theirs.

A file has `name`, `title` and `[[figure]]` tables. The first figure that fits an operation gives its time:

    kinds, operations   globs that the operation's resource kind and name must match
    where               files: "user", "system" or "any"; sockets: "remote" or "any"
    first_only          only the first time the recording touches a path (later it is in the page cache)
    median_ms, tail_ms  what is usual, and what happens to the unlucky; per_mb_ms for each 10^6 bytes more
    factor              instead of or besides: times what was observed
    once                a wait that happens once in an action, however many calls are made
    source, note        where the figure is from, a public address; what it means

What no figure fits takes as long as it took when it was recorded.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from hangscan.errors import EnvironmentFileError
from hangscan.model import KINDS, Operation, Resource

FOLDER = Path(__file__).with_name("environments")
_WHERE = ("user", "system", "any", "remote")
_NUMBERS = ("median_ms", "tail_ms", "per_mb_ms", "factor")


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a model; see the module's text. Times in milliseconds."""

    kinds: tuple[str, ...]
    operations: tuple[str, ...]
    where: str
    source: str
    note: str = ""
    first_only: bool = False
    once: bool = False
    median_ms: float = 0.0
    tail_ms: float = 0.0
    per_mb_ms: float = 0.0
    factor: float | None = None

    def fits(self, operation: Operation) -> bool:
        """Whether this figure tells of the operation."""
        resource = operation.resource
        if resource.kind not in self.kinds or not _any(self.operations, operation.name):
            return False
        if self.where == "remote" and not resource.remote_peer:
            return False
        return not (self.where in ("user", "system") and resource.scope != self.where)


@dataclass(frozen=True, slots=True)
class Projected:
    """An operation's time under a model: usual, unlucky, and whether it counts once an action. ms."""

    median_ms: float
    tail_ms: float
    once: bool = False
    figure: Figure | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """One model."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    path: str = ""

    def project(self, operation: Operation) -> Projected:
        """How long an operation would take."""
        observed = operation.observed_ms
        for figure in self.figures:
            if not figure.fits(operation):
                continue
            base = observed * figure.factor if figure.factor is not None else 0.0
            if figure.first_only and not operation.first:
                return Projected(base, base, figure=figure)
            calls = 1 if figure.once else operation.calls
            usual = base + figure.median_ms * calls + figure.per_mb_ms * operation.size / 1e6
            return Projected(usual, usual + figure.tail_ms - figure.median_ms, figure.once, figure)
        if operation.resource.filesystem in ("tmpfs", "ramfs") and operation.resource.kind == "file":
            observed = 0.0
        return Projected(observed, observed)

    def slows(self, resource: Resource, name: str, first: bool) -> bool:
        """Whether a model says anything of such an operation, apart from what it took when recorded."""
        probe = Operation(0, 0, 0, name, resource, 0, 0, first=first)
        projected = self.project(probe)
        return projected.figure is not None and (projected.tail_ms > 0 or bool(projected.figure.factor))


@lru_cache(maxsize=4096)
def _any(globs: tuple[str, ...], name: str) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def available(folders: Sequence[Path] = ()) -> dict[str, Path]:
    """Names of models and their files; those of `folders` come before the ones that are built in."""
    found: dict[str, Path] = {}
    for folder in (*folders, FOLDER):
        if folder.is_dir():
            for path in sorted(folder.glob("*.toml")):
                found.setdefault(path.stem, path)
    return found


def load(names: Sequence[str], folders: Sequence[Path] = ()) -> list[Environment]:
    """Models by name or by path of a file; EnvironmentFileError for one that is not there or is wrong."""
    known = available(folders)
    found: dict[str, Environment] = {}
    for name in names:
        path = Path(name) if name.endswith(".toml") or "/" in name else known.get(name)
        if path is None:
            raise EnvironmentFileError(
                f"there is no environment {name!r}; there are {', '.join(sorted(known))}",
                "Name one of these, or the path of a TOML file.",
            )
        model = read(path)
        found[model.name] = model
    return list(found.values())


def read(path: Path) -> Environment:
    """One model from its file; EnvironmentFileError names what is wrong and where."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EnvironmentFileError(f"{path}: {error.strerror}", "Name a file that can be read.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EnvironmentFileError(f"{path}: {error}", "Write it as TOML; see docs/hang-scan.md.") from None
    name = document.get("name", path.stem)
    title = document.get("title", "")
    figures = document.get("figure", [])
    if not isinstance(name, str) or not isinstance(title, str) or not isinstance(figures, list):
        raise _wrong(path, "name and title are text, and figures are [[figure]] tables")
    if not figures:
        raise _wrong(path, "it has no [[figure]]")
    return Environment(
        name, title, tuple(_figure(path, number, table) for number, table in enumerate(figures, 1)), str(path)
    )


def _figure(path: Path, number: int, table: Any) -> Figure:
    where = f"figure {number}"
    if not isinstance(table, dict):
        raise _wrong(path, f"{where} is no table")
    unknown = table.keys() - set(Figure.__dataclass_fields__)
    if unknown:
        raise _wrong(path, f"{where} has {', '.join(sorted(unknown))}, which no figure has")
    kinds = _texts(path, where, table, "kinds")
    for kind in kinds:
        if kind not in KINDS:
            raise _wrong(path, f"{where}: kind {kind!r} is none of {', '.join(KINDS)}")
    if table.get("where", "any") not in _WHERE:
        raise _wrong(path, f"{where}: where is {table['where']!r}, not one of {', '.join(_WHERE)}")
    if not isinstance(table.get("source"), str) or not table["source"]:
        raise _wrong(path, f"{where} names no source")
    for key in _NUMBERS:
        value = table.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise _wrong(path, f"{where}: {key} is {value!r}, not a number of at least 0")
    if not any(key in table for key in _NUMBERS):
        raise _wrong(path, f"{where} says no time")
    for key in ("first_only", "once"):
        if not isinstance(table.get(key, False), bool):
            raise _wrong(path, f"{where}: {key} is true or false")
    median = float(table.get("median_ms", 0))
    return Figure(
        kinds=kinds,
        operations=_texts(path, where, table, "operations"),
        where=table.get("where", "any"),
        source=table["source"],
        note=str(table.get("note", "")),
        first_only=table.get("first_only", False),
        once=table.get("once", False),
        median_ms=median,
        tail_ms=max(float(table.get("tail_ms", median)), median),
        per_mb_ms=float(table.get("per_mb_ms", 0)),
        factor=float(table["factor"]) if "factor" in table else None,
    )


def _texts(path: Path, where: str, table: dict[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key)
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise _wrong(path, f"{where}: {key} is a list of texts")
    return tuple(value)


def _wrong(path: Path, what: str) -> EnvironmentFileError:
    return EnvironmentFileError(
        f"{path}: {what}", "See docs/hang-scan.md for what an environment file holds."
    )
