"""A lane for each thread over time; moving in it moves the list of events, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message

from tui.model.text import clock, duration
from tui.model.timeline import Lane, State, Timeline
from tui.rows import RowList
from tui.styles import BOLD, DIM

LABEL = 22
_GLYPHS = {State.NONE: " ", State.RUNNING: "▒", State.CALL: "█", State.BATON: "░", State.WAITING: "─",
           State.SLOW: "▓"}  # fmt: skip
_STYLES = {
    State.NONE: Style(), State.RUNNING: Style(color="green"), State.CALL: Style(color="cyan"),
    State.BATON: Style(color="magenta"), State.WAITING: Style(color="bright_black"),
    State.SLOW: Style(color="red"),
}  # fmt: skip
LEGEND = "▒ running  █ in calls  ▓ slow  ▄ failed  ─ waiting  ░ for its turn  ! hang"
_NARROWEST_NS = 1000
_STEP = 4


@dataclass(frozen=True, slots=True)
class Mark:
    """Something to show on a lane at a moment: "action" begins there, or "hang" is a candidate."""

    task: int
    when: int
    kind: str


class TimelineView(RowList):
    """Lanes of threads. The cursor is a lane (up, down) and a moment (left, right)."""

    class Wanted(Message):
        """Another part of the run, or other lanes, must be summarised."""

    class Pointed(Message):
        """The cursor is at another moment or lane."""

        def __init__(self, task: int, when: int) -> None:
            super().__init__()
            self.task = task
            self.when = when

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.timeline: Timeline | None = None
        self.whole = (0, 1)
        self.span = (0, 1)
        self.when = 0
        self.marks: list[Mark] = []
        self.pinned: list[int] = []
        self._fresh = True
        self._wanted: int | None = None

    @property
    def row_count(self) -> int:
        return len(self.timeline.lanes) if self.timeline is not None else 0

    @property
    def columns(self) -> int:
        """Columns that show time."""
        return max(self.size.width - LABEL - 2, 1)

    @property
    def lane(self) -> Lane | None:
        """The lane under the cursor."""
        lanes = self.timeline.lanes if self.timeline is not None else []
        return lanes[self.position] if self.position < len(lanes) else None

    def set_whole(self, start: int, end: int) -> None:
        """Tell how long the run is (so far)."""
        showed_all = self._fresh or self.span == self.whole
        self.whole = (start, max(end, start + 1))
        if showed_all:
            self.span = self.whole
        if self._fresh:
            self.when, self._fresh = start, False

    def show(self, timeline: Timeline) -> None:
        """Show lanes, the pinned ones first."""
        before = self.lane
        wanted = self._wanted if self._wanted is not None else before.task if before is not None else None
        self._wanted = None
        order = {task: place for place, task in enumerate(self.pinned)}
        timeline.lanes.sort(key=lambda lane: order.get(lane.task, len(order)))
        self.timeline = timeline
        self.resize_rows()
        if wanted is not None:
            self.put_on(wanted)

    def point(self, task: int, when: int) -> None:
        """Follow the list of events: put the cursor on a thread and a moment, and show both."""
        self.when = when
        self._wanted = None if self.put_on(task) else task
        if not self.span[0] <= when <= self.span[1]:
            width = self.span[1] - self.span[0]
            self._look_at(when - width // 2, width)
        self.refresh()

    def put_on(self, task: int) -> bool:
        """Put the cursor on a thread's lane; whether it is there."""
        lanes = self.timeline.lanes if self.timeline is not None else []
        for place, lane in enumerate(lanes):
            if lane.task == task:
                with self.prevent(RowList.Moved):
                    self.move_to(place)
                return True
        return False

    def pin(self) -> None:
        """Keep the lane on top, or no longer."""
        lane = self.lane
        if lane is None or self.timeline is None:
            return
        if lane.task in self.pinned:
            self.pinned.remove(lane.task)
        else:
            self.pinned.append(lane.task)
        self.show(self.timeline)
        self.refresh()

    def zoom(self, step: int) -> None:
        """Closer (1), farther (-1) around the cursor, or all (0)."""
        if step == 0:
            self._look_at(self.whole[0], self.whole[1] - self.whole[0])
            return
        width = self.span[1] - self.span[0]
        new = max(width // _STEP if step > 0 else width * _STEP, _NARROWEST_NS)
        share = (self.when - self.span[0]) / max(width, 1)
        self._look_at(int(self.when - new * share), new)

    def move(self, columns: int) -> None:
        """Move the cursor in time, and what is shown where it would leave the screen."""
        width = self.span[1] - self.span[0]
        self.when = max(self.whole[0], min(self.when + columns * width // self.columns, self.whole[1]))
        if not self.span[0] <= self.when < self.span[1]:
            self._look_at(self.when - (0 if columns < 0 else width), width)
        self.refresh()
        self._tell()

    def _look_at(self, start: int, width: int) -> None:
        whole = self.whole[1] - self.whole[0]
        width = max(min(width, whole), min(_NARROWEST_NS, whole))
        start = max(self.whole[0], min(start, self.whole[1] - width))
        self.span = (start, start + width)
        self.post_message(self.Wanted())
        self.refresh()

    def _tell(self) -> None:
        lane = self.lane
        if lane is not None:
            self.post_message(self.Pointed(lane.task, self.when))

    def watch_position(self, old: int, new: int) -> None:
        super().watch_position(old, new)
        self.refresh()

    def on_row_list_moved(self, event: RowList.Moved) -> None:
        self._tell()

    def on_click(self, event: events.Click) -> None:
        """A click chooses lane and moment."""
        column = event.x - LABEL
        if self.timeline is not None and 0 <= column < self.columns:
            width = self.span[1] - self.span[0]
            self.when = self.span[0] + column * width // self.columns
        self.refresh()
        self.call_after_refresh(self._tell)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel zooms with ctrl, and scrolls the lanes without."""
        if event.ctrl:
            event.stop()
            event.prevent_default()
            self.zoom(-1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        if event.ctrl:
            event.stop()
            event.prevent_default()
            self.zoom(1)

    def on_resize(self, event: events.Resize) -> None:
        self.post_message(self.Wanted())

    def empty_text(self) -> str:
        return "no thread has made a call"

    def title(self) -> str:
        """The line above the lanes: what part is shown, and where the cursor is."""
        start, end = self.span
        here = clock(self.when - self.whole[0])
        return (
            f"{clock(start - self.whole[0])} to {clock(end - self.whole[0])} s "
            f"({duration(end - start)})  cursor {here}\n{LEGEND}"
        )

    def line(self, position: int, width: int) -> Sequence[Segment]:
        timeline = self.timeline
        if timeline is None:
            return []
        lane = timeline.lanes[position]
        pin = "*" if lane.task in self.pinned else " "
        chosen = position == self.position
        segments = [Segment(f"{pin}{lane.name[: LABEL - 2]:{LABEL - 1}}", BOLD if chosen else DIM)]
        same = (timeline.start, timeline.end) == self.span and timeline.columns == self.columns
        cells = [_cell(lane, column) for column in range(timeline.columns)] if same else []
        for mark in self.marks:
            column = timeline.column_of(mark.when)
            if same and mark.task == lane.task and 0 <= column < len(cells):
                cells[column] = ("!", Style(color="red", bold=True)) if mark.kind == "hang" else (
                    "┆", cells[column][1])  # fmt: skip
        cursor = timeline.column_of(self.when) if same else -1
        if cells and 0 <= cursor <= len(cells):
            at = min(cursor, len(cells) - 1)
            glyph, style = cells[at]
            cells[at] = (glyph if glyph != " " else "│", style + Style(reverse=True))
        segments.extend(Segment(glyph, style) for glyph, style in cells)
        if not same:
            segments.append(Segment("...", DIM))
        return segments


def _cell(lane: Lane, column: int) -> tuple[str, Style]:
    state = State(int(lane.states[column]))
    if lane.failed[column] and state not in (State.SLOW, State.NONE):
        return "▄", Style(color="yellow")
    return _GLYPHS[state], _STYLES[state]
