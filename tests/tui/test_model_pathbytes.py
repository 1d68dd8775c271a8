"""Paths decided many at once are decided as one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.tui_trace import region
from interfaces.abi import RegionKind, parse_regions
from interfaces.calls import BY_NAME
from tui.model.decode import paths_in
from tui.model.query import pathbytes
from tui.model.query.pathbytes import PathBytes

CALLS = [BY_NAME[name] for name in ("openat", "rename", "linkat", "newfstatat", "read")]
PATHS = (b"", b"/a", b"/a.db", b"/long/" + b"x" * 40 + b".db", b"/\xff\xfe.db", b"/a.db\0junk", b"y" * 5000)

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


def _expected(nr: int, payload: bytes) -> bool:
    try:
        return any(path.endswith(".db") for path in paths_in(nr, parse_regions(payload)))
    except ValueError:
        return False


def _decide(rows: list[tuple[int, bytes]], finder: PathBytes) -> None:
    """Each row is left to the slow way, or decided as that would."""
    data, starts, ends = b"", [], []
    for _, payload in rows:
        starts.append(len(data))
        ends.append(len(data) + len(payload))
        data += payload + b"\0" * (-len(payload) % 8)
    named = [sum(1 << i for i, arg in enumerate(CALLS[c].args) if arg.type == "path") for c, _ in rows]
    found, odd = finder.decide(
        data, np.array(starts, np.int64), np.array(ends, np.int64), np.array(named, np.uint8)
    )
    for i, (call, payload) in enumerate(rows):
        if odd[i]:
            assert not found[i]
        else:
            assert found[i] == _expected(CALLS[call].number, payload), payload


@settings(max_examples=150, deadline=None)
@given(st.lists(_rows, min_size=1, max_size=12))
def test_many_at_once_are_as_one_at_a_time(
    rows: list[tuple[int, list[tuple[RegionKind, int, bytes]], str]],
) -> None:
    """GIVEN payloads, whole and damaged WHEN decided together THEN each is as alone, or left to be asked."""
    payloads = [(call, _payload(regions, damage)) for call, regions, damage in rows]
    _decide(payloads, PathBytes(lambda path: path.endswith(".db")))


def test_whole_payloads_are_not_left_over() -> None:
    """GIVEN usual payloads WHEN decided THEN none is left to the slow way, each path is asked for once."""
    asked: list[str] = []

    def passes(path: str) -> bool:
        asked.append(path)
        return path.endswith(".db")

    payload = [region(RegionKind.IN, 1, 0x1000, path + b"\0") for path in (b"/a.db", b"/b", b"/a.db")]
    data = b"".join(payload)
    ends = np.cumsum([len(part) for part in payload])
    starts = np.concatenate([[0], ends[:-1]])
    found, odd = PathBytes(passes).decide(data, starts, ends, np.full(3, 0b10, np.uint8))
    assert (found.tolist(), odd.tolist()) == ([True, False, True], [False, False, False])
    assert sorted(asked) == ["/a.db", "/b"]


def test_equal_hashes_do_not_deceive(monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN different paths of one hash WHEN decided THEN no row gets another's answer."""
    monkeypatch.setattr(pathbytes, "_FACTORS", np.zeros(512, np.uint64))
    rows = [(0, region(RegionKind.IN, 1, 0x1000, path + b"\0")) for path in (b"/a.db", b"/b.no", b"/c.db")]
    _decide(rows, PathBytes(lambda path: path.endswith(".db")))
