"""Addresses: every place of the interface as a word that `rr-py tui` takes.

TRACE                      the events, from the beginning
TRACE@1234                 row 1234
TRACE@PID:EVENT            an event by process and its number in that process's domain (dN: domain N)
TRACE@+1.25s               the first event that ended 1.25 s after the start
TRACE@SCREEN               events, timeline, processes, hangs, diff
TRACE@SCREEN/PLACE         a screen at one of the places above
TRACE@...?FILTER           with a filter
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from interfaces.errors import ExitStatus, RrPyError
from tui.model.index import EventIndex
from tui.model.query.fields import nanoseconds

SCREENS = ("events", "timeline", "processes", "hangs", "diff")


class AddressError(RrPyError):
    """An address that names no place."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message,
            "Such as trace.bin@4711:120, trace.bin@+1.5s, trace.bin@hangs.",
            ExitStatus.TOOL_FAILED,
        )


@dataclass(frozen=True, slots=True)
class Address:
    """A place in a trace; `place` is as typed, empty for the beginning; `trace` None: the newest here."""

    trace: Path | None = None
    screen: str = "events"
    place: str = ""
    filter: str = ""

    def __str__(self) -> str:
        where = self.screen if self.screen != "events" else ""
        if self.place:
            where = f"{where}/{self.place}" if where else self.place
        bare = not (where or self.filter) and self.trace is not None
        text = str(self.trace) if bare else f"{self.trace or ''}@{where}"
        return f"{text}?{self.filter}" if self.filter else text


_PLACE = re.compile(r"\d+|d?\d+:\d+|\+\S+")


def parse_address(text: str) -> Address:
    """The address a word means; AddressError.

    A file whose name looks like an address is taken as the file.
    """
    if not text or Path(text).exists():
        return Address(Path(text) if text else None)
    head, at, rest = text.rpartition("@") if "?" not in text else _split(text)
    if not at:
        return Address(Path(text))
    where, _, wanted = rest.partition("?")
    screen, slash, place = where.partition("/")
    if screen not in SCREENS:
        screen, place = "events", where if not slash else ""
    if place and not _PLACE.fullmatch(place):
        raise AddressError(f"no place {where!r} in a trace")
    return Address(Path(head) if head else None, screen, place, wanted)


def _split(text: str) -> tuple[str, str, str]:
    """Cut at the last @ before the filter."""
    front, _, wanted = text.partition("?")
    head, at, where = front.rpartition("@")
    return head, at, f"{where}?{wanted}"


def row_of_place(index: EventIndex, place: str) -> int:
    """The row a place means; AddressError where the trace has none."""
    if not place:
        return 0
    if place.startswith("+"):
        since = nanoseconds(place[1:])
        if since is None:
            raise AddressError(f"{place!r} is no time")
        return index.row_at(index.zero + int(since))
    if ":" in place:
        return _event(index, place)
    if not place.isdecimal():
        raise AddressError(f"no place {place!r} in a trace")
    row = int(place)
    if row >= index.rows:
        raise AddressError(f"there is no row {row}: the trace has {index.rows}")
    return row


def _event(index: EventIndex, place: str) -> int:
    owner, _, number = place.partition(":")
    event = int(number)
    if owner.startswith("d"):
        domains = [int(owner[1:])]
    else:
        pid = int(owner)
        domains = [n for n, info in index.reader.domains.items() if info.pid == pid]
        if not domains:
            raise AddressError(f"no process {pid} in the trace")
    for domain in domains:
        row = index.row_of(domain, event)
        if row is not None:
            return row
    raise AddressError(f"there is no event {place}")


def place_of_row(index: EventIndex, row: int) -> str:
    """The shortest lasting name of a row: `PID:EVENT`, or `dDOMAIN:EVENT` where a process has several."""
    domain, event = index.place(row)
    pid = index.reader.domains[domain].pid
    same = [n for n, info in index.reader.domains.items() if info.pid == pid]
    return f"{pid}:{event}" if len(same) == 1 else f"d{domain}:{event}"
