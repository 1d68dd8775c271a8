"""Addresses: every place of the interface as a word that `rr-py tui` takes.

TRACE                      the events, from the beginning
TRACE@PID                  the last event of a process
TRACE@PID:EVENT            an event, as `rr-py dump --numbers` counts; PID/DOMAIN:EVENT where a process
                           ran several programs
TRACE@:EVENT               an event of the recorded program
TRACE@#ROW                 a row of the whole trace
TRACE@+1.25s               the first event that ended 1.25 s after the start
TRACE@SCREEN               events, timeline, processes, hangs
TRACE@SCREEN/PLACE         a screen at one of the places above
TRACE@diff=OTHER           compared with another trace; TRACE@diff/PLACE=OTHER with the events at a place
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
    """A place in a trace; `place` is as typed, empty for the beginning; `trace` None: the newest here;
    `other` is the trace that it is compared with."""

    trace: Path | None = None
    screen: str = "events"
    place: str = ""
    filter: str = ""
    other: Path | None = None

    def __str__(self) -> str:
        where = self.screen if self.screen != "events" else ""
        if self.place:
            where = f"{where}/{self.place}" if where else self.place
        if self.other is not None:
            where = f"{where}={self.other}"
        bare = not (where or self.filter) and self.trace is not None
        text = str(self.trace) if bare else f"{self.trace or ''}@{where}"
        return f"{text}?{self.filter}" if self.filter else text


_COMPARED = re.compile(r"(.*?)@diff(?:/([^=?]*))?=([^?]+)(?:\?(.*))?", re.DOTALL)
_PLACE = re.compile(r"\d+(/\d+)?(:\d+)?|:\d+|#\d+|\+\S+")


def parse_address(text: str) -> Address:
    """The address a word means; AddressError.

    A file whose name looks like an address is taken as the file.
    """
    if not text or Path(text).exists():
        return Address(Path(text) if text else None)
    compared = _COMPARED.fullmatch(text)
    if compared is not None:
        head, place, other, wanted = compared.groups(default="")
        _check(place)
        return Address(Path(head) if head else None, "diff", place, wanted, Path(other))
    head, at, rest = text.rpartition("@") if "?" not in text else _split(text)
    if not at:
        return Address(Path(text))
    where, _, wanted = rest.partition("?")
    screen, _, place = where.partition("/")
    if screen not in SCREENS:
        screen, place = "events", where
    _check(place)
    if screen == "diff":
        raise AddressError("a comparison needs another trace: TRACE@diff=OTHER")
    return Address(Path(head) if head else None, screen, place, wanted)


def _check(place: str) -> None:
    if place and not _PLACE.fullmatch(place):
        raise AddressError(f"no place {place!r} in a trace")


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
    if place.startswith("#"):
        row = int(place[1:]) if place[1:].isdecimal() else index.rows
        if row >= index.rows:
            raise AddressError(f"there is no row {place[1:]}: the trace has {index.rows}")
        return row
    if not _PLACE.fullmatch(place):
        raise AddressError(f"no place {place!r} in a trace")
    owner, _, number = place.partition(":")
    return _event(index, owner, int(number) if number else None)


def _event(index: EventIndex, owner: str, event: int | None) -> int:
    pid, _, domain = owner.partition("/")
    domains = index.reader.domains
    if not pid:
        pid = str(domains[min(domains)].pid) if domains else "0"
    found = [n for n, info in list(domains.items()) if info.pid == int(pid) and domain in ("", str(n))]
    if not found:
        raise AddressError(f"no process {owner} in the trace")
    for number in reversed(found):
        row = index.row_of(number, index.count(number) - 1 if event is None else event)
        if row is not None:
            return row
    raise AddressError(f"process {owner} has no event {event}" if event is not None else "it has no events")


def place_of_row(index: EventIndex, row: int) -> str:
    """The lasting name of a row: `PID:EVENT`, or `PID/DOMAIN:EVENT` where a process has several domains."""
    domain, event = index.place(row)
    pid = index.reader.domains[domain].pid
    same = [n for n, info in list(index.reader.domains.items()) if info.pid == pid]
    return f"{pid}:{event}" if len(same) == 1 else f"{pid}/{domain}:{event}"
