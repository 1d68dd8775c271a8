"""Payloads decided many at once are decided as one at a time; each distinct piece is asked for once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.tui_trace import region
from interfaces.abi import RegionKind, parse_regions
from interfaces.calls import BY_NAME
from tui.model.decode import paths_in
from tui.model.query import contents, distinct
from tui.model.query.contents import DataContents, PathContents, holding
from tui.model.query.distinct import Distinct, DistinctPieces
from tui.model.query.pattern import Pattern

CALLS = [BY_NAME[name] for name in ("openat", "rename", "linkat", "newfstatat", "read")]
PATHS = (b"", b"/a", b"/a.db", b"/long/" + b"x" * 40 + b".db", b"/\xff\xfe.db", b"/a.db\0junk", b"y" * 5000)
PATTERNS = (Pattern.of("*.db"), Pattern.of("db"), Pattern.within("^/a"), Pattern.of("*"), Pattern.equal("/a"))

_regions = st.tuples(
    st.sampled_from([RegionKind.IN, RegionKind.OUT, RegionKind.PATH]),
    st.integers(0, 7),
    st.sampled_from(PATHS),
)
_rows = st.tuples(
    st.sampled_from(range(len(CALLS))),
    st.lists(_regions, max_size=4),
    st.sampled_from(["whole", "cut", "kind", "odd"]),
)


def _payload(regions: list[tuple[RegionKind, int, bytes]], damage: str) -> bytes:
    data = b"".join(region(kind, arg, 0x1000, path + b"\0") for kind, arg, path in regions)
    if damage == "cut":
        return data[: max(len(data) - 9, 0)]
    if damage == "kind" and data:
        return data[:12] + b"\xee" + data[13:]
    return data + b"odd" if damage == "odd" else data


def _path_passes(pattern: Pattern, nr: int, payload: bytes) -> bool:
    try:
        return any(map(pattern.test, paths_in(nr, parse_regions(payload))))
    except ValueError:
        return False


def _data_passes(pattern: Pattern, payload: bytes) -> bool:
    try:
        regions = parse_regions(payload)
    except ValueError:
        return False
    kinds = (RegionKind.IN, RegionKind.OUT)
    return any(pattern.test(one.data.decode("latin-1")) for one in regions if one.kind in kinds)


def _decide(rows: list[tuple[int, bytes]], pattern: Pattern) -> None:
    """Each row is left to the slow way, or decided as that would."""
    data, starts, ends = b"", [], []
    for _, payload in rows:
        starts.append(len(data))
        ends.append(len(data) + len(payload))
        data += payload + b"\0" * (-len(payload) % 8)
    named = [sum(1 << i for i, arg in enumerate(CALLS[c].args) if arg.type == "path") for c, _ in rows]
    begin, end = np.array(starts, np.int64), np.array(ends, np.int64)
    by_path = PathContents(pattern).decide(data, begin, end, np.array(named, np.uint8))
    by_data = DataContents(pattern).decide(data, begin, end)
    for i, (call, payload) in enumerate(rows):
        for (found, odd), expected in (
            (by_path, _path_passes(pattern, CALLS[call].number, payload)),
            (by_data, _data_passes(pattern, payload)),
        ):
            assert bool(found[i]) is (expected and not odd[i]), payload


@settings(max_examples=150, deadline=None)
@given(st.lists(_rows, min_size=1, max_size=12), st.sampled_from(PATTERNS))
def test_many_at_once_are_as_one_at_a_time(
    rows: list[tuple[int, list[tuple[RegionKind, int, bytes]], str]], pattern: Pattern
) -> None:
    """GIVEN payloads, whole and damaged WHEN decided together THEN each is as alone, or left to be asked."""
    _decide([(call, _payload(regions, damage)) for call, regions, damage in rows], pattern)


def test_whole_payloads_are_not_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN usual payloads WHEN decided THEN none is left to the slow way, each path is asked for once."""
    asked: list[str] = []

    def passes(path: str) -> bool:
        asked.append(path)
        return path.endswith(".db")

    finder = PathContents(Pattern(passes, ".db"))
    payload = [region(RegionKind.IN, 1, 0x1000, path + b"\0") for path in (b"/a.db", b"/b", b"/a.db") * 4]
    ends = np.cumsum([len(part) for part in payload])
    starts = np.concatenate([[0], ends[:-1]])
    found, odd = finder.decide(b"".join(payload), starts, ends, np.full(12, 0b10, np.uint8))
    assert found.tolist() == [True, False, True] * 4
    assert not odd.any()
    assert sorted(asked) == ["/a.db", "/b"]
    finder.decide(b"".join(payload), starts, ends, np.full(12, 0b10, np.uint8))
    assert len(asked) == 2
    monkeypatch.setattr(contents, "_ROUNDS", 1)
    data = region(RegionKind.OUT, 0, 0, b"") + region(RegionKind.IN, 1, 0x1000, b"/a.db\0")
    found, odd = finder.decide(data, np.array([0]), np.array([len(data)]), np.full(1, 0b10, np.uint8))
    assert (found.tolist(), odd.tolist()) == ([False], [True])


