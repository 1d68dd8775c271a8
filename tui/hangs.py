"""The list of hang candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.segment import Segment

from tui.rows import RowList, cut
from tui.styles import BOLD, DIM, LONG, SLOW

if TYPE_CHECKING:
    from tui.model.hangs import Hang

_HANG_MS = 1000.0
_LAG_MS = 100.0


class HangList(RowList):
    """Candidates, worst first. Enter goes to the event."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.hangs: list[Hang] = []
        self.note = "scanning..."

    @property
    def row_count(self) -> int:
        return len(self.hangs)

    def show(self, hangs: list[Hang], note: str) -> None:
        """Show candidates; `note` where there are none."""
        self.hangs = hangs
        self.note = note
        self.resize_rows()

    @property
    def chosen(self) -> Hang | None:
        """The candidate under the cursor."""
        return self.hangs[self.position] if self.position < len(self.hangs) else None

    def empty_text(self) -> str:
        return self.note

    def line(self, position: int, width: int) -> Sequence[Segment]:
        hang = self.hangs[position]
        ms = hang.projected_ms
        style = SLOW if ms >= _HANG_MS else LONG if ms >= _LAG_MS else DIM
        segments = [
            Segment(f"{ms:>9.0f} ms ", style),
            Segment(f"{hang.candidate.observed_max_ms:>9.1f} ms ", DIM),
            Segment(f"{hang.candidate.count:>5}x ", BOLD),
            Segment(f"{hang.what}  "),
            Segment(hang.where, DIM),
        ]
        return cut(segments, width)


TITLE = "  projected     observed  often what, where"
