"""A list of any length with a cursor: only the lines on the screen are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.actions import LIST_KEYS
from tui.focus import focus_now

_WHEEL = 3


class RowList(ScrollView):
    """Shows `row_count` lines, each made by `line` when it comes into sight."""

    DEFAULT_CSS = """
    RowList { height: 1fr; background: $surface; overflow-x: hidden; scrollbar-size-vertical: 1; }
    RowList:focus { background-tint: $foreground 3%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(keys, action, text, show=False, id=id) for id, keys, action, text in LIST_KEYS
    ]

    can_focus = True
    position: reactive[int] = reactive(0, repaint=False)
    """The line the cursor is on."""

    class Moved(Message):
        """The cursor is on another line now."""

        def __init__(self, rows: RowList, position: int, by_user: bool) -> None:
            super().__init__()
            self.rows = rows
            self.position = position
            self.by_user = by_user

        @property
        def control(self) -> RowList:
            return self.rows

    class Chosen(Message):
        """Enter, or a second click on the line under the cursor."""

        def __init__(self, rows: RowList, position: int) -> None:
            super().__init__()
            self.rows = rows
            self.position = position

        @property
        def control(self) -> RowList:
            return self.rows

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._by_user = False

    @property
    def row_count(self) -> int:
        """Number of lines."""
        raise NotImplementedError

    def line(self, position: int, width: int) -> Sequence[Segment]:
        """The line at a position; what exceeds the width is cut."""
        raise NotImplementedError

    def empty_text(self) -> str:
        """What to say when there is no line."""
        return "nothing here"

    def resize_rows(self) -> None:
        """Take note of another number of lines."""
        self.virtual_size = Size(self.size.width, self.row_count)
        if self.position >= self.row_count:
            self.position = max(self.row_count - 1, 0)
        self.refresh()

    def move_to(self, position: int, *, centre: bool = False, by_user: bool = False) -> None:
        """Put the cursor on a line and show it, in the middle with `centre` if it was out of sight."""
        if not self.row_count:
            return
        position = max(0, min(position, self.row_count - 1))
        self._by_user = by_user
        if position != self.position:
            self.position = position
        self._show(centre)

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        width = self.scrollable_content_region.width
        position = y + self.scroll_offset.y
        if position >= self.row_count:
            text = self.empty_text() if not self.row_count and y == 0 else ""
            return Strip([Segment(f" {text}", self.rich_style + Style(dim=True))]).adjust_cell_length(
                width, self.rich_style
            )
        strip = Strip(self.line(position, width)).adjust_cell_length(width).apply_style(self.rich_style)
        if position == self.position:
            strip = Strip(_under_cursor(strip, self.has_focus))
        return strip

    def watch_position(self, old: int, new: int) -> None:
        """Repaint the two lines that changed."""
        top = self.scroll_offset.y
        for position in (old, new):
            y = position - top
            if 0 <= y < self.size.height:
                self.refresh(Region(0, y, self.size.width, 1))
        self.post_message(self.Moved(self, new, self._by_user))
        self._by_user = False

    def action_cursor(self, step: int) -> None:
        self.move_to(self.position + step, by_user=True)

    def action_page(self, step: int) -> None:
        self.move_to(self.position + step * max(self.size.height - 1, 1), by_user=True)

    def action_first(self) -> None:
        self.move_to(0, by_user=True)

    def action_last(self) -> None:
        self.move_to(self.row_count - 1, by_user=True)

    def action_choose(self) -> None:
        if self.row_count:
            self.post_message(self.Chosen(self, self.position))

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor; one on the line under it chooses."""
        position = event.y + self.scroll_offset.y
        if not 0 <= position < self.row_count:
            return
        focus_now(self)
        if event.chain > 1:
            self.action_choose()
        else:
            self.move_to(position, by_user=True)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_to(y=self.scroll_offset.y + _WHEEL, animate=False)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_to(y=self.scroll_offset.y - _WHEEL, animate=False)

    def on_resize(self, event: events.Resize) -> None:
        self.virtual_size = Size(event.size.width, self.row_count)
        self._show(False)

    def _show(self, centre: bool) -> None:
        height = self.size.height
        top = self.scroll_offset.y
        if not height:
            return
        if centre and not top <= self.position < top + height:
            self._scroll(max(self.position - height // 2, 0))
        elif self.position < top:
            self._scroll(self.position)
        elif self.position >= top + height:
            self._scroll(self.position - height + 1)

    def _scroll(self, top: int) -> None:
        """Begin with a line at once, also where the scroll bar does not exist yet: then it has to be told."""
        self.scroll_to(y=top, animate=False, immediate=True, force=True)
        self.vertical_scrollbar.position = self.scroll_offset.y


def _under_cursor(strip: Strip, focused: bool) -> list[Segment]:
    style = Style(reverse=True) if focused else Style(bold=True, underline=True)
    return list(Segment.apply_style(strip, post_style=style))


def cut(segments: Sequence[Segment], width: int) -> list[Segment]:
    """The segments cut or padded to exactly `width` cells; "…" ends what was cut."""
    strip = Strip(segments)
    if strip.cell_length <= width:
        return list(strip.adjust_cell_length(width))
    if width <= 0:
        return []
    return [*strip.crop(0, width - 1), Segment("…", Style(dim=True))]
