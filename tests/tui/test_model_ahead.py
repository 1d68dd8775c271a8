"""Chunks that filters are going to ask for are read by another thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.tui.conftest import indexed
from tracefile import TraceFormatError
from tracefile.columns import ChunkColumns
from tui.model.query import ahead
from tui.model.query.ahead import ChunkSource
from tui.model.trace import TraceModel

EVENTS = 100_000


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first event of each chunk that is read for filters, by whichever thread."""
    firsts: list[int] = []

    class Counted(ChunkColumns):
        def __init__(self, reader: object, domain: int, first: int, words: set[int] | None) -> None:
            firsts.append(first)
            super().__init__(reader, domain, first, words)  # type: ignore[arg-type]

    monkeypatch.setattr(ahead, "ChunkColumns", Counted)
    return firsts


def _busiest(model: TraceModel) -> tuple[int, list[int]]:
    found = max(model.reader.domains.values(), key=lambda info: len(info.firsts))
    assert len(found.firsts) > 6
    return found.domain, list(found.firsts)


def _read(source: ChunkSource, domain: int, first: int) -> tuple[bytes, bytes]:
    chunk = source.chunk(domain, first)
    return chunk.column("arg1").tobytes(), source.payload(chunk)


def test_what_is_read_ahead_is_what_is_there(traces: Callable[[int], Path], made: list[int]) -> None:
    """GIVEN chunks asked for in order THEN each is read once, and is what the reader has."""
    with indexed(traces(EVENTS)) as model:
        domain, firsts = _busiest(model)
        source = ChunkSource(model.index)
        for first in firsts:
            column, payload = _read(source, domain, first)
            expected = next(model.reader.chunks(domain, first))
            assert column == np.ascontiguousarray(expected.events["args"][:, 1]).tobytes()
            assert payload == expected.payload
        assert sorted(made) == firsts


def test_nothing_is_read_ahead_of_jumps(traces: Callable[[int], Path], made: list[int]) -> None:
    """GIVEN chunks asked for here and there THEN only these are read."""
    with indexed(traces(EVENTS)) as model:
        domain, firsts = _busiest(model)
        source = ChunkSource(model.index)
        for first in firsts[::2]:
            _read(source, domain, first)
        assert made == firsts[::2]


def test_damage_ahead_is_told_where_it_is_met(traces: Callable[[int], Path], tmp_path: Path) -> None:
    """GIVEN a damaged chunk WHEN those before it are asked for THEN they are given; it is told of at its
    turn."""
    whole = traces(EVENTS)
    path = tmp_path / "damaged.bin"
    with indexed(whole) as model:
        domain, firsts = _busiest(model)
        place = model.reader.domains[domain].offsets[5]
        end = model.reader.domains[domain].offsets[6]
        data = bytearray(whole.read_bytes())
    middle = (place + end) // 2
    data[middle : middle + 64] = bytes(64 * [0x5A])
    path.write_bytes(data)
    with TraceModel.open(path) as model:
        source = ChunkSource(model.index)
        for first in firsts[:5]:
            _read(source, domain, first)
        with pytest.raises(TraceFormatError):
            _read(source, domain, firsts[5])
