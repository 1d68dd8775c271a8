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
from interfaces.calls import CALLS, exec_name, name_of
from interfaces.decode import Field, Style, decode_args, format_event
from interfaces.decode.scalars import quoted
from interfaces.libspec import naming
from interfaces.libspec.model import Callback, Function
from interfaces.libspec.show import LibFlag, arguments_of, result_text
from interfaces.names.signals import errno_name
from tracefile import EventView, TraceReader
from tracefile.library import error_of, placed

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
    def is_library(self) -> bool:
        """Whether it is a call of a library function, or one of its callbacks."""
        return self.kind == Kind.LIBCALL

    @property
    def function(self) -> Function | Callback | None:
        """The library function that was called, where the trace describes it."""
        return naming.known().get(self.nr) if self.is_library else None

    @property
    def error(self) -> int:
        """The error number of a call that failed, else 0."""
        if self.is_library and self.view.flags & LibFlag.ERRNO:
            return error_of(self.view.payload)
        return -self.result if self.kind == Kind.SYSCALL and -_LAST_ERROR <= self.result < 0 else 0

    @property
    def name(self) -> str:
        """The call's name, or the kind in capitals."""
        if self.is_library:
            return self.function.name if self.function is not None else f"function_{self.nr}"
        return name_of(self.nr) if self.is_call else kind_name(self.kind)

    @cached_property
    def fields(self) -> list[Field]:
        """The arguments of a call; empty for other events."""
        if self.is_library and not self.view.flags & (LibFlag.PART | LibFlag.RETURN):
            found = arguments_of(self.view, self.regions, self.function, strings=STRINGS)
            return [Field(name or f"word {i}", kind, value) for i, (name, kind, value) in enumerate(found)]
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
        if self.is_library and self.function is not None:
            named = {i for i, one in enumerate(self.function.parameters) if one.name in PATH_NAMES}
            return _texts(self.regions, named)
        return paths_in(self.nr, self.regions) if self.is_call else []


def decode_event(
    reader: TraceReader,
    row: int,
    domain: int,
    number: int,
    released: Callable[[], tuple[int, int] | None],
    translate: Callable[[EventView], EventView] | None = None,
) -> Decoded:
    """The event with all its regions.

    What a call that blocked had read lies in the RELEASE event before it, which `released` finds (domain and
    number); output that did not fit into an event, in DATA events before it.
    """
    view = reader.event(domain, number)
    raw = view
    if translate is not None:
        view = translate(view)
    try:
        regions = view.regions if view is raw else placed(view, view.regions)
    except ValueError:
        regions = []
    parts = [regions]
    before = number
    while view.kind != Kind.DATA and before and number - before < _DATA_MAX:
        before -= 1
        other = reader.event(domain, before)
        if other.kind != Kind.DATA or other.task != view.task or other.result != view.kind:
            break
        try:
            parts.append(other.regions)
        except ValueError:
            break
    if len(parts) > 1:
        regions = _continued(parts[::-1])
    if view.kind == Kind.SYSCALL and view.flags & EventFlag.BLOCKED and (place := released()) is not None:
        begin = reader.event(*place)
        if begin.kind == Kind.RELEASE and begin.nr == view.nr:
            with contextlib.suppress(ValueError):
                regions = [*begin.regions, *regions]
    return Decoded(row, view, regions)


def _continued(events: list[list[Region]]) -> list[Region]:
    """The regions of events in order; what was cut at the end of an event is whole again."""
    found: list[Region] = []
    parts: list[bytes] = []
    end = 0
    for regions in events:
        for i, region in enumerate(regions):
            last = found[-1] if found else None
            cut = not i and last is not None and end and end == region.addr
            if last is None or not cut or (last.kind, last.arg) != (region.kind, region.arg):
                _close(found, parts)
                found.append(region)
                parts = [region.data]
                end = region.addr + len(region.data) if region.addr else 0
            else:
                parts.append(region.data)
                end += len(region.data)
    _close(found, parts)
    return found


def _close(found: list[Region], parts: list[bytes]) -> None:
    if len(parts) > 1:
        found[-1] = found[-1]._replace(data=b"".join(parts))


def paths_in(nr: int, regions: Sequence[Region]) -> list[str]:
    """The paths that a call's regions hold."""
    call = CALLS.get(nr)
    return _texts(regions, {i for i, arg in enumerate(call.args) if arg.type == "path"} if call else set())


PATH_NAMES = frozenset({"path", "filename", "file_name", "file"})
"""Names that parameters have in interfaces when they are paths."""


def _texts(regions: Sequence[Region], wanted: set[int]) -> list[str]:
    """The strings that the wanted arguments point to, and paths that recording noted."""
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
    if event.is_library:
        return _library_line(event)
    return [Piece(_other(event, reader), "signal" if event.kind in _LOUD else "mark")]


def _library_line(event: Decoded) -> list[Piece]:
    """A library call as `sqlite3_step(p=0x55..)`, a callback as `-> name(...)`."""
    flags = event.view.flags
    if flags & (LibFlag.PART | LibFlag.RETURN):
        return [Piece(printable(naming.text(event.view, event.regions, STRINGS)), "mark")]
    pieces = [Piece("-> ", "mark")] if flags & LibFlag.CALLBACK else []
    pieces += [Piece(event.name, "call"), Piece("(", "text")]
    for i, field in enumerate(event.fields):
        name = "" if event.function is None else f"{field.name}="
        pieces.append(Piece(f"{', ' if i else ''}{name}", "text"))
        pieces.append(Piece(field.value, "string" if field.value[:1] == '"' else "text"))
    ending = ") <calls back ...>" if flags & LibFlag.ENTER else ")"
    return [*pieces, Piece(ending, "text")]


_LOUD = frozenset({Kind.SIGNAL, Kind.DEATH, Kind.STOPPED})


def result_of(event: Decoded, label: Label | None = None) -> list[Piece]:
    """What a call returned, in pieces; empty for other events."""
    if event.is_library:
        return _library_result(event)
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


def _library_result(event: Decoded) -> list[Piece]:
    quiet = LibFlag.PART | LibFlag.RETURN | LibFlag.CALLBACK | LibFlag.ENTER | LibFlag.RELEASE
    if event.view.flags & quiet:
        return []
    if event.function is not None and event.function.returns.kind == "void" and not event.error:
        return []
    text = result_text(event.view, event.regions, event.function, strings=STRINGS)
    if event.error:
        return [Piece(f"{text.rpartition(' (errno ')[0]} {errno_name(event.error)}".strip(), "error")]
    return [Piece(text, "result")]


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
        return f"{exec_name(view.nr)}({quoted(os.fsencode(made.exe), Style(strings=4096))}, [{argv}]) = 0"
    return printable(format_event(view, event.regions, strings=STRINGS))


def printable(text: str) -> str:
    """`text` with control and other unprintable characters escaped: what comes from a trace may hold any."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    """A character that cannot be shown: `\\n`, `\\x1b`, and `\\xff` for a byte that was no text."""
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape", "backslashreplace").decode()


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
