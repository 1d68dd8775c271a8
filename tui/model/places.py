"""Places visited, marks, and bookmarks kept beside the trace."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from tui.model.index import EventIndex

_VISITED_MAX = 200


@dataclass(slots=True)
class Visited:
    """Rows one has been at, as a browser keeps pages: going somewhere forgets what was ahead."""

    rows: list[int] = field(default_factory=list)
    at: int = -1

    def leave(self, here: int, there: int) -> None:
        """Note a jump from one row to another."""
        if here == there:
            return
        self.rows = self.rows[: self.at + 1]
        if not self.rows or self.rows[-1] != here:
            self.rows.append(here)
        self.rows.append(there)
        self.rows = self.rows[-_VISITED_MAX:]
        self.at = len(self.rows) - 1

    def step(self, steps: int, here: int) -> int | None:
        """The place before (-1) or after (1); None at the end. `here` replaces the place one leaves."""
        to = self.at + steps
        if not 0 <= to < len(self.rows):
            return None
        self.rows[self.at] = here
        self.at = to
        return self.rows[to]


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A named event; names of one letter are marks."""

    name: str
    domain: int
    event: int
    note: str = ""


class Bookmarks:
    """Marks and bookmarks of a trace, in the file `TRACE.bookmarks.json` beside it.

    A folder that cannot be written to is no reason to fail: they last as long as the program then, and
    `saved` is False.
    """

    def __init__(self, trace: Path) -> None:
        self.path = trace.with_name(trace.name + ".bookmarks.json")
        self.saved = True
        self._all: dict[str, Bookmark] = {}
        self._load()

    def all(self) -> list[Bookmark]:
        """All of them, in the order of their places."""
        return sorted(self._all.values(), key=lambda mark: (mark.domain, mark.event, mark.name))

    def set(self, mark: Bookmark) -> None:
        """Keep a bookmark; one of the same name is replaced."""
        self._all[mark.name] = mark
        self._save()

    def remove(self, name: str) -> None:
        """Forget a bookmark."""
        if self._all.pop(name, None) is not None:
            self._save()

    def row(self, index: EventIndex, name: str) -> int | None:
        """The row of a bookmark, None where there is none."""
        mark = self._all.get(name)
        return index.row_of(mark.domain, mark.event) if mark else None

    def _load(self) -> None:
        try:
            found = json.loads(self.path.read_text("utf-8"))
            items = found["bookmarks"]
            marks = [
                Bookmark(
                    str(item["name"]), int(item["domain"]), int(item["event"]), str(item.get("note", ""))
                )
                for item in items
            ]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return
        self._all = {mark.name: mark for mark in marks if mark.name}

    def _save(self) -> None:
        document = {
            "version": 1,
            "bookmarks": [
                {"name": mark.name, "domain": mark.domain, "event": mark.event, "note": mark.note}
                for mark in self.all()
            ],
        }
        passing = self.path.with_name(self.path.name + f".{os.getpid()}")
        try:
            passing.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
            os.replace(passing, self.path)
            self.saved = True
        except OSError:
            self.saved = False
            with contextlib.suppress(OSError):
                passing.unlink()
