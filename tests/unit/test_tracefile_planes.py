"""The compiled codec of events against numpy, which is slow but plain."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.abi import EVENT_DTYPE, EVENT_SIZE, Kind
from replayer.feeder import CLONES
from tracefile import planes
from tracefile.codec import CodecError, Compressor, decompress, decompress_events
from tracefile.errors import CodecMissingError
from tracefile.layout import Codec
from tracefile.planes import WORDS, Packer, StoredEvents, survey

Words = npt.NDArray[np.uint64]
EDGES = (
    0,
    1,
    2,
    127,
    128,
    129,
    255,
    256,
    1 << 31,
    1 << 32,
    1 << 48,
    (1 << 62) - 1,
    1 << 62,
    (1 << 63) - 1,
    1 << 63,
)
STEPS = sorted({step * sign % (1 << 64) for step in EDGES for sign in (1, -1)})


def differences(words: Words) -> Words:
    delta = words.copy()
    delta[1:] -= words[:-1]
    return delta


def shuffled(words: Words) -> bytes:
    """The older layout, by the book."""
    octets = differences(words).view(np.uint8).reshape(-1, WORDS, 8)
    return np.ascontiguousarray(octets.transpose(1, 2, 0)).tobytes()


def packed(words: Words) -> bytes:
    """The layout that is written, by the book: sign and magnitude, planes of zeros left out."""
    numbers = [[folded(int(one)) for one in row] for row in differences(words)[1:].tolist()]
    mask, found = bytearray(WORDS), []
    for word, plane in itertools.product(range(WORDS), range(8)):
        octets = bytes(row[word] >> 8 * plane & 0xFF for row in numbers)
        if any(octets):
            mask[word] |= 1 << plane
            found.append(octets)
    return b"".join((words[0].tobytes(), mask, *found))


def folded(difference: int) -> int:
    if difference < 1 << 63:
        return difference << 1
    return ((1 << 64) - difference << 1 | 1) % (1 << 64)


rows = st.lists(st.tuples(st.sampled_from(range(WORDS)), st.sampled_from(STEPS)), max_size=6)
events = st.builds(
    lambda first, steps: accumulated(first, steps),
    st.binary(min_size=EVENT_SIZE, max_size=EVENT_SIZE),
    st.lists(rows, max_size=200),
)


def accumulated(first: bytes, steps: list[list[tuple[int, int]]]) -> Words:
    delta = np.zeros((len(steps) + 1, WORDS), np.uint64)
    delta[0] = np.frombuffer(first, "<u8")
    for row, changes in enumerate(steps, 1):
        for word, step in changes:
            delta[row, word] = step
    return np.cumsum(delta, axis=0, dtype=np.uint64)


@given(events)
def test_events_are_packed_by_the_book_and_come_back(words: Words) -> None:
    """GIVEN events that differ in a few words by numbers at the edges of bytes WHEN packed and unpacked
    THEN the bytes are those of the plain implementation, and all comes back, also column by column."""
    stored = StoredEvents(Codec.ZSTD_PACKED, bytes(Packer().pack(words.tobytes())), len(words))
    assert stored.planes == packed(words)
    assert stored.fits and stored.raw() == words.tobytes()
    for word in range(WORDS):
        assert stored.column(word) == words[:, word].tobytes()


@given(events)
def test_the_older_layout_is_read(words: Words) -> None:
    stored = StoredEvents(Codec.ZSTD_EVENTS, shuffled(words), len(words))
    assert stored.fits and stored.raw() == words.tobytes()
    for word in range(WORDS):
        assert stored.column(word) == words[:, word].tobytes()


@given(st.binary(min_size=EVENT_SIZE, max_size=80 * EVENT_SIZE), st.sampled_from([0.0, 0.5, 1.0]))
def test_any_bytes_come_back(data: bytes, lag: float) -> None:
    data = data[: len(data) // EVENT_SIZE * EVENT_SIZE]
    compressor = Compressor()
    compressor.adapt(lag)
    for _ in range(2):
        codec, stored = compressor.events(data)
        assert decompress(codec, stored, len(data)) == data


@given(
    st.sampled_from([Codec.ZSTD_EVENTS, Codec.ZSTD_PACKED]),
    st.binary(max_size=400),
    st.binary(min_size=WORDS, max_size=WORDS),
    st.integers(0, 5),
)
def test_what_does_not_fit_is_refused(codec: Codec, data: bytes, mask: bytes, count: int) -> None:
    """GIVEN any bytes WHEN they are taken for planes THEN what `fits` decodes, and nothing else does."""
    for content in (data, data.ljust(EVENT_SIZE, b"x")[:EVENT_SIZE] + mask + data):
        stored = StoredEvents(codec, content, count)
        if stored.fits:
            assert len(stored.raw()) == count * EVENT_SIZE
            continue
        with pytest.raises(ValueError, match="not the planes"):
            stored.raw()
        with pytest.raises(ValueError, match="not the planes"):
            stored.column(0)
        section = Compressor().section(content)[1]
        with pytest.raises(CodecError):
            decompress_events(codec, section, count * EVENT_SIZE)


def test_nothing_is_written_outside_the_target() -> None:
    """GIVEN a target of another size, or a word that is not there WHEN asked THEN it is refused."""
    stored = StoredEvents(Codec.ZSTD_PACKED, bytes(Packer().pack(bytes(EVENT_SIZE * 3))), 3)
    with pytest.raises(ValueError, match="do not fit"):
        stored.copy_to(memoryview(bytearray(EVENT_SIZE * 2)))
    with pytest.raises(ValueError, match="not the planes"):
        stored.column(WORDS)
    for data in (b"", bytes(EVENT_SIZE + 1)):
        with pytest.raises(ValueError, match="no events"):
            Packer().pack(data)


numbers = st.sampled_from([0, 55, 56, 57, 58, 59, 435, 436, 56 + 256])
fields = st.tuples(
    st.sampled_from([Kind.SYSCALL, Kind.RELEASE]),
    numbers,
    st.integers(-1, 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
)


@given(st.lists(fields, max_size=20))
def test_a_survey_says_what_an_array_says(found: list[tuple[Kind, int, int, int, int]]) -> None:
    array = np.zeros(len(found), EVENT_DTYPE)
    for row, (kind, nr, result, offset, length) in zip(array, found, strict=True):
        row["kind"], row["nr"], row["result"] = kind, nr, result
        row["payload_off"], row["payload_len"] = offset, length
    said = survey(memoryview(bytearray(array.tobytes())))
    from_bytes = survey(array.tobytes())
    assert (from_bytes.payload_end, from_bytes.clone) == (said.payload_end, said.clone)
    assert from_bytes.longest == said.longest == max((length for *_, length in found), default=0)
    clones = [
        i
        for i, (kind, nr, result, _, _) in enumerate(found)
        if kind == Kind.SYSCALL and nr in CLONES and result > 0
    ]
    assert said.clone == (clones[0] if clones else len(found))
    assert said.payload_end == max((offset + length for _, _, _, offset, length in found), default=0)


def test_the_shared_object_needs_nothing() -> None:
    """GIVEN the compiled codec WHEN its symbols are listed THEN it takes none from any library."""
    path = Path(planes.__file__).parent / "_native" / "planes.so"
    done = subprocess.run(["readelf", "-Wd", "--dyn-syms", path], capture_output=True, text=True, check=True)
    assert "NEEDED" not in done.stdout and "TEXTREL" not in done.stdout
    undefined = [line for line in done.stdout.splitlines() if " UND " in line and not line.endswith("UND ")]
    assert [line.split()[-1] for line in undefined] in ([], ["UND"])


def test_a_missing_codec_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """GIVEN an installation without the compiled codec WHEN needed THEN one error says what to do."""
    monkeypatch.setattr(planes, "__file__", str(tmp_path / "planes.py"))
    planes._library.cache_clear()
    try:
        with pytest.raises(CodecMissingError, match=r"planes\.so.*nstall it again"):
            planes.check_library()
    finally:
        planes._library.cache_clear()
