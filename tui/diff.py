"""Two recordings side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static
from textual.worker import get_current_worker

from interfaces.errors import RrPyError
from tracefile import TraceError, TraceReader
from tracefile.align import Side
from tui.app import RrPyTui
from tui.focus import focus_now
from tui.model.address import Address
from tui.model.diff import Comparison
from tui.model.text import count
from tui.model.trace import TraceModel
from tui.rows import RowList, cut
from tui.styles import BOLD, DIM

_MARKS = {Side.SAME: " ", Side.CHANGED: "|", Side.ONLY_A: "<", Side.ONLY_B: ">"}
_STYLES = {
    Side.SAME: Style(),
    Side.CHANGED: Style(color="yellow"),
    Side.ONLY_A: Style(color="red"),
    Side.ONLY_B: Style(color="green"),
}


class DiffList(RowList):
    """The lines of a comparison. Enter goes to the event of A."""

    def __init__(self, comparison: Comparison, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.comparison = comparison

    @property
    def row_count(self) -> int:
        return len(self.comparison)

    def empty_text(self) -> str:
        return "comparing..." if not self.comparison.complete else "both traces are empty"

    def line(self, position: int, width: int) -> Sequence[Segment]:
        row = self.comparison.row(position)
        if row.title:
            return cut([Segment(f"── {row.title} ", BOLD)], width)
        half = max((width - 3) // 2, 1)
        try:
            left, right = self.comparison.text(row, True), self.comparison.text(row, False)
        except (TraceError, IndexError, OSError) as why:
            left = right = f"cannot be read: {getattr(why, 'message', why)}"
        style = _STYLES[row.side]
        return [
            *cut([Segment(left, style)], half),
            Segment(f" {_MARKS[row.side]} ", style + BOLD if row.side != Side.SAME else DIM),
            *cut([Segment(right, style)], half),
        ]


class DiffTui(RrPyTui):
    """Browses a trace beside another one."""

    def __init__(self, model: TraceModel, other: TraceReader, address: Address | None = None) -> None:
        super().__init__(model, address or Address(model.path, "diff"))
        self.comparison = Comparison(TraceReader.open(model.path), other)

    def compose_more(self) -> ComposeResult:
        with Vertical(id="diff"):
            yield Static("comparing...", id="diff-title", classes="title", markup=False)
            yield DiffList(self.comparison, id="diff-list")

    def on_mount(self) -> None:
        self.run_worker(self._compare, thread=True, exclusive=True, group="diff")

    def on_unmount(self) -> None:
        self.comparison.a.close()

    def address(self) -> Address:
        """The address of what is shown; that of the comparison names both traces."""
        here = super().address()
        if self.current != "diff":
            return here
        return dataclasses.replace(here, other=Path(self.comparison.b.path))

    @property
    def differences(self) -> DiffList:
        """The list of the comparison."""
        return self.query_one(DiffList)

    def action_screen(self, name: str) -> None:
        super().action_screen(name)
        if name == "diff":
            focus_now(self.differences)

    def action_hit(self, step: int) -> None:
        """On the comparison: the next difference."""
        if self.current != "diff":
            super().action_hit(step)
            return
        found = self.comparison.next_difference(self.differences.position, step)
        if found is None:
            self.notify("no other difference")
        else:
            self.differences.move_to(found, centre=True)

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        """Enter on a line of the comparison."""
        if event.rows.id != "diff-list":
            return
        row = self.comparison.row(event.position)
        place = self.comparison.event(row, True) if not row.title else None
        if place is None:
            self.notify("this line has no event of A")
            return
        target = self.model.index.row_of(*place)
        if target is not None:
            self.show_events()
            self.go(target)

    def _compare(self) -> None:
        worker = get_current_worker()
        try:
            self.comparison.compute(lambda: not worker.is_cancelled)
        except (RrPyError, OSError) as why:
            self.hand_over(self.complain, why)
        if not worker.is_cancelled:
            self.hand_over(self._compared)

    def _compared(self) -> None:
        rows = self.differences
        rows.resize_rows()
        first = self.comparison.position_of_first()
        if first is not None:
            rows.move_to(first, centre=True)
        a, b = self.comparison.a.path, self.comparison.b.path
        found = sum(one.different for one in self.comparison.alignments)
        text = f"{count(found)} events differ (n: next)" if found else "no difference in what matters"
        self.query_one("#diff-title", Static).update(f"A {a}   B {b}   {text}")

    def _focus_list(self) -> None:
        if self.current == "diff":
            focus_now(self.differences)
        else:
            super()._focus_list()
