"""Places: going to them, marks, bookmarks; and what leaves the program: copies and exports."""

from __future__ import annotations

from pathlib import Path

from textual import events
from textual.worker import get_current_worker

from interfaces.errors import RrPyError
from tracefile import TraceError
from tui.base import Base
from tui.dialogs import Choose
from tui.model.address import row_of_place
from tui.model.decode import line_of, plain_text
from tui.model.export import export, text_line
from tui.model.places import Bookmark
from tui.model.text import clock, count
from tui.model.view import View
from tui.prompt import Prompt

_LINE_MAX = 60


class Placing(Base):
    """Actions about places."""

    _letter_for = ""

    def ask_goto(self) -> None:
        self.query_one(Prompt).ask(
            "goto", "go to: ROW, PID:EVENT, PID/DOMAIN:EVENT or +TIME", check=self.place_problem
        )

    def place_problem(self, text: str) -> str:
        """Why a text is no place; empty for nothing."""
        try:
            self._row_of(text)
        except RrPyError as why:
            return why.message
        return ""

    def go_to_place(self, text: str) -> None:
        """Go to what was typed; a number alone is a row."""
        if text:
            self.show_events()
            self.go(self._row_of(text))

    def _row_of(self, text: str) -> int:
        word = text.strip()
        return row_of_place(self.model.index, f"#{word}" if word.isdecimal() else word)

    def show_events(self) -> None:
        """Show the screen with the list of events."""
        raise NotImplementedError

    def action_travel(self, steps: int) -> None:
        row = self.row
        if row is None:
            return
        there = self.visited.step(steps, row)
        if there is None:
            self.notify("no earlier place" if steps < 0 else "no later place")
        else:
            self.go(there, remember=False)

    def action_mark(self) -> None:
        self._letter_for = "set"
        self.notify("mark: type a letter", timeout=2)

    def action_to_mark(self) -> None:
        self._letter_for = "go"
        self.notify("go to mark: type a letter", timeout=2)

    def take_letter(self, event: events.Key) -> bool:
        """Use a key as the letter that a mark waits for; False where none does."""
        wanted, self._letter_for = self._letter_for, ""
        if not wanted:
            return False
        if event.character and event.character.isalnum():
            if wanted == "set":
                self.set_bookmark(event.character)
            else:
                self.go_to_bookmark(event.character)
        return True

    def set_bookmark(self, name: str) -> None:
        """Name the event under the cursor."""
        row = self.row
        if row is None or not name:
            return
        domain, number = self.model.index.place(row)
        note = plain_text(line_of(self.model.decode(row), self.model.reader))[:_LINE_MAX]
        self.bookmarks.set(Bookmark(name, domain, number, note))
        where = "" if self.bookmarks.saved else f" (not kept: {self.bookmarks.path.parent} is not writable)"
        self.notify(f"{name} marks row {count(row)}{where}", markup=False)

    def go_to_bookmark(self, name: str) -> None:
        """Go to a mark or bookmark."""
        row = self.bookmarks.row(self.model.index, name)
        if row is None:
            self.notify(f"no mark {name}", markup=False)
        else:
            self.show_events()
            self.go(row)

    def action_bookmarks(self) -> None:
        marks = self.bookmarks.all()
        if not marks:
            self.notify("no bookmarks: m and b set them")
            return

        def chosen(answer: str | None) -> None:
            if answer and answer.startswith("-"):
                self.bookmarks.remove(answer[1:])
            elif answer:
                self.go_to_bookmark(answer)

        items = [(mark.name, f"{mark.name:12} d{mark.domain}:{mark.event:<8} {mark.note}") for mark in marks]
        self.push_screen(Choose("Bookmarks (Del removes)", items, removable=True), chosen)

    def action_copy(self, what: str) -> None:
        row = self.row
        if row is None:
            return
        if self.focused is self.detail and what == "line":
            text = self.detail.text()
        elif what == "line":
            text = text_line(self.model, self.model.decode(row))
        else:
            text = str(self.address())
        self.copy_to_clipboard(text)
        self.notify(f"copied: {text.splitlines()[0]}", timeout=3, markup=False)

    def ask_export(self) -> None:
        shown = count(len(self.events.view))
        self.query_one(Prompt).ask("export", f"write {shown} events to (.txt, .jsonl or .csv)")

    def begin_export(self, text: str) -> None:
        """Write the shown events to a file, in a worker."""
        if not text:
            return
        view, path = self.events.view, Path(text).expanduser()
        if not view.complete:
            self.notify("the filter is still at work: what it has found is written")
        self.work(lambda: self._export(view, path), "export", exclusive=False)

    def _export(self, view: View, path: Path) -> None:
        worker = get_current_worker()

        def progress(done: int) -> bool:
            if done % 65_536 == 0:
                self.hand_over(self.notify, f"{count(done)} of {count(len(view))} events", timeout=2)
            return not worker.is_cancelled

        try:
            done = export(self.model, view, path, progress)
        except (RrPyError, TraceError, OSError) as why:
            self.hand_over(self.complain, why)
            return
        self.hand_over(self.notify, f"{count(done)} events in {path}", markup=False)

    def time_here(self) -> str:
        """When the event under the cursor ended, as the list shows it."""
        row = self.row
        return clock(self.model.index.key(row) - self.model.index.zero) if row is not None else ""
