"""Payload that was read before is stored once, and comes back as it was."""

from __future__ import annotations

import os
import random
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interfaces.abi import EVENT_DTYPE, RegionKind
from tracefile import DomainStart, TraceFormatError, TraceReader, TraceWriter
from tracefile.layout import Codec
from tracefile.repeats import REPEAT_MIN, RepeatError, Repeats, literals_of, unfold

PIECES = [
    random.Random(number).randbytes(size) for number, size in enumerate((8, 1023, 1024, 1500, 4096, 70000))
]
Call = list[tuple[int, RegionKind]]
"""What one event holds: pieces by number, each in a region of a kind."""
calls = st.lists(
    st.tuples(
        st.integers(0, len(PIECES) - 1), st.sampled_from([RegionKind.OUT, RegionKind.OUT, RegionKind.IN])
    ),
    max_size=3,
)


def chunk_of(made: list[Call]) -> tuple[bytes, bytes]:
    """Events and payload of one chunk."""
    events = np.zeros(len(made), EVENT_DTYPE)
    payload = bytearray()
    for i, call in enumerate(made):
        start = len(payload)
        for number, kind in call:
            data = PIECES[number]
            payload += struct.pack("<QIBBH", 0x7000, len(data), kind, 1, 0) + data + bytes(-len(data) % 8)
        events[i]["payload_off"], events[i]["payload_len"] = start, len(payload) - start
    return events.tobytes(), bytes(payload)


def write(path: Path, chunks: list[tuple[int, list[Call]]]) -> list[tuple[int, bytes]]:
    """A trace of chunks of domains; their payloads."""
    firsts: dict[int, int] = {}
    payloads = []
    with TraceWriter.create(path, {}) as writer:
        for domain, made in chunks:
            if domain not in firsts:
                writer.add_domain(DomainStart(domain=domain, kind="exec", pid=domain))
            events, payload = chunk_of(made)
            writer.add_events(domain, firsts.get(domain, 0), events, payload)
            writer.flush()
            firsts[domain] = firsts.get(domain, 0) + len(made)
            payloads.append((domain, payload))
    return payloads


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.lists(calls, min_size=1, max_size=5)), min_size=1, max_size=6)
)
def test_any_chunks_come_back(chunks: list[tuple[int, list[Call]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.bin"
        payloads = write(path, chunks)
        with TraceReader.open(path) as reader:
            for domain in reader.domains:
                found = [chunk.payload for chunk in reader.chunks(domain)]
                assert found == [payload for of, payload in payloads if of == domain]
            assert reader.verify() >= len(chunks)


def test_a_file_that_several_processes_read_is_stored_once(tmp_path: Path) -> None:
    # GIVEN twenty processes that read the same 70 kB of noise, and one that does
    reading: list[Call] = [[(5, RegionKind.OUT)]]
    write(tmp_path / "one.bin", [(1, reading)])
    write(tmp_path / "twenty.bin", [(number, reading) for number in range(1, 21)])
    # THEN the others cost no more than what says that they exist
    one, twenty = (os.path.getsize(tmp_path / f"{name}.bin") for name in ("one", "twenty"))
    assert one > 70000 and twenty - one < 20 * 1000
    with TraceReader.open(tmp_path / "twenty.bin") as reader:
        codecs = [header.codec_b for header, _, _ in reader.raw_chunks() if header.count and header.raw_b]
        assert codecs == [Codec.ZSTD, *[Codec.ZSTD_REPEATS] * 19] or codecs == [
            Codec.RAW, *[Codec.ZSTD_REPEATS] * 19
        ]  # fmt: skip
        assert all(
            next(reader.chunks(number)).payload[16 : 16 + 70000] == PIECES[5] for number in range(1, 21)
        )


def test_a_log_that_its_program_has_overwritten_does_not_stop_the_writer() -> None:
    repeats = Repeats()
    noise = random.Random(7)
    for _ in range(300):
        events = np.frombuffer(noise.randbytes(96 * 8), EVENT_DTYPE).copy()
        events["payload_off"] = [noise.choice((0, 8, 5000, 2**32 - 1)) for _ in events]
        events["payload_len"] = [noise.choice((0, 1024, 9000, 2**32 - 1)) for _ in events]
        payload = noise.randbytes(noise.choice((0, 15, 1040, 9000)))
        section = repeats.split(1, 0, events.tobytes(), payload)
        assert section is None or len(literals_of(section)) < len(payload)


def section(*rows: tuple[int, int, int, int, int], count: int | None = None, literals: bytes = b"") -> bytes:
    table = b"".join(struct.pack("<IIIIQ", *row) for row in rows)
    return struct.pack("<Q", len(rows) if count is None else count) + table + literals


def one_chunk(domain: int, first: int) -> bytes:
    if (domain, first) != (1, 0):
        raise ValueError("there is none")
    return PIECES[4]


@pytest.mark.parametrize(
    ("hostile", "size"),
    [
        (b"", 5000),
        (section(), 5000),
        (section(count=2**61), 5000),
        (section((0, 4096, 0, 1, 0)), 4095),
        (section((0, 4096, 1, 1, 0)), 4096),
        (section((0, 4096, 0, 2, 0)), 4096),
        (section((0, 4096, 0, 1, 5)), 4096),
        (section((0, REPEAT_MIN - 1, 0, 1, 0)), REPEAT_MIN - 1),
        (section((8, 4096, 0, 1, 0)), 4104),
        (section((0, 4096, 0, 1, 0), (2048, 4096, 0, 1, 0)), 6144),
        (section((0, 2**32 - 1, 0, 1, 0)), 4096),
        (section(*[(0, 4096, 0, 1, 0)] * 1000), 4096),
        (section((0, 4096, 0, 1, 0), literals=b"more"), 4096),
    ],
)
def test_a_hostile_table_is_refused(hostile: bytes, size: int) -> None:
    with pytest.raises(RepeatError):
        unfold(hostile, size, one_chunk)


def test_a_missing_chunk_is_named(tmp_path: Path) -> None:
    # GIVEN a trace whose second domain repeats the first, of which nothing is left
    write(tmp_path / "t.bin", [(1, [[(5, RegionKind.OUT)]]), (2, [[(5, RegionKind.OUT)]])])
    with TraceReader.open(tmp_path / "t.bin") as reader:
        del reader.domains[1]
        # THEN reading it is an error that says so
        with pytest.raises(TraceFormatError, match="no chunk of domain 1 begins with event 0"):
            assert next(reader.chunks(2)).payload
