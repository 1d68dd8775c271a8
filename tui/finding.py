"""Searching and filtering."""

from __future__ import annotations

import re
from collections import deque

import numpy as np
from textual.worker import get_current_worker

from interfaces.abi import Kind
from interfaces.calls import name_of
from interfaces.libspec import naming
from interfaces.names.signals import errno_name
from tracefile import TraceError
from tui.base import Base
from tui.dialogs import Choose
from tui.model.columns import BLOCK_SHIFT, kind_of_code, nr_of_code
from tui.model.query.complete import Completion, complete
from tui.model.query.fields import Field
from tui.model.query.language import QueryError, parse, quote
from tui.model.search import Search, search_query
from tui.model.timeline import SLOW_NS
from tui.prompt import Prompt


def filter_problem(text: str) -> str:
    """What is wrong with a filter; empty for nothing."""
    try:
        parse(text)
    except QueryError as why:
        return why.message
    return ""


def search_problem(text: str) -> str:
    """What is wrong with a search."""
    try:
        search_query(text)
    except QueryError as why:
        return why.message
    return ""


class Finding(Base):
    """Actions that find events."""

    _hits_wanted: deque[int] | None = None
    """Steps that were asked for while a hit is looked for; None while none is."""

    def ask_filter(self) -> None:
        text = self.query_shown.text + " " if self.query_shown is not None else ""
        self.query_one(Prompt).ask(
            "filter", "filter: Tab completes, empty shows all", text,
            check=filter_problem, propose=self._proposals,
        )  # fmt: skip

    def ask_search(self) -> None:
        self.query_one(Prompt).ask("search", "search: text, or /regex/", check=search_problem)

    def apply_filter(self, text: str) -> None:
        """Show only the events that pass."""
        self.show_view(parse(text), self.everything)
        self.tell_status()

    def begin_search(self, text: str) -> None:
        """Search from the cursor on."""
        query = search_query(text)
        if query is None:
            self.action_clear()
            return
        self.search = Search(self.model, self.events.view, query)
        self._hits_wanted = None
        self.search_note = "..."
        is_regex = len(text) > 2 and text[0] == "/" and text[-1] == "/"
        flags = 0 if any(char.isupper() for char in text) else re.IGNORECASE
        self.events.highlight = re.compile(text[1:-1] if is_regex else re.escape(text), flags)
        self.events.refresh()
        self._find(1, include_here=True)

    def action_hit(self, step: int) -> None:
        if self.search is None:
            self.notify("nothing is searched for: / searches")
        elif self._hits_wanted is not None:
            self._hits_wanted.append(step)
        else:
            self._find(step)

    def action_clear(self) -> None:
        """Take the search away, or else the filter."""
        if self.search is not None:
            self.search, self.search_note = None, ""
            self.events.highlight = None
            self.events.refresh()
        elif self.query_shown is not None:
            self.show_view(None, self.everything)
        self.tell_status()

    def action_everything(self) -> None:
        self.show_view(self.query_shown, not self.everything)
        self.notify("all kinds of events" if self.everything else "calls and signals")

    def action_same_thread(self, step: int) -> None:
        row = self.row
        if row is not None:
            self._next(row, step, [("task", self.model.index.task_id(row))], "no other event of this thread")

    def action_next_failed(self, step: int) -> None:
        self._next_by(step, "error", 1, "no other failed call")

    def action_next_slow(self, step: int) -> None:
        self._next_by(step, "took", SLOW_NS, "no other slow call")

    def action_terms(self) -> None:
        """Offer conditions that this event fulfils."""
        row = self.row
        if row is None:
            return
        terms = self._terms(row)

        def chosen(answer: str | None) -> None:
            if answer:
                known = f"{self.query_shown.text} and " if self.query_shown is not None else ""
                self.apply_filter(known + answer)

        self.push_screen(Choose("Show only events with", [(term, term) for term in terms]), chosen)

    def _terms(self, row: int) -> list[str]:
        event = self.model.decode(row)
        index = self.model.index
        task = index.tasks[index.task_id(row)]
        is_call = event.is_call or (event.is_library and event.function is not None)
        terms = [f"call == {event.name}"] if is_call else [f"kind == {event.name.lower()}"]
        terms += [f"tid == {task.tid}", f"pid == {index.pids[index.task_id(row)]}"]
        names = [*event.paths, *(self.model.label(row, fd) for fd in event.descriptors)]
        terms += [f"path == {quote(name)}" for name in dict.fromkeys(names) if name]
        terms += [f"fd == {fd}" for fd in dict.fromkeys(event.descriptors)]
        if event.error:
            terms.append(f"errno == {errno_name(event.error)}")
        if is_call:
            terms.append(f"duration >= {event.took}ns")
        return terms + [f"not {term}" for term in terms[:3]]

    def _next(self, row: int, step: int, wanted: list[tuple[str, int]], nothing: str) -> None:
        found = self.events.view.next_where(row, step, wanted)
        if found is None:
            self.notify(nothing)
        else:
            self.go(found, remember=False)

    def _next_by(self, step: int, column: str, least: float, nothing: str) -> None:
        row = self.row
        if row is None:
            return
        found = self.events.view.next_at_least(row, step, column, least)
        if found is None:
            self.notify(nothing)
        else:
            self.go(found)

    def _find(self, step: int, *, include_here: bool = False) -> None:
        search, row = self.search, self.row
        if search is None or row is None:
            return
        start = row - step if include_here else row
        self._hits_wanted = deque()
        self.work(lambda: self._search(search, start, step), "search")

    def _search(self, search: Search, row: int, step: int) -> None:
        """Runs in a worker: go to the next hit, then count all."""
        try:
            self._look_for(search, row, step)
        except (TraceError, OSError):
            self.hand_over(self._cannot_search, search)
            raise

    def _cannot_search(self, search: Search) -> None:
        if search is self.search:
            self._hits_wanted = None
            self.search_note = "cannot be read"
            self.tell_status()

    def _look_for(self, search: Search, row: int, step: int) -> None:
        worker = get_current_worker()

        def go_on() -> bool:
            return not worker.is_cancelled and self.search is search

        hit = search.next(row, step, go_on)
        wrapped = False
        if hit is None and go_on():
            hit, wrapped = search.next(-1 if step > 0 else search.view.index.rows, step, go_on), True
        if go_on():
            self.hand_over(self._found, search, hit, wrapped)
        if hit is not None and not search.complete:
            total = search.count(go_on)
            if go_on():
                self.hand_over(self._counted, search, total)

    def _found(self, search: Search, hit: int | None, wrapped: bool) -> None:
        if search is not self.search:
            return
        wanted, self._hits_wanted = self._hits_wanted, None
        if hit is None:
            self.search_note = "not found"
            self.notify(f"{search.query.text!r} is not in the events shown", markup=False)
        else:
            if wrapped:
                self.notify("from the other end")
            self.go(hit)
            self.search_note = "..."
            if search.complete:
                self._counted(search, search.count())
            if wanted:
                self._find(wanted.popleft())
                self._hits_wanted = wanted
        self.tell_status()

    def _counted(self, search: Search, total: int) -> None:
        if search is self.search:
            row = self.row
            ordinal = search.ordinal(row) if row is not None else None
            self.search_note = f"{ordinal or '-'}/{total}"
            self.tell_status()

    def _proposals(self, text: str, cursor: int) -> list[Completion]:
        return complete(text, cursor, self._values)

    def _values(self, field: Field) -> list[str]:
        """Values of this trace for a field."""
        index = self.model.index
        match field.name:
            case "call":
                return self._calls()
            case "pid":
                return [str(pid) for pid in dict.fromkeys(index.pids)]
            case "tid":
                return [str(task.tid) for task in index.tasks]
            case "process":
                return list(
                    dict.fromkeys(quote(info.comm) for info in list(self.model.reader.domains.values()))
                )
            case "errno":
                row = self.row
                error = self.model.decode(row).error if row is not None else 0
                return [errno_name(error)] if error else []
            case _:
                return []

    def _calls(self) -> list[str]:
        """Names of the calls in the block around the cursor, most frequent first."""
        row = self.row or 0
        blocks = self.model.index.blocks
        if not blocks:
            return []
        block = blocks[min(row >> BLOCK_SHIFT, len(blocks) - 1)]
        counts = np.bincount(block.code[: block.count])
        return list(
            dict.fromkeys(
                name for code in np.argsort(-counts).tolist() if counts[code] and (name := _call_name(code))
            )
        )


def _call_name(code: int) -> str:
    """What a code calls; empty where it is no call."""
    if kind_of_code(code) == Kind.SYSCALL:
        return name_of(nr_of_code(code))
    function = naming.known().get(nr_of_code(code)) if kind_of_code(code) == Kind.LIBCALL else None
    return function.name if function is not None else ""
