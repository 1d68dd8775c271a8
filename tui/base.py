"""What all parts of the application share: the trace, the list of events, going to a row, the status line."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from textual.message import Message
from textual.widgets import ContentSwitcher, Static

from interfaces.errors import RrPyError
from tracefile import TraceError
from tui.actions import BY_ID
from tui.detail import DetailTree
from tui.events import EventList
from tui.model.address import Address, place_of_row, row_of_place
from tui.model.feeder import Feeder, Phase
from tui.model.places import Bookmarks, Visited
from tui.model.query.language import Query
from tui.model.settings import Settings
from tui.model.text import count
from tui.model.trace import TraceModel
from tui.typist import Typist

if TYPE_CHECKING:
    from tui.model.search import Search


class Changed(Message):
    """The index or the view has more rows, or the feeder does something else now."""


class Base(Typist):
    """State and helpers; the rest of the application is built on it."""

    def __init__(self, model: TraceModel, address: Address) -> None:
        super().__init__()
        self.model = model
        self.settings = Settings.load()
        self.feeder = Feeder(model, self._tell_changed)
        self.visited = Visited()
        self.bookmarks = Bookmarks(model.path)
        self.query_shown: Query | None = None
        self.everything = False
        self.search: Search | None = None
        self.search_note = ""
        self.following = False
        self.notice = ""
        self._pending_place = address.place
        self._pending_row: int | None = None
        self._address = address
        self._event_list = EventList(model, self.feeder.view, self.settings, id="event-list")
        self._event_detail = DetailTree(id="event-detail")

    @property
    def events(self) -> EventList:
        """The list of events."""
        return self._event_list

    @property
    def detail(self) -> DetailTree:
        """The detail of the event under the cursor."""
        return self._event_detail

    @property
    def current(self) -> str:
        """The name of the screen that is shown."""
        return self.query_one(ContentSwitcher).current or "events"

    @property
    def row(self) -> int | None:
        """The row under the cursor of the list of events."""
        return self.events.row

    @property
    def going(self) -> bool:
        """Whether the screens are there: not before the start, nor any more at the end."""
        return self.is_running and bool(self.query("#status"))

    def hand_over(self, call: Callable[..., object], *args: object, **more: Any) -> None:
        """From a worker: let the application's thread do something, unless it is ending meanwhile."""

        def do() -> None:
            if self.going:
                call(*args, **more)

        with suppress(RuntimeError, CancelledError):
            self.call_from_thread(do)

    def work(self, call: Callable[[], None], group: str, *, exclusive: bool = True) -> None:
        """Do something in a thread of its own, in place of what `group` does; what goes wrong is told."""

        def run() -> None:
            try:
                call()
            except (RrPyError, OSError) as why:
                self.hand_over(self.complain, why)

        self.run_worker(run, thread=True, exclusive=exclusive, group=group)

    async def run_action(self, *args: Any, **more: Any) -> bool:
        """Do what a key or a click means; what cannot be read is told."""
        try:
            return await super().run_action(*args, **more)
        except (RrPyError, OSError) as why:
            self.complain(why)
            return True

    def _tell_changed(self) -> None:
        self.post_message(Changed())

    def go(self, row: int, *, remember: bool = True, exact: bool = True) -> None:
        """Put the cursor of the list of events on a row, or a neighbour where the filter hides it."""
        view = self.events.view
        here = self.row
        if remember and here is not None:
            self.visited.leave(here, row)
        if row >= view.done:
            self._pending_row = row
            return
        if exact and not view.has(row):
            hidden = "the filter hides it" if view.query is not None else "a shows all kinds"
            self.notify(f"row {count(row)} is not shown: {hidden}", timeout=4)
        self.events.move_to(view.nearest(row), centre=True)

    def show_view(self, query: Query | None, everything: bool) -> None:
        """Show other rows, the cursor staying where it is as far as possible."""
        here = self.row
        self.query_shown, self.everything = query, everything
        self.search, self.search_note = None, ""
        self.events.highlight = None
        self._pending_row = here
        self.events.show(self.feeder.show(query, everything))

    def take_changes(self) -> None:
        """Show what the feeder has done."""
        rows = self.events
        rows.note = "no event passes the filter" if rows.view.query is not None else "no events"
        if not rows.view.complete:
            rows.note = "nothing before the damage" if self.model.damage else "looking..."
        rows.resize_rows()
        self._settle()
        if self.following and rows.row_count:
            rows.move_to(rows.row_count - 1)
            self.following = self.feeder.live or not rows.view.complete
        if self.model.damage and self.notice != self.model.damage:
            self.notice = self.model.damage
            self.notify(self.model.damage, title="the trace is damaged", severity="error", timeout=10)
        self.tell_status()

    def _settle(self) -> None:
        """Go where one wanted to go as soon as it is there."""
        index = self.model.index
        if self._pending_place:
            try:
                row = row_of_place(index, self._pending_place)
            except RrPyError as why:
                if self.feeder.phase == Phase.INDEXING:
                    return
                self._pending_place = ""
                self.complain(why)
                return
            if self._pending_place.startswith("+") and self.feeder.phase == Phase.INDEXING:
                return
            self._pending_place = ""
            self.go(row, remember=False)
            self.arrived(row)
        if self._pending_row is not None:
            view = self.events.view
            if view.done > self._pending_row or view.complete:
                row, self._pending_row = self._pending_row, None
                self.events.move_to(view.nearest(min(row, max(view.done - 1, 0))), centre=True)

    def arrived(self, row: int) -> None:
        """The place that an address names is there now."""

    def complain(self, why: Exception) -> None:
        """Show an error as a message."""
        remedy = getattr(why, "remedy", "")
        text = str(getattr(why, "message", why))
        self.notify(f"{text}\n{remedy}" if remedy else text, severity="error", timeout=8, markup=False)

    def address(self) -> Address:
        """The address of what is shown."""
        row = self.row
        place = ""
        if row is not None:
            try:
                place = place_of_row(self.model.index, row)
            except (IndexError, TraceError):
                place = ""
        wanted = self.query_shown.text if self.query_shown is not None else ""
        return Address(self.model.path, self.current, place, wanted)

    def tell_status(self) -> None:
        """Write the status line."""
        if not self.going:
            return
        view = self.events.view
        index = self.model.index
        position = f"{count(self.events.position + 1)}/{count(len(view))}" if len(view) else "0"
        parts = [position]
        hidden = index.rows - len(view)
        if view.query is not None:
            parts.append(f"filter: {view.query.text}")
        elif hidden and view.complete:
            parts.append(f"{count(hidden)} hidden (a)")
        if self.search is not None:
            parts.append(f"/{self.search.query.text} {self.search_note}".rstrip())
        if self.feeder.phase == Phase.INDEXING:
            total = max(self.model.reader.total_events, 1)
            parts.append(f"reading {index.rows * 100 // total} %")
        elif not view.complete and self.model.damage:
            parts.append(f"up to the damage, row {count(view.done)}")
        elif not view.complete:
            parts.append(f"filtering {view.done * 100 // max(index.rows, 1)} %")
        if self.feeder.live:
            parts.append("LIVE, following" if self.following else "LIVE (G follows)")
        row = self.row
        place = place_of_row(index, row) if row is not None else ""
        text = "  ".join(parts)
        keys = "? help"
        self.query_one("#status", Static).update(_spread(f" {place}  {text}", f"{keys} ", self.size.width))

    @property
    def keymap_now(self) -> dict[str, str]:
        """Keys by action as they are now."""
        return {id: action.keys for id, action in BY_ID.items()} | self.user_keys

    user_keys: dict[str, str] = {}  # noqa: RUF012


def _spread(left: str, right: str, width: int) -> str:
    room = width - len(right)
    shown = left if len(left) <= room else left[: max(room - 1, 0)] + "…"
    return shown.ljust(room) + right
