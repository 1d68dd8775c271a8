"""Rows, columns, views: the same as going through the trace event by event."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interfaces.abi import EVENT_DTYPE, Kind
from tests.tui.conftest import Story, indexed
from tracefile import DomainStart, TraceReader, TraceWriter
from tui.model.columns import BLOCK, Block, Columns, errors_of
from tui.model.feeder import Feeder
from tui.model.index import EventIndex
from tui.model.trace import TraceModel
from tui.model.view import QUIET_KINDS


def test_no_model_module_imports_textual_or_click() -> None:
    """GIVEN all modules of tui.model WHEN they are imported THEN neither textual nor click is."""
    code = (
        "import pkgutil, sys, importlib, tui.model\n"
        "for module in pkgutil.walk_packages(tui.model.__path__, 'tui.model.'):\n"
        "    importlib.import_module(module.name)\n"
        "found = [name for name in sys.modules if name.split('.')[0] in ('textual', 'click')]\n"
        "assert not found, found\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_rows_have_the_order_of_the_trace(small: Path) -> None:
    """GIVEN two domains WHEN they are indexed THEN rows come as `TraceReader.merged` yields events."""
    model = indexed(small)
    index = model.index
    expected = [(event.domain, event.number) for event in model.reader.merged()]
    assert index.rows == len(expected)
    assert [index.place(row) for row in range(0, index.rows, 37)] == expected[::37]
    for row in range(0, index.rows, 501):
        assert index.row_of(*expected[row]) == row


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=30), min_size=1, max_size=4), st.integers(1, 7)
)
def test_any_interleaving_is_merged_like_the_trace_file_does(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[int]], chunk: int
) -> None:
    """GIVEN domains whose clocks run anyhow WHEN indexed THEN the order is that of `merged`."""
    path = tmp_path_factory.mktemp("merge") / "t.bin"
    with TraceWriter.create(path, {}) as writer:
        for domain, gaps in enumerate(steps, 1):
            start = DomainStart(domain=domain, kind="exec", pid=domain, time=1)
            writer.add_domain(start)
            events = np.zeros(len(gaps), EVENT_DTYPE)
            events["kind"], events["task"] = Kind.SYSCALL, domain
            events["time_out"] = events["time_in"] = 1 + np.cumsum(gaps)
            for at in range(0, len(gaps), chunk):
                writer.add_events(domain, at, events[at : at + chunk].tobytes(), b"")
        writer.close({})
    with TraceReader.open(path) as reader:
        index = EventIndex(reader)
        index.update()
        expected = [(event.domain, event.number) for event in reader.merged()]
        assert [index.place(row) for row in range(index.rows)] == expected


def test_indexing_can_be_interrupted_and_goes_on(small: Path) -> None:
    """GIVEN an update that is stopped after each step WHEN repeated THEN the index is that of one go."""
    whole = indexed(small).index
    with TraceReader.open(small) as reader:
        index = EventIndex(reader)
        while index.update(lambda: False):
            pass
        assert index.rows == whole.rows
        rows = range(0, whole.rows, 97)
        assert [index.place(row) for row in rows] == [whole.place(row) for row in rows]
        assert [index.key(row) for row in rows] == [whole.key(row) for row in rows]


def test_a_growing_trace_keeps_its_row_numbers(story: Story) -> None:
    """GIVEN a trace that is being written WHEN more is added THEN known rows stay and new ones follow."""
    story.domain(1, 100)
    story.call("getpid")
    story.writer.flush()
    with TraceReader.open(story.path) as reader:
        assert reader.live
        index = EventIndex(reader)
        assert index.update()
        before = [index.place(row) for row in range(index.rows)]
        story.call("getppid")
        story.writer.flush()
        assert reader.refresh()
        assert index.update()
        assert [index.place(row) for row in range(index.rows)] == [*before, (1, 1)]
        assert not index.update()
    story.close().close()


def test_times_find_rows(small: Path) -> None:
    """GIVEN a moment WHEN asked for its row THEN it is the first that ended then or later."""
    index = indexed(small).index
    for row in (0, 1, 4_000, index.rows - 1):
        found = index.row_at(index.key(row))
        assert index.key(found) == index.key(row)
        assert found <= row
    assert index.row_at(index.span[1] + 1) == index.rows - 1
    assert index.row_at(0) == 0


def test_a_full_block_keeps_times_within_its_resolution() -> None:
    """GIVEN a block that spans hours WHEN it is packed THEN times are off by less than a part in 2^31."""
    block = Block(0)
    count = BLOCK
    when = np.linspace(1e12, 1e12 + 2e13, count).astype(np.uint64)
    block.append(
        Columns(
            np.zeros(count, np.uint32), np.zeros(count, np.uint16), np.zeros(count, np.uint8),
            np.zeros(count, np.uint8), np.zeros(count, np.float32), np.full(count, -9, np.int32), when,
        )
    )  # fmt: skip
    assert not block.room
    error = np.abs(block.times().astype(np.int64) - when.astype(np.int64))
    assert error.max() <= 2e13 / 2**31
    assert (np.diff(block.times().astype(np.int64)) >= 0).all()


def test_errors_are_those_of_calls() -> None:
    """GIVEN results of calls and other events WHEN reduced THEN only failed calls have an error."""
    kinds = np.array([Kind.SYSCALL, Kind.SYSCALL, Kind.RDTSC, Kind.SYSCALL], np.uint8)
    results = np.array([-2, 7, -2, -5000], np.int64)
    assert errors_of(kinds, results).tolist() == [2, 0, 0, 0]


def test_a_view_counts_what_passes(small: Path) -> None:
    """GIVEN a filled view WHEN positions are asked for THEN rows and positions are each other's inverse."""
    model = indexed(small)
    view = model.view()
    model.fill(view)
    assert len(view) == model.index.rows
    for position in range(0, len(view), 997):
        row = view.row(position)
        assert view.has(row)
        assert view.position(row) == position
    with pytest.raises(IndexError):
        view.row(len(view))


