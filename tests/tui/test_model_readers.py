"""Screens read the index and the view in their own threads while a worker adds to them."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tui.model.columns import Mask
from tui.model.processes import processes
from tui.model.query.distinct import Places
from tui.model.search import Search, search_query
from tui.model.timeline import summarise
from tui.model.trace import TraceModel
from tui.model.view import View


@pytest.fixture(autouse=True)
def often_switched() -> Iterator[None]:
    """Threads take turns after each few instructions, so that each finds the others in the middle."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def _timeline(model: TraceModel, view: View) -> None:
    tasks = range(len(model.index.tasks))
    summarise(model.index, tasks, [""] * len(tasks), model.index.span, 100)


def _list(model: TraceModel, view: View) -> None:
    view.next_where(view.done - 500, 1, [("task", 0)])
    view.next_at_least(view.done - 500, 1, "took", 1e6)


def _places(model: TraceModel, view: View) -> None:
    index = model.index
    index.row_at(index.span[1])
    row = index.rows - 1
    assert index.row_of(*index.place(row)) == row
    index.previous_of_task(row)
    model.label(row, 5)
    processes(index)
    query = search_query("users.db")
    assert query is not None
    Search(model, view, query).next(view.done - 5000, 1)


LOOKS = (_timeline, _list, _places)


def test_readers_do_not_mind_what_is_added(traces: Callable[[int], Path]) -> None:
    """GIVEN threads that read WHEN the index and a view grow meanwhile THEN nothing breaks."""
    wrong: list[str] = []
    done = threading.Event()
    with TraceModel.open(traces(1_000_000)) as model:
        view = model.view()
        looked = [threading.Semaphore(0) for _ in LOOKS]

        def read(look: Callable[[TraceModel, View], None], mine: threading.Semaphore) -> None:
            try:
                while not done.is_set():
                    if model.index.rows:
                        look(model, view)
                        mine.release()
            except Exception:
                wrong.append(traceback.format_exc())
                mine.release()

        readers = [threading.Thread(target=read, args=one) for one in zip(LOOKS, looked, strict=True)]
        for reader in readers:
            reader.start()

        def added() -> bool:
            model.fill(view)
            return not wrong

        model.index.update(added)
        for mine in looked:
            assert mine.acquire(timeout=60)
        done.set()
        for reader in readers:
            reader.join()
        assert not wrong
        assert view.done == model.index.rows == 1_000_000


def test_rows_that_come_while_places_are_looked_up(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN rows that are added in the middle of a look-up WHEN they are asked for THEN they are there."""
    with TraceModel.open(small) as model:
        model.index.update()
        view = model.view(everything=True)
        block = model.index.blocks[0]
        view.extend(block, np.ones(1, np.bool_))
        found = np.flatnonzero

        def adds(mask: Mask) -> Places:
            places = found(mask)
            monkeypatch.undo()
            view.extend(block, np.ones(1, np.bool_))
            return places

        monkeypatch.setattr(np, "flatnonzero", adds)
        assert view.row(0) == 0
        assert view.row(1) == 1
