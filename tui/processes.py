"""The list of processes: a tree of rows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment

from tui.model.processes import Process
from tui.model.text import clock, count
from tui.rows import RowList, cut
from tui.styles import BOLD, DIM, ROLES

TITLE = "    pid  status             threads     events      start        end  command"


class ProcessList(RowList):
    """The tree of recorded processes. Enter filters by the process under the cursor."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.processes: list[Process] = []
        self.zero = 0

    @property
    def row_count(self) -> int:
        return len(self.processes)

    def show(self, processes: list[Process], zero: int) -> None:
        """Show a tree; times count from `zero`."""
        self.processes = processes
        self.zero = zero
        self.resize_rows()

    @property
    def chosen(self) -> Process | None:
        """The process under the cursor."""
        return self.processes[self.position] if self.position < len(self.processes) else None

    def empty_text(self) -> str:
        return "no process was recorded"

    def line(self, position: int, width: int) -> Sequence[Segment]:
        process = self.processes[position]
        end = clock(process.end - self.zero) if process.end else "-"
        status = ROLES["error"] if process.failed else DIM
        narrow = width < 90
        segments = [
            Segment(f"{process.pid:>7}  ", BOLD),
            Segment(f"{process.status[:18]:18} ", status),
            Segment(f"{process.threads:>7} {count(process.events):>10} "),
            Segment("" if narrow else f"{clock(process.start - self.zero):>10} {end:>10}  ", DIM),
            Segment(process.branch, DIM),
            Segment(process.command or "?"),
        ]
        return cut(segments, width)
