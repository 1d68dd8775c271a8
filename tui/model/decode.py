"""One event decoded: its regions, its arguments as fields, its line of text in coloured pieces."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from interfaces.abi import EventFlag, Kind, Region, RegionKind
from interfaces.calls import CALLS, name_of
from interfaces.decode import Field, Style, decode_args, format_event
from interfaces.decode.scalars import quoted
from interfaces.names.signals import errno_name
from tracefile import EventView, TraceReader

STRINGS = 64
"""Characters of a string that a line shows."""
_LAST_ERROR = 4095
_DATA_MAX = 4096

Label = Callable[[int, int], str]
"""(row, descriptor) -> what it stands for."""


class Piece(NamedTuple):
    """Part of a line; `role` says how it is shown: "call", "text", "fd", "string", "result", "error",
    "signal", "mark", "note"."""

    text: str
    role: str


@dataclass
class Decoded:
    """An event with everything that belongs to it. `args` are the raw words."""

    row: int
    view: EventView
    regions: list[Region]

    @property
    def nr(self) -> int:
        return self.view.nr

    @property
    def kind(self) -> int:
        return self.view.kind

    @property
    def args(self) -> tuple[int, ...]:
        return self.view.args

    @property
    def result(self) -> int:
        return self.view.result

    @property
    def took(self) -> int:
        """Nanoseconds between entry and exit."""
        return max(self.view.time_out - self.view.time_in, 0)

    @property
    def is_call(self) -> bool:
        """Whether it is a system call, or the beginning of one."""
        return self.kind in (Kind.SYSCALL, Kind.RELEASE)

    @property
    def error(self) -> int:
        """The error number of a call that failed, else 0."""
        return -self.result if self.kind == Kind.SYSCALL and -_LAST_ERROR <= self.result < 0 else 0

    @property
    def name(self) -> str:
        """The call's name, or the kind in capitals."""
        return name_of(self.nr) if self.is_call else kind_name(self.kind)

    @cached_property
    def fields(self) -> list[Field]:
        """The arguments of a call; empty for other events."""
        return decode_args(self.view, self.regions, strings=STRINGS) if self.is_call else []

    @cached_property
    def descriptors(self) -> list[int]:
        """The descriptors among the arguments, those the event's structures hold excluded."""
        call = CALLS.get(self.nr) if self.is_call else None
        if call is None:
            return []
        case = call.case(list(self.args))
        args = case.args if case else call.args
        found = [
            _signed(value) for arg, value in zip(args, self.args, strict=False) if arg.type in ("fd", "dirfd")
        ]
        return [fd for fd in found if fd >= 0]

    @cached_property
    def paths(self) -> list[str]:
        """The paths among the arguments."""
        return paths_in(self.nr, self.regions) if self.is_call else []


def decode_event(
    reader: TraceReader, row: int, domain: int, number: int, released: Callable[[], tuple[int, int] | None]
) -> Decoded:
    """The event with all its regions.

    What a call that blocked had read lies in the RELEASE event before it, which `released` finds (domain and
    number); output that did not fit into an event, in DATA events before it.
    """
    view = reader.event(domain, number)
    try:
        regions = view.regions
    except ValueError:
        regions = []
    before = number
    while view.kind != Kind.DATA and before and number - before < _DATA_MAX:
        before -= 1
        other = reader.event(domain, before)
        if other.kind != Kind.DATA or other.task != view.task or other.result != view.kind:
            break
        try:
            regions = [*other.regions, *regions]
        except ValueError:
            break
    if view.kind == Kind.SYSCALL and view.flags & EventFlag.BLOCKED and (place := released()) is not None:
        begin = reader.event(*place)
        if begin.kind == Kind.RELEASE and begin.nr == view.nr:
            with contextlib.suppress(ValueError):
                regions = [*begin.regions, *regions]
    return Decoded(row, view, regions)


def paths_in(nr: int, regions: Sequence[Region]) -> list[str]:
    """The paths that a call's regions hold."""
    call = CALLS.get(nr)
    wanted = {i for i, arg in enumerate(call.args) if arg.type == "path"} if call else set()
    return [
        os.fsdecode(region.data.split(b"\0", 1)[0])
        for region in regions
        if region.kind == RegionKind.PATH or (region.kind == RegionKind.IN and region.arg in wanted)
    ]


