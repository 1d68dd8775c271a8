"""Details, timeline, processes and hangs: asked for in workers, shown when they are there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual import on
from textual.widgets import Static
from textual.worker import get_current_worker

from interfaces.errors import RrPyError
from tracefile import TraceError
from tui.base import Base
from tui.detail import DetailTree
from tui.focus import focus_now
from tui.hangs import TITLE as HANGS_TITLE
from tui.hangs import HangList
from tui.model.detail import Node, detail
from tui.model.processes import Process, processes
from tui.model.query.language import parse
from tui.model.timeline import Timeline, summarise
from tui.processes import ProcessList
from tui.rows import RowList
from tui.timeline import Mark, TimelineView

if TYPE_CHECKING:
    from tui.model.hangs import Hangs
    from tui.model.look import Looker

LANES_MAX = 1000
_DETAIL_DELAY_S = 0.03


def scan_trace(trace: Path) -> Hangs:
    """Scan a trace for hangs; what that needs is imported only now."""
    from tui.model.hangs import scan_trace as scan

    return scan(trace)


class Looking(Base):
    """Actions that look into things."""

    hangs: Hangs | None = None
    environment = "observed"
    _looker: Looker | None = None
    timeline_rows = -1
    """Rows of the index when the timeline was last asked for."""
    _scanned = False

    @property
    def lanes(self) -> TimelineView:
        return self.query_one("#timeline-view", TimelineView)

    # -- the event under the cursor

    def ask_detail(self) -> None:
        """Show the detail of the event under the cursor, soon."""
        self.set_timer(_DETAIL_DELAY_S, self._begin_detail, name="detail")

    def _begin_detail(self) -> None:
        row = self.row
        if not self.detail.display or not self.detail.is_attached:
            return
        if row is None:
            if self._detailed is not None:
                self._detailed = None
                self.detail.say("")
            return
        if self._detailed == row:
            return
        self._detailed = row
        self.work(lambda: self._detail(row), "detail")

    _detailed: int | None = None

    def _detail(self, row: int) -> None:
        try:
            node = detail(self.model, row)
        except (TraceError, IndexError, OSError) as why:
            node = Node(f"cannot be read: {getattr(why, 'message', why)}")
        if not get_current_worker().is_cancelled:
            self.hand_over(self._show_detail, row, node)

    def _show_detail(self, row: int, node: Node) -> None:
        if row == self.row:
            self.detail.show(node)

    def action_toggle_detail(self) -> None:
        shown = not self.detail.display
        self.detail.display = shown
        self._detailed = None
        if shown:
            self.ask_detail()
        else:
            focus_now(self.events)

    def action_look(self, what: str) -> None:
        """Ask a replay about the event under the cursor."""
        row = self.row
        if row is None:
            return
        if not self.detail.display:
            self.action_toggle_detail()
        domain, event = self.model.index.place(row)
        self.notify("replaying...", timeout=2)
        self.work(lambda: self._look(row, domain, event, what), "look")

    def _look(self, row: int, domain: int, event: int, what: str) -> None:
        if self._looker is None:
            from tui.model.look import Looker

            self._looker = Looker(self.model.path)
        try:
            node = self._looker.look(domain, event, what)
        except (RrPyError, OSError) as why:
            if not get_current_worker().is_cancelled:
                self.hand_over(self.complain, why)
            return
        if not get_current_worker().is_cancelled:
            self.hand_over(self._show_looked, row, node)

    def _show_looked(self, row: int, node: Node) -> None:
        if row == self.row:
            self._detailed = row
            self.detail.add(node)

    def close_looker(self) -> None:
        """End the replay that looks into events, if there is one."""
        if self._looker is not None:
            self._looker.close()

    # -- timeline

    def arrived(self, row: int) -> None:
        """Let the timeline begin at the address's place, too."""
        if self.current == "timeline":
            self.lanes.point(self.model.index.task_id(row), self.model.index.key(row))
            self.ask_timeline()

    @on(TimelineView.Wanted)
    def _timeline_wanted(self) -> None:
        self.ask_timeline()

    def ask_timeline(self) -> None:
        """Summarise what the timeline shows, in a worker."""
        view = self.lanes
        if self.current != "timeline" or not self.model.index.rows:
            return
        view.set_whole(*self.model.index.span)
        span, columns = view.span, view.columns
        self.timeline_rows = self.model.index.rows
        self.work(lambda: self._timeline(span, columns), "timeline")
        self._timeline_title()

    def _timeline(self, span: tuple[int, int], columns: int) -> None:
        worker = get_current_worker()
        index = self.model.index
        tasks = list(range(min(len(index.tasks), LANES_MAX)))
        names = [self._task_name(task) for task in tasks]
        timeline = summarise(index, tasks, names, span, columns, lambda: not worker.is_cancelled)
        if not worker.is_cancelled:
            self.hand_over(self._show_timeline, timeline)

    def _task_name(self, task: int) -> str:
        facts = self.model.index.facts(task)
        return f"{facts.tid} {self.model.process_name(facts.domain)}"

    def _show_timeline(self, timeline: Timeline) -> None:
        self.lanes.marks = self._marks()
        self.lanes.show(timeline)
        self._timeline_title()
        more = len(self.model.index.tasks) - LANES_MAX
        if more > 0:
            self.notify(f"{more} more threads are not shown")

    def _timeline_title(self) -> None:
        self.query_one("#timeline-title", Static).update(self.lanes.title())

    def _marks(self) -> list[Mark]:
        """Actions of event loops, and candidates, of a scan that was made."""
        if self.hangs is None:
            return []
        index = self.model.index
        numbers = {(task.domain, task.tid): number for number, task in enumerate(index.tasks)}
        marks = [
            Mark(numbers[loop.domain, loop.task], action.begin, "action")
            for loop in self.hangs.report.loops
            if (loop.domain, loop.task) in numbers
            for action in loop.actions
        ]
        for candidate in self.hangs.report.candidates:
            row = index.row_of(candidate.domain, candidate.event)
            if row is not None:
                marks.append(Mark(index.task_id(row), index.key(row), "hang"))
        return marks

    @on(TimelineView.Pointed)
    def _pointed(self, event: TimelineView.Pointed) -> None:
        """Moving in the timeline moves the list."""
        index = self.model.index
        if self.current != "timeline" or not index.rows:
            return
        row = index.row_at(event.when)
        same = self.events.view.next_where(row - 1, 1, [("task", event.task)])
        if same is None:
            same = self.events.view.next_where(row, -1, [("task", event.task)])
        target = same if same is not None else row
        if target < self.events.view.done:
            self.events.move_to(self.events.view.nearest(target))
        self._timeline_title()

    def action_zoom(self, step: int) -> None:
        if self.current == "timeline":
            self.lanes.zoom(step)
            self._timeline_title()

    def action_pin(self) -> None:
        if self.current == "timeline":
            self.lanes.pin()

    # -- processes

    def ask_processes(self) -> None:
        """Gather the tree of processes, in a worker."""
        self.work(self._processes, "processes")

    def _processes(self) -> None:
        found = processes(self.model.index)
        if not get_current_worker().is_cancelled:
            self.hand_over(self._show_processes, found)

    def _show_processes(self, found: list[Process]) -> None:
        self.query_one(ProcessList).show(found, self.model.index.zero)

    def filter_by_process(self, process: Process) -> None:
        """Show only the events of a process."""
        self.show_view(parse(f"pid == {process.pid}"), self.everything)

    # -- hangs

    def ask_hangs(self) -> None:
        """Scan once, in a worker."""
        if self._scanned:
            return
        self._scanned = True
        self.query_one(HangList).show([], "scanning: the recording is replayed for its stacks...")
        self.work(self._scan, "hangs")

    def _scan(self) -> None:
        try:
            found = scan_trace(self.model.path)
        except (RrPyError, OSError) as why:
            text = f"no candidates: {getattr(why, 'message', why)}"
            self.hand_over(self.query_one(HangList).show, [], text)
            return
        self.hand_over(self._show_scan, found)

    def _show_scan(self, found: Hangs) -> None:
        self.hangs = found
        from hangscan.options import DEFAULT_ENVIRONMENTS

        wanted = self.settings.environment
        usual = next((name for name in DEFAULT_ENVIRONMENTS if name in found.environments), "")
        self.environment = wanted if wanted in found.environments else usual or found.environments[-1]
        self._rank()

    def action_environment(self, step: int) -> None:
        if self.current != "hangs" or self.hangs is None:
            return
        names = self.hangs.environments
        self.environment = names[(names.index(self.environment) + step) % len(names)]
        self.settings.environment = self.environment
        self.settings.save()
        self._rank()

    def _rank(self) -> None:
        if self.hangs is None:
            return
        rows = self.query_one(HangList)
        rows.show(self.hangs.ranked(self.environment), self.hangs.nothing)
        title = f"environment {self.environment} (v: next)"
        notes = self.hangs.report.notes
        if notes:
            title += f"  {notes[0]}"
        self.query_one("#hangs-title", Static).update(f"{HANGS_TITLE}   {title}")
        self._explain()

    @on(RowList.Moved, "#hang-list")
    def _explain(self) -> None:
        hang = self.query_one(HangList).chosen
        tree = self.query_one("#hang-detail", DetailTree)
        if hang is None:
            tree.say("")
        else:
            from tui.model.hangs import explanation

            tree.show(explanation(hang))