def test_quiet_kinds_are_shown_on_demand(story: Story) -> None:
    """GIVEN events about recording WHEN all are asked for THEN they are in the view, else not."""
    story.domain(1, 100)
    story.call("getpid")
    for kind in sorted(QUIET_KINDS):
        story.event(kind)
    story.close().close()
    model = indexed(story.path)
    usual, everything = model.view(), model.view(everything=True)
    model.fill(usual)
    model.fill(everything)
    assert (len(usual), len(everything)) == (1, 1 + len(QUIET_KINDS))


def test_threads_are_walked(traces: Callable[[int], Path]) -> None:
    """GIVEN events of several threads WHEN going from one of a thread to the next THEN none is missed."""
    model = indexed(traces(20_000))
    view = model.view()
    model.fill(view)
    task = model.index.task_id(1000)
    found: list[int] = []
    row = 1000
    while len(found) < 200 and (following := view.next_where(row, 1, [("task", task)])) is not None:
        found.append(following)
        row = following
    expected = [r for r in range(1001, found[-1] + 1) if model.index.task_id(r) == task]
    assert found == expected
    assert view.next_where(found[0], -1, [("task", task)]) == 1000


def test_damage_ends_the_index_and_is_told(traces: Callable[[int], Path], tmp_path: Path) -> None:
    """GIVEN a trace with a damaged chunk WHEN indexed THEN what precedes is there and the reason is known."""
    path = tmp_path / "damaged.bin"
    data = bytearray(traces(20_000).read_bytes())
    with TraceReader.open(traces(20_000)) as reader:
        offset = reader.domains[1].offsets[2]
    data[offset + 200] ^= 0xFF
    path.write_bytes(data)
    model = TraceModel.open(path)
    feeder = Feeder(model, lambda: None)
    feeder._index()
    assert "damaged" in model.damage
    assert 0 < model.index.rows < 20_000