def path_of(event: Decoded) -> str | None:
    """The first path a call names."""
    return next((path for path in event.paths if path), None)


def kind_name(kind: int) -> str:
    """The kind of an event in capitals."""
    try:
        return Kind(kind).name
    except ValueError:
        return f"KIND {kind}"


def line_of(event: Decoded, reader: TraceReader, label: Label | None = None) -> list[Piece]:
    """The event as strace writes it, without its result, in pieces; descriptors with what they stand for."""
    if event.is_call:
        pieces = [Piece(name_of(event.nr), "call"), Piece("(", "text")]
        for i, field in enumerate(event.fields):
            if i:
                pieces.append(Piece(", ", "text"))
            pieces.extend(_value(field, event.row, label))
        pieces.append(Piece(") <unfinished ...>" if event.kind == Kind.RELEASE else ")", "text"))
        if event.view.flags & EventFlag.UNKNOWN:
            pieces.append(Piece(" (answered by rr-py)", "note"))
        return pieces
    return [Piece(_other(event, reader), "signal" if event.kind in _LOUD else "mark")]


_LOUD = frozenset({Kind.SIGNAL, Kind.DEATH, Kind.STOPPED})


def result_of(event: Decoded, label: Label | None = None) -> list[Piece]:
    """What a call returned, in pieces; empty for other events."""
    if event.kind != Kind.SYSCALL:
        return []
    if event.error:
        return [Piece(f"-1 {errno_name(event.error)}" if event.error < 512 else "? restarted", "error")]
    text = format_event(event.view, event.regions, strings=STRINGS)
    shown = text.rpartition(") = ")[2] if ") = " in text else str(event.result)
    call = CALLS.get(event.nr)
    if label is not None and call is not None and call.returns == "fd" and event.result >= 0:
        name = label(event.row + 1, event.result)
        if name:
            return [Piece(shown, "result"), Piece(f"<{printable(name)}>", "fd")]
    return [Piece(shown, "result")]


def plain_text(pieces: Sequence[Piece]) -> str:
    """The text of a line's pieces."""
    return "".join(piece.text for piece in pieces)


def _value(field: Field, row: int, label: Label | None) -> list[Piece]:
    if field.type in ("fd", "dirfd") and label is not None:
        try:
            fd = int(field.value)
        except ValueError:
            return [Piece(field.value, "text")]
        name = label(row, fd) if fd >= 0 else ""
        return [Piece(field.value, "text"), *([Piece(f"<{printable(name)}>", "fd")] if name else [])]
    role = "string" if field.value[:1] == '"' else "text"
    return [Piece(field.value, role)]


def _other(event: Decoded, reader: TraceReader) -> str:
    view = event.view
    if view.kind == Kind.EXEC and view.domain in reader.domains:
        return f"+++ running {printable(reader.domains[view.domain].exe)} +++"
    if view.kind == Kind.EXECED and (made := reader.domains.get(view.args[0])) is not None:
        argv = ", ".join(quoted(os.fsencode(word), Style(strings=STRINGS)) for word in made.argv)
        return f"{name_of(view.nr)}({quoted(os.fsencode(made.exe), Style(strings=4096))}, [{argv}]) = 0"
    return printable(format_event(view, event.regions, strings=STRINGS))


def printable(text: str) -> str:
    """`text` with control and other unprintable characters escaped: what comes from a trace may hold any."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode()
        for char in text
    )


_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)")
_LETTERS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}


def unquoted(text: str) -> str:
    """The text within a quoted literal (as `interfaces.decode` writes it), escapes undone."""
    body = text.removesuffix("...")
    prefix = "@" if body.startswith("@") else ""
    body = body.removeprefix("@")
    if len(body) < 2 or body[0] != '"' or body[-1] != '"':
        return printable(text)
    data = _ESCAPE.sub(_plain, body[1:-1]).encode("latin-1", "replace")
    return prefix + printable(data.decode("utf-8", "replace"))


def _plain(match: re.Match[str]) -> str:
    word = match[1]
    return chr(int(word, 8) & 0xFF) if word[0] in "01234567" else _LETTERS.get(word, word)


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
