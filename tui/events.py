"""The list of events: number, time, thread, call, result, duration."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from interfaces.abi import EventFlag
from interfaces.calls import CALLS
from tracefile import TraceError
from tui.model.decode import Decoded, Piece, line_of, result_of
from tui.model.settings import COLUMNS, Settings
from tui.model.text import clock, duration
from tui.model.timeline import SLOW_NS
from tui.model.trace import TraceModel
from tui.model.view import View
from tui.rows import RowList, cut
from tui.styles import BOLD, DIM, FAMILIES, HIT, LIBRARY, LONG, ROLES, SLOW, THREADS

TITLES = {"row": "row", "time": "seconds", "thread": "thread", "call": "call", "result": "result",
          "duration": "took"}  # fmt: skip
_LONG_NS = 1_000_000
_CALL_MIN = 30
_DROPPED = ("row", "result", "duration", "thread", "time")
_CACHE = 4096


def layout(settings: Settings, width: int) -> list[tuple[str, int]]:
    """The columns to show and their widths: those that leave the call too little room are dropped."""
    shown = [name for name in COLUMNS if name not in settings.hidden]
    for dropped in ("", *_DROPPED):
        shown = [name for name in shown if name != dropped]
        fixed = sum(settings.widths[name] + 1 for name in shown if name != "call")
        if width - fixed >= _CALL_MIN:
            break
    room = settings.widths["call"]
    left = max(width - fixed, 1)
    return [(name, (min(room, left) if room else left) if name == "call" else settings.widths[name])
            for name in shown]  # fmt: skip


class ColumnTitles(Widget):
    """The line above the list."""

    DEFAULT_CSS = "ColumnTitles { height: 1; background: $panel; text-style: bold; }"

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings

    def render_line(self, y: int) -> Strip:
        segments: list[Segment] = []
        for name, width in layout(self._settings, self.size.width - 1):
            text = TITLES[name]
            right = name in ("row", "time", "duration")
            segments.append(
                Segment((text[:width].rjust(width) if right else text[:width].ljust(width)) + " ")
            )
        return Strip(segments).adjust_cell_length(self.size.width).apply_style(self.rich_style)


class EventList(RowList):
    """The events of a view. `row` is the row of the trace under the cursor."""

    def __init__(self, model: TraceModel, view: View, settings: Settings, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.model = model
        self.view = view
        self.settings = settings
        self.highlight: re.Pattern[str] | None = None
        self.note = "no events"
        self._shift = 0
        self._cache: OrderedDict[int, tuple[Decoded, list[Piece], list[Piece]]] = OrderedDict()

    @property
    def row_count(self) -> int:
        return len(self.view)

    @property
    def row(self) -> int | None:
        """The row under the cursor; None in an empty view."""
        return self.view.row(self.position) if self.position < len(self.view) else None

    def show(self, view: View) -> None:
        """Show another view."""
        self.view = view
        self.virtual_size = Size(self.size.width, self.row_count)
        self.refresh()

    def forget(self) -> None:
        """Make all lines anew: what descriptors stand for may be known by now."""
        self._cache.clear()
        self.refresh()

    def shift(self, cells: int) -> None:
        """Move the text of the calls sideways."""
        self._shift = max(self._shift + cells, 0)
        self.refresh()

    def empty_text(self) -> str:
        return self.note

    def line(self, position: int, width: int) -> Sequence[Segment]:
        try:
            row = self.view.row(position)
            event, call, result = self._pieces(row)
        except (TraceError, IndexError, OSError) as why:
            return [Segment(f"cannot be read: {getattr(why, 'message', why)}", ROLES["error"])]
        segments: list[Segment] = []
        columns = layout(self.settings, width)
        inline = not any(name == "result" for name, _ in columns)
        for name, room in columns:
            segments.extend(self._cell(name, room, event, call, result, inline))
            segments.append(Segment(" "))
        return segments[:-1]

    def _pieces(self, row: int) -> tuple[Decoded, list[Piece], list[Piece]]:
        found = self._cache.get(row)
        if found is None:
            event = self.model.decode(row)
            label = self.model.label
            found = (event, line_of(event, self.model.reader, label), result_of(event, label))
            self._cache[row] = found
            if len(self._cache) > _CACHE:
                self._cache.popitem(last=False)
        return found

    def _cell(
        self, name: str, room: int, event: Decoded, call: list[Piece], result: list[Piece], inline: bool
    ) -> list[Segment]:
        match name:
            case "row":
                return [Segment(str(event.row)[-room:].rjust(room), DIM)]
            case "time":
                since = clock(event.view.time_out - self.model.index.zero)
                return [Segment(since[-room:].rjust(room), DIM)]
            case "thread":
                return self._thread(event, room)
            case "call":
                shown = [*call, Piece(" = ", "text"), *result] if inline and result else call
                return self._call(event, shown, room)
            case "result":
                segments = [Segment(piece.text, ROLES[piece.role]) for piece in result]
                if self.highlight is not None:
                    segments = _highlighted(segments, self.highlight)
                return cut(segments, room)
            case _:
                return [_took(event, room)]

    def _thread(self, event: Decoded, room: int) -> list[Segment]:
        task = self.model.index.task_id(event.row)
        style = THREADS[task % len(THREADS)]
        name = self.model.process_name(event.view.domain)
        return cut([Segment(str(event.view.task), style), Segment(f" {name}" if room > 8 else "", DIM)], room)

    def _call(self, event: Decoded, pieces: Sequence[Piece], room: int) -> list[Segment]:
        segments = [Segment(piece.text, _style(event, piece)) for piece in pieces]
        if self.highlight is not None:
            segments = _highlighted(segments, self.highlight)
        if self._shift:
            segments = list(Strip(segments).crop(self._shift))
        return cut(segments, room)


def _style(event: Decoded, piece: Piece) -> Style:
    if piece.role == "call":
        call = CALLS.get(event.nr) if event.is_call else None
        if event.is_library:
            return LIBRARY + BOLD
        return (FAMILIES.get(call.family, Style()) if call else Style()) + BOLD
    return ROLES[piece.role]


def _took(event: Decoded, room: int) -> Segment:
    if not event.is_call and not event.is_library:
        return Segment(" " * room)
    exact = event.is_library or bool(event.view.flags & EventFlag.PRECISE)
    text = duration(event.took) if exact else f"~{duration(event.took)}" if event.took else ""
    style = SLOW if event.took >= SLOW_NS else LONG if event.took >= _LONG_NS else DIM
    return Segment(text[:room].rjust(room), style)


def _highlighted(segments: list[Segment], pattern: re.Pattern[str]) -> list[Segment]:
    text = "".join(segment.text for segment in segments)
    edges = sorted({edge for match in pattern.finditer(text) for edge in match.span()})
    if not edges:
        return segments
    spans = [match.span() for match in pattern.finditer(text)]
    found: list[Segment] = []
    at = 0
    for segment in segments:
        cuts = [edge - at for edge in edges if at < edge < at + len(segment.text)]
        start = 0
        for stop in [*cuts, len(segment.text)]:
            inside = any(begin <= at + start < end for begin, end in spans)
            style = HIT if inside else segment.style
            found.append(Segment(segment.text[start:stop], style))
            start = stop
        at += len(segment.text)
    return found
