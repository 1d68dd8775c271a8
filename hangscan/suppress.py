"""Suppression files: findings that are known and accepted. They are left out of the report, and counted.

    [[suppress]]
    function = "load_icons"       # glob; any frame of the stack
    path = "/usr/share/icons/*"   # glob; the resource
    kind = "file"
    reason = "small and warm"

Every field that is given must match; at least one of the first three must be there.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from hangscan.errors import SuppressionError
from hangscan.model import KINDS, Candidate

_FIELDS = ("function", "path", "kind", "reason")


@dataclass(frozen=True, slots=True)
class Suppression:
    """One entry; empty fields match anything."""

    function: str = ""
    path: str = ""
    kind: str = ""
    reason: str = ""

    def matches(self, candidate: Candidate) -> bool:
        """Whether the entry covers a candidate."""
        if self.kind and candidate.resource.kind != self.kind:
            return False
        if self.path:
            names = (*candidate.paths, candidate.resource.path, candidate.resource.peer)
            if not any(name and fnmatchcase(name, self.path) for name in names):
                return False
        return not self.function or any(
            fnmatchcase(frame.function, self.function) for frame in candidate.stack
        )


def read(path: Path) -> list[Suppression]:
    """The entries of a file; SuppressionError names what is wrong."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SuppressionError(f"{path}: {error.strerror}", "Name a file that can be read.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SuppressionError(f"{path}: {error}", "Write it as TOML; see docs/hang-scan.md.") from None
    entries = document.get("suppress", [])
    found = []
    for number, entry in enumerate(entries if isinstance(entries, list) else [None], 1):
        if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
            raise _wrong(path, number, "is no table of texts")
        unknown = entry.keys() - set(_FIELDS)
        if unknown:
            raise _wrong(path, number, f"has {', '.join(sorted(unknown))}, which no entry has")
        if not any(entry.get(key) for key in _FIELDS[:3]):
            raise _wrong(path, number, "names no function, path or kind")
        if entry.get("kind") and entry["kind"] not in KINDS:
            raise _wrong(path, number, f"has kind {entry['kind']!r}, none of {', '.join(KINDS)}")
        found.append(Suppression(**entry))
    return found


def split(candidates: Sequence[Candidate], entries: Sequence[Suppression]) -> tuple[list[Candidate], int]:
    """The candidates no entry covers, and how many were covered."""
    kept = [one for one in candidates if not any(entry.matches(one) for entry in entries)]
    return kept, len(candidates) - len(kept)


def _wrong(path: Path, number: int, what: str) -> SuppressionError:
    return SuppressionError(f"{path}: entry {number} {what}", "See docs/hang-scan.md for suppression files.")
