"""Searching: hits in both directions, their number, and stopping in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tui.conftest import indexed
from tui.model.columns import BLOCK
from tui.model.decode import Decoded
from tui.model.query.language import Compare, Or, QueryError, parse
from tui.model.search import Search, search_query
from tui.model.trace import TraceModel


@pytest.fixture
def server(traces: Callable[[int], Path]) -> TraceModel:
    return indexed(traces(5_000))


def test_search_goes_both_ways_and_counts(server: TraceModel) -> None:
    """GIVEN a search WHEN going on and back THEN hits come in order, and each has its number."""
    view = server.view()
    server.fill(view)
    query = search_query("users.db")
    assert query is not None
    search = Search(server, view, query)
    first = search.next(-1, 1)
    assert first is not None
    second = search.next(first, 1)
    assert second is not None
    assert search.next(second, -1) == first
    assert search.ordinal(first) is None
    total = search.count()
    assert search.complete
    assert search.ordinal(second) == 2
    assert search.is_hit(first)
    events = [server.decode(row) for row in range(server.index.rows)]
    assert total == sum(any("users.db" in p for p in e.paths) or _label(server, e) for e in events)


def _label(model: TraceModel, event: Decoded) -> bool:
    return any("users.db" in model.label(event.row, fd) for fd in event.descriptors)


def test_search_minds_case_only_with_capitals() -> None:
    """GIVEN search texts WHEN made THEN capitals matter only where there are some, /x/ is a pattern."""
    for text, line, hit in [
        ("abc", "xABCx", True), ("ABC", "abc", False), ("/a.c/", "aXc", True), ("a.c", "aXc", False),
    ]:  # fmt: skip
        query = search_query(text)
        assert query is not None
        assert isinstance(query.root, Or)
        part = query.root.parts[0]
        assert isinstance(part, Compare)
        assert part.pattern is not None
        assert bool(part.pattern.match(line)) is hit
    with pytest.raises(QueryError):
        search_query("/(/")
    assert search_query("") is None


def _search(model: TraceModel, text: str) -> Search:
    view = model.view()
    model.fill(view)
    query = search_query(text)
    assert query is not None
    return Search(model, view, query)


def test_hits_over_many_blocks_are_those_of_the_filter(traces: Callable[[int], Path]) -> None:
    """GIVEN hits far apart WHEN searched near and far, both ways THEN all are met and counted in order."""
    with indexed(traces(2 * BLOCK + 9000)) as model:
        view = model.view(parse("errno == ENOENT"))
        model.fill(view)
        expected = view.rows(0, len(view))
        assert expected[-1] > 2 * BLOCK
        search = _search(model, "ENOENT")
        last = expected[-1]
        assert search.next(expected[3], 1) == expected[4]
        assert search.next(last, 1) is None
        assert search.next(last + 1, -1) == last
        assert search.next(expected[0], -1) is None
        assert search.count() == len(expected)
        assert [search.ordinal(row) for row in (expected[0], last)] == [1, len(expected)]
        assert [row for row in range(BLOCK, BLOCK + 5000) if search.is_hit(row)] == [
            row for row in expected if BLOCK <= row < BLOCK + 5000
        ]


def test_a_search_stops_and_is_repeated(traces: Callable[[int], Path]) -> None:
    """GIVEN a search that is stopped at some place WHEN made anew THEN it finds the same as another one."""
    with indexed(traces(BLOCK + 9000)) as model:
        whole = _search(model, "users.db").count()
        search = _search(model, "users.db")
        for patience in (0, 1, 3):
            left = [patience]

            def go_on(left: list[int] = left) -> bool:
                left[0] -= 1
                return left[0] >= 0

            assert search.count(go_on) <= whole
            assert not search.complete
        assert search.count() == whole
        assert search.complete