def test_a_pattern_need_not_be_looked_for_where_its_literal_is_not() -> None:
    """GIVEN payloads without the text that all hits have WHEN decided THEN no piece is asked for."""

    def passes(_: str) -> bool:
        raise AssertionError("asked")

    data = region(RegionKind.IN, 1, 0x1000, b"/etc/hosts\0")
    start, end = np.array([0]), np.array([len(data)])
    for literal in (".db", "\u20ac", "\ud800"):
        pattern = Pattern(passes, literal)
        assert not PathContents(pattern).decide(data, start, end, np.full(1, 0b10, np.uint8))[0].any()
        assert not DataContents(pattern).decide(data, start, end)[0].any()


_columns = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[st.integers(0, 3)] * width), min_size=1, max_size=40)
)


@settings(max_examples=100, deadline=None)
@given(st.lists(_columns, min_size=1, max_size=4), st.booleans())
def test_equal_hashes_do_not_deceive(batches: list[list[tuple[int, ...]]], same_hash: bool) -> None:
    """GIVEN rows, also all of one hash WHEN asked for THEN no row gets another's answer."""
    with pytest.MonkeyPatch.context() as patched:
        if same_hash:
            patched.setattr(distinct, "_FACTORS", np.zeros(len(distinct._FACTORS), np.uint64))
        patched.setattr(distinct, "_ROWS_MAX", 16)
        finder = Distinct()
        for rows in batches:
            columns = [np.array(column, np.uint64) for column in zip(*rows, strict=True)]

            def ask(i: int, rows: list[tuple[int, ...]] = rows) -> int:
                return int("".join(map(str, rows[i])) or 0)

            assert finder.answers(columns, ask).tolist() == [ask(i) for i in range(len(rows))]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([b"", b"a", b"a\0", b"ab" * 9, b"x" * 300, b"y" * 7 + b"\xff"]), max_size=60))
def test_pieces_are_told_apart_to_the_byte(pieces: list[bytes]) -> None:
    """GIVEN pieces with whatever behind them WHEN asked for THEN each has the answer of its own bytes."""
    data, begins = b"", []
    for i, piece in enumerate(pieces):
        begins.append(len(data))
        data += piece + bytes([i & 0xFF]) * (-len(piece) % 8)
    found = DistinctPieces(lambda piece: hash(piece) & 0xFFFF).answers(
        data, np.array(begins, np.int64), np.array([len(piece) for piece in pieces], np.int64)
    )
    assert found.tolist() == [hash(piece) & 0xFFFF for piece in pieces]


@given(st.binary(max_size=60), st.binary(min_size=1, max_size=4), st.integers(0, 20), st.integers(0, 60))
def test_pieces_that_hold_a_text(data: bytes, literal: bytes, begin: int, size: int) -> None:
    """GIVEN bytes WHEN pieces are searched for a text THEN those that hold it whole are found."""
    for text in (literal, data[5:7] or literal):
        begin = min(begin, len(data))
        size = min(size, len(data) - begin)
        found = holding(data, text, np.array([begin, 0]), np.array([size, len(data)]))
        assert found.tolist() == [text in data[begin : begin + size], text in data]
