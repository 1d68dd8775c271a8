"""Filling a view: up to damage, with stops; what nobody wants any more ends soon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tui.conftest import indexed
from tracefile import TraceFormatError
from tui.model.columns import BLOCK
from tui.model.query import texts
from tui.model.query.language import parse
from tui.model.trace import TraceModel
from tui.model.view import View

EVENTS = 11 * BLOCK + 5000


def filled(model: TraceModel, text: str) -> View:
    view = model.view(parse(text))
    model.fill(view)
    return view


def test_what_precedes_damage_is_found(traces: Callable[[int], Path], tmp_path: Path) -> None:
    """GIVEN a damaged chunk WHEN filtered THEN all rows of the blocks before it are looked at."""
    data = bytearray(traces(EVENTS).read_bytes())
    with indexed(traces(EVENTS)) as model:
        info = model.reader.domains[1]
        at = info.offsets[120]
        data[at + 80 + model.reader._source.header(at).stored_a + 5] ^= 0xFF
        row = model.index.row_of(1, info.firsts[120])
        assert row is not None
        whole = filled(model, "path ~ db")
    path = tmp_path / "damaged.bin"
    path.write_bytes(data)
    with indexed(path) as model:
        view = model.view(parse("path ~ db"))
        with pytest.raises(TraceFormatError):
            model.fill(view)
        assert view.done == row // BLOCK * BLOCK > BLOCK
        assert view.rows(0, 100_000) == [found for found in whole.rows(0, 100_000) if found < view.done]


def test_filling_stops_and_goes_on(traces: Callable[[int], Path]) -> None:
    """GIVEN a view that is being filled WHEN stopped THEN it goes on later to the same."""
    with indexed(traces(EVENTS)) as model:
        whole = filled(model, "path ~ db")
        view = model.view(parse("path ~ db"))
        model.fill(view, stopped=lambda: True)
        assert view.done == 0
        model.fill(view, lambda: False)
        assert 0 < view.done < model.index.rows
        model.fill(view, lambda: view.done < 5 * BLOCK)
        assert view.done < model.index.rows
        model.fill(view)
        assert [mask.tobytes() for _, mask in view.masks()] == [m.tobytes() for _, m in whole.masks()]


def test_a_slow_condition_ends_within_a_block(
    traces: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN a condition that decodes event after event WHEN another view is wanted THEN it stops."""
    asked: list[int] = []
    text_of = texts.text_of

    def counted(model: TraceModel, row: int) -> str:
        asked.append(row)
        return text_of(model, row)

    monkeypatch.setattr(texts, "text_of", counted)
    with indexed(traces(20_000)) as model:
        view = model.view(parse("text ~ users"))
        model.fill(view, stopped=lambda: len(asked) >= 3)
        assert len(asked) == 3
        assert view.done == 0
        model.fill(view)
        assert view.complete
        assert len(view)
