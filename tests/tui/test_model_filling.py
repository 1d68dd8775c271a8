"""Views filled on two processors are those that one fills; what nobody wants any more ends soon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tui.conftest import indexed
from tracefile import TraceFormatError, TraceReader
from tui.model.columns import BLOCK
from tui.model.query import texts
from tui.model.query.language import parse
from tui.model.trace import TraceModel
from tui.model.view import View

EVENTS = 11 * BLOCK + 5000
FILTERS = ('path ~ "*.db"', 'data ~ "brown fox"', "result > 50 and tid == 4712", "text ~ hostname", "")


def filled(model: TraceModel, text: str) -> View:
    view = model.view(parse(text))
    model.fill(view)
    return view


def test_what_precedes_damage_is_found(
    traces: Callable[[int], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN a damaged chunk WHEN filtered by two THEN all rows of the blocks before it are looked at."""
    data = bytearray(traces(EVENTS).read_bytes())
    with TraceReader.open(traces(EVENTS)) as reader:
        at = reader.domains[1].offsets[120]
        header = reader._source.header(at)
        data[at + 80 + header.stored_a + 5] ^= 0xFF
    path = tmp_path / "damaged.bin"
    path.write_bytes(data)
    done = []
    with indexed(path) as model:
        for processors in (1, 2):
            monkeypatch.setattr("os.cpu_count", lambda count=processors: count)
            view = model.view(parse("path ~ db"))
            with pytest.raises(TraceFormatError):
                model.fill(view)
            done.append((view.done, len(view)))
    assert done[0] == done[1]
    assert done[0][0] > BLOCK


@pytest.mark.parametrize("processors", [1, 2])
def test_filling_stops_and_goes_on(
    traces: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch, processors: int
) -> None:
    """GIVEN a view that is being filled WHEN stopped THEN it goes on later to the same."""
    monkeypatch.setattr("os.cpu_count", lambda: processors)
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
