"""Columns read alone are those of whole events."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.tui.conftest import Story, indexed
from tracefile import TraceFormatError, TraceReader
from tracefile.columns import COLUMNS, ChunkColumns
from tracefile.layout import ChunkType, Codec
from tui.model.query.language import parse


def compared(reader: TraceReader) -> int:
    """Compare all columns of all chunks; the number of chunks."""
    chunks = 0
    for domain, info in reader.domains.items():
        for first in info.firsts:
            found = ChunkColumns(reader, domain, first)
            whole = next(reader.chunks(domain, first))
            assert len(found) == len(whole)
            assert found.payload == whole.payload
            for name in COLUMNS:
                expected = whole.events["args"][:, int(name[3:])] if name[:3] == "arg" else whole.events[name]
                assert found.column(name).dtype == expected.dtype
                assert np.array_equal(found.column(name), expected)
            chunks += 1
    return chunks


def test_columns_of_shuffled_events(traces: Callable[[int], Path]) -> None:
    """GIVEN chunks as the writer makes them WHEN read by column THEN values and types are those of events."""
    with TraceReader.open(traces(20_000)) as reader:
        assert compared(reader) > 4


def test_columns_of_few_events(story: Story) -> None:
    """GIVEN chunks of one event WHEN read by column THEN they are the same, also negative results."""
    story.domain(1, 100)
    story.call("close", (2**64 - 1,), -9)
    story.read(3, b"abc")
    with story.close() as reader:
        assert compared(reader) == 2


def test_payload_that_repeats_an_earlier_one(story: Story) -> None:
    """GIVEN chunks that point into the payload of earlier ones WHEN read by column THEN it is whole, and
    filters see it."""
    content = random.Random(1).randbytes(3000) + b"needle"
    story.domain(1, 100)
    for fd in (3, 4, 5):
        story.open(f"/etc/{fd}", fd)
        story.read(fd, content)
        story.writer.flush()
    with story.close() as reader:
        codecs = [header.codec_b for header, _, _ in reader.raw_chunks() if header.type == ChunkType.EVENTS]
        assert codecs.count(Codec.ZSTD_REPEATS) == 2
        assert compared(reader) > 2
    with indexed(story.path) as model:
        for text, expected in (("data ~ needle", [1, 3, 5]), ('path ~ "/etc/5"', [4, 5])):
            view = model.view(parse(text))
            model.fill(view)
            assert view.rows(0, len(view)) == expected


def test_what_is_not_there_is_an_error(traces: Callable[[int], Path], tmp_path: Path) -> None:
    """GIVEN a place where no chunk begins, or a damaged chunk WHEN read THEN the error says so."""
    path = tmp_path / "damaged.bin"
    data = bytearray(traces(20_000).read_bytes())
    with TraceReader.open(traces(20_000)) as reader:
        with pytest.raises(IndexError):
            ChunkColumns(reader, 1, 17)
        with pytest.raises(KeyError):
            ChunkColumns(reader, 99, 0)
        data[reader.domains[1].offsets[1] + 100] ^= 0xFF
        second = reader.domains[1].firsts[1]
    path.write_bytes(data)
    with TraceReader.open(path) as reader, pytest.raises(TraceFormatError):
        ChunkColumns(reader, 1, second)
