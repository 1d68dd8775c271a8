"""Traces made to hurt: impossible sizes, bombs, lying indexes, documents of the wrong shape."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import tracefile
from interfaces.abi import EVENT_DTYPE
from tracefile import DomainEnd, DomainStart, FileEntry, Report, TraceFormatError, TraceReader, blob_digest
from tracefile.fields import FieldError, dump_json, load_json
from tracefile.layout import (
    FILE_HEADER,
    HEADER_SIZE,
    ROW_DTYPE,
    SECTION_MAX,
    TRAILER,
    ChunkFlag,
    ChunkHeader,
    ChunkType,
    Codec,
    pack_file_header,
    pack_trailer,
)

BIG = 1 << 32
START = DomainStart(domain=1, kind="exec", pid=7, comm="x").encode()
FINAL = dump_json({"complete": True, "reason": "", "final": {}})


class Forge:
    """Builds a trace chunk by chunk, right unless told otherwise."""

    def __init__(self) -> None:
        self.data = bytearray(pack_file_header())
        self.rows = bytearray()
        self.sequence = 0
        self.offsets: list[int] = []

    def add(self, kind: int, a: bytes = b"", b: bytes = b"", **claims: int) -> int:
        """Append a chunk of a type; see `put`."""
        return self.put({"type": kind, **claims}, a, b)

    def put(self, claims: dict[str, int], a: bytes, b: bytes) -> int:
        """Append a chunk whose header has true values except for `claims`; returns its offset."""
        true = ChunkHeader(
            type=0,
            sequence=self.sequence,
            raw_a=len(a),
            stored_a=len(a),
            raw_b=len(b),
            stored_b=len(b),
            crc_a=zlib.crc32(a),
            crc_b=zlib.crc32(b),
        )
        offset = len(self.data)
        header = true._replace(**claims).pack()
        self.data += header + a + b
        if claims["type"] != ChunkType.INDEX:
            self.rows += header + offset.to_bytes(8, "little")
        self.sequence += 1
        self.offsets.append(offset)
        return offset

    def meta(self, document: bytes = b"{}") -> int:
        return self.add(ChunkType.META, document)

    def domain(self) -> int:
        return self.add(ChunkType.DOMAIN_START, *START, domain=1)

    def events(self, at: int, size: int, payload: bytes = b"", claims: dict[str, int] | None = None) -> int:
        raw = np.zeros(size, EVENT_DTYPE).tobytes()
        true = {"domain": 1, "first": at, "count": size, "type": int(ChunkType.EVENTS)}
        return self.put(true | (claims or {}), raw, payload)

    def finish(self, rows: bytes | None = None, trailer: dict[str, int] | None = None) -> None:
        """Append a final record, the index, and a trailer that is right but for `trailer`."""
        self.add(ChunkType.FINAL, FINAL)
        index = self.add(ChunkType.INDEX, bytes(self.rows) if rows is None else rows)
        true = {"offset": index, "size": len(self.data) + TRAILER.size, "chunks": 1} | (trailer or {})
        self.data += pack_trailer(true["offset"], true["size"], true["chunks"])

    def open(self, folder: Path) -> TraceReader:
        path = folder / "trace.bin"
        path.write_bytes(self.data)
        return TraceReader.open(path)


def basic() -> Forge:
    forge = Forge()
    forge.meta()
    forge.domain()
    return forge


def test_the_forge_is_right_unless_told_otherwise(tmp_path: Path) -> None:
    forge = basic()
    forge.events(0, 5)
    forge.finish()
    with forge.open(tmp_path) as reader:
        assert reader.complete and reader.from_index and reader.verify() == 4 and reader.event_count(1) == 5


@pytest.mark.parametrize(
    "claims",
    [
        {"raw_a": SECTION_MAX + 1, "stored_a": SECTION_MAX + 1},
        {"raw_a": BIG - 1, "stored_a": 10, "codec_a": 1},
        {"raw_a": BIG - 1, "stored_a": BIG - 1},
        {"raw_b": BIG - 1, "stored_b": BIG - 1},
        {"raw_a": 96, "stored_a": 97, "codec_a": 1},
        {"codec_a": 3},
        {"codec_b": 2},
        {"codec_b": 255, "raw_b": 5},
        {"count": 0, "raw_a": 0, "stored_a": 0},
        {"count": 4},
        {"count": BIG - 1},
        {"first": (1 << 64) - 1},
        {"first": 1 << 63},
        {"domain": 0},
        {"version": 2},
        {"sequence": 2},
        {"sequence": 9},
        {"sequence": (1 << 64) - 1},
        {"type": ChunkType.INDEX},
    ],
    ids=str,
)
def test_impossible_headers(tmp_path: Path, claims: dict[str, int]) -> None:
    """GIVEN a chunk whose header is well summed but impossible WHEN opening THEN it is refused unread, and
    what precedes is there."""
    forge = basic()
    forge.events(0, 5)
    bad = forge.events(5, 5, claims=claims)
    forge.events(10, 5)
    with forge.open(tmp_path) as reader:
        assert reader.damage is not None and reader.damage.offset == bad
        assert reader.event_count(1) == 5 and not reader.complete
        assert [len(chunk) for chunk in reader.chunks(1)] == [5]


@pytest.mark.parametrize("first", [4, 6, 0, 1 << 61])
def test_events_that_do_not_continue(tmp_path: Path, first: int) -> None:
    forge = basic()
    forge.events(0, 5)
    bad = forge.events(first, 5)
    forge.events(first + 5, 5)
    forge.finish()
    with forge.open(tmp_path) as reader:
        assert reader.damage is not None and reader.damage.offset == bad
        assert f"event {first} of domain 1 where event 5 should be" in reader.damage.message
        assert reader.event_count(1) == 5 and not reader.complete and "after 5 events" in reader.stopped
        assert reader.stopped.startswith(f"the trace is damaged: event {first} of domain 1")


def test_events_of_a_domain_that_has_not_begun(tmp_path: Path) -> None:
    forge = basic()
    bad = forge.events(0, 5, claims={"domain": 9})
    forge.finish()
    with forge.open(tmp_path) as reader:
        assert reader.damage is not None and reader.damage.offset == bad and list(reader.domains) == [1]


@pytest.mark.parametrize("payload_len", [1, 8, 24, 0xFFFFFFFF])
@pytest.mark.parametrize("payload_off", [0, 17, 0xFFFFFFFF])
def test_events_that_point_outside(tmp_path: Path, payload_off: int, payload_len: int) -> None:
    """Whatever an event claims, reading its regions gives TraceFormatError and nothing else."""
    forge = basic()
    events = np.zeros(1, EVENT_DTYPE)
    events["payload_off"], events["payload_len"] = payload_off, payload_len
    bad = forge.add(ChunkType.EVENTS, events.tobytes(), b"\xff" * 24, domain=1, count=1)
    with forge.open(tmp_path) as reader:
        chunk = next(reader.chunks(1))
        with pytest.raises(TraceFormatError) as caught:
            chunk.regions(0)
        assert caught.value.offset == bad and "event 0" in caught.value.message
        if payload_off + payload_len > 24:
            with pytest.raises(TraceFormatError):
                reader.event(1, 0)
            with pytest.raises(TraceFormatError):
                reader.verify()


def frame(raw: bytes, write_content_size: bool = True) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=write_content_size).compress(raw)


@pytest.mark.parametrize(
    "stored",
    [
        frame(bytes(SECTION_MAX * 4)),
        frame(bytes(96 * 4)),
        frame(bytes(96 * 5), write_content_size=False),
        frame(bytes(96 * 5)) + b"more",
        frame(bytes(96 * 5))[:-1],
        b"\x50\x2a\x4d\x18" + (8).to_bytes(4, "little") + bytes(8),
        b"no frame at all",
        b"",
    ],
    ids=["bomb", "too few", "no size", "more", "cut", "skippable", "noise", "empty"],
)
@pytest.mark.parametrize("codec", [Codec.ZSTD, Codec.ZSTD_EVENTS, Codec.ZSTD_PACKED])
def test_compressed_data_that_lies(tmp_path: Path, stored: bytes, codec: Codec) -> None:
    forge = basic()
    raw = SECTION_MAX // 96 * 96 if len(stored) > 96 * 5 else 96 * 5
    bad = forge.add(ChunkType.EVENTS, stored, domain=1, count=raw // 96, raw_a=raw, codec_a=codec)
    with forge.open(tmp_path) as reader:
        with pytest.raises(TraceFormatError) as caught:
            next(reader.chunks(1))
        assert caught.value.offset == bad


DOCUMENTS = {
    "deep": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep, unclosed": b'{"a":' + b"[" * 1_000_000,
    "wide": b'{"a":[' + b"[]," * 5_000_000 + b"[]]}",
    "quotes": b'{"a":"' + b'\\"' * 5_000_000,
    "no object": b"[1,2]",
    "constant": b'{"a":NaN}',
    "infinity": b'{"a":-Infinity}',
    "long number": b'{"a":' + b"9" * 100_000 + b"}",
    "utf-16": '{"a":1}'.encode("utf-16"),
    "utf-8": '{"ä":1}'.encode(),
    "nothing": b"",
    "open text": b'{"a":"b',
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_that_are_bombs(tmp_path: Path, name: str) -> None:
    forge = Forge()
    bad = forge.meta(DOCUMENTS[name])
    forge.domain()
    forge.events(0, 5)
    with forge.open(tmp_path) as reader:
        assert reader.damage is not None and reader.damage.offset == bad and reader.meta == {}
        assert reader.event_count(1) == 5


def test_brackets_in_text_are_no_depth() -> None:
    document = {"a": "[{" * 1000 + '"\\', "b": ["]" * 1000]}
    assert load_json(dump_json(document)) == document


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10)
    | st.sampled_from(["exec", "exited", "system", "stored", "/usr/lib/x", "../etc", "a\0b"]),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children),
    max_leaves=6,
)

DECODERS: list[tuple[Callable[[bytes], object], dict[str, Any]]] = [
    (lambda data: DomainStart.decode(data, None), load_json(START[0])),
    (DomainEnd.decode, load_json(DomainEnd(domain=1, pid=7, status="exited").encode())),
    (FileEntry.decode, load_json(FileEntry(number=1, path="/usr/lib/x").encode())),
    (Report.decode, load_json(Report(time=1, domain=1, pid=7, code=1, text="x").encode())),
]


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(DECODERS), st.data())
def test_fields_of_the_wrong_kind(
    decoder: tuple[Callable[[bytes], object], dict[str, Any]], data: st.DataObject
) -> None:
    """A record of any content is either decoded or refused with FieldError."""
    decode, document = decoder
    document = dict(document)
    for key in data.draw(st.lists(st.sampled_from(sorted(document)), min_size=1, max_size=3)):
        if data.draw(st.booleans()):
            document[key] = data.draw(anything)
        else:
            document.pop(key, None)
    try:
        record = decode(dump_json(document))
    except FieldError as error:
        assert len(str(error)) < 500
    else:
        assert not isinstance(record, FileEntry) or ".." not in record.path


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=60), st.dictionaries(st.sampled_from(["argv", "envp", "boot"]), anything))
def test_details_of_the_wrong_kind(noise: bytes, detail: dict[str, Any]) -> None:
    document = dump_json(detail)
    for section in (noise, len(document).to_bytes(8, "little") + document + noise):
        try:
            DomainStart.decode(START[0], section)
        except FieldError as error:
            assert len(str(error)) < 500


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("stack", [0, 1 << 63]),
        ("stack", [1 << 63, 1]),
        ("stack", [-1, 1]),
        ("stack", [0]),
        ("regs", {"rip": -1}),
        ("regs", {str(i): 0 for i in range(100)}),
        ("auxv", [[1, 2, 3]]),
        ("auxv", [[1, 1 << 64]]),
        ("mappings", [{}]),
        ("mappings", [[]]),
        ("patches", ["x"]),
        ("brk", 1.5),
    ],
)
def test_boot_images_of_the_wrong_kind(change: str, value: object) -> None:
    boot = {
        "mappings": [],
        "stack_start": 1,
        "stack": [0, 0],
        "regs": {},
        "auxv": [],
        "brk": 2,
        "patches": [],
    }
    detail = {"argv": [0, 0, 0], "envp": [0, 0, 0], "boot": boot | {"patches": [], change: value}}
    document = dump_json(detail)
    with pytest.raises(FieldError):
        DomainStart.decode(START[0], len(document).to_bytes(8, "little") + document)


@pytest.mark.parametrize(
    ("start", "end", "address"), [(5, 5, 5), (9, 5, 5), (0, 1 << 40, 1 << 40), (16, 32, 8), (16, 32, 30)]
)
def test_mappings_of_impossible_extent(start: int, end: int, address: int) -> None:
    boot = tracefile.BootImage(
        mappings=[tracefile.BootMapping(start=start, end=end, prot=1, data=((address, b"abcd"),))],
        stack_start=0,
        stack=b"",
        regs={},
        auxv=[],
        brk=0,
    )
    with pytest.raises(FieldError, match=r"a mapping from|outside of its mapping"):
        DomainStart.decode(*DomainStart(domain=1, kind="exec", pid=1, boot=boot).encode())


@pytest.mark.parametrize(
    "path",
    [
        "lib/x",
        "",
        "/usr/../etc/shadow",
        "/usr//lib",
        "//usr",
        "/usr/",
        "/proc/self/mem",
        "/dev/zero",
        "/sys",
        "/a\0",
    ],
)
def test_system_files_of_strange_paths(path: str) -> None:
    with pytest.raises(FieldError):
        FileEntry.decode(FileEntry(number=1, path=path).encode())


Rows = Any


@pytest.mark.parametrize(
    "lie",
    [
        lambda rows: rows["offset"].__setitem__(3, rows["offset"][2]),
        lambda rows: rows["offset"].__setitem__(3, (1 << 64) - 1),
        lambda rows: rows["offset"].__setitem__(0, 0),
        lambda rows: rows["stored_a"].__setitem__(2, BIG - 1),
        lambda rows: rows["stored_b"].__setitem__(2, 1),
        lambda rows: rows["sequence"].__setitem__(1, 7),
        lambda rows: rows["count"].__setitem__(2, 0),
        lambda rows: rows["count"].__setitem__(2, BIG - 1),
        lambda rows: rows["raw_a"].__setitem__(2, BIG - 1),
        lambda rows: rows["type"].__setitem__(-1, ChunkType.REPORT),
    ],
)
def test_an_index_that_lies_is_not_used(tmp_path: Path, lie: Callable[[Rows], None]) -> None:
    forge = basic()
    forge.events(0, 5)
    forge.events(5, 5)
    forge.add(ChunkType.FINAL, FINAL)
    rows = np.frombuffer(bytes(forge.rows), ROW_DTYPE).copy()
    lie(rows)
    index = len(forge.data)
    forge.add(ChunkType.INDEX, rows.tobytes())
    forge.data += pack_trailer(index, len(forge.data) + TRAILER.size, 1)
    with forge.open(tmp_path) as reader:
        assert not reader.from_index and reader.damage is not None and reader.damage.offset >= index
        assert reader.complete and reader.event_count(1) == 10
        assert sum(len(chunk) for chunk in reader.chunks(1)) == 10


@pytest.mark.parametrize(
    "lie",
    [
        lambda rows: rows["first"].__setitem__(3, 4),
        lambda rows: rows["domain"].__setitem__(3, 2),
        lambda rows: rows["type"].__setitem__(3, ChunkType.BLOB),
        lambda rows: rows["type"].__setitem__(3, ChunkType.DOMAIN_START),
        lambda rows: rows["type"].__setitem__(3, 200),
        lambda rows: rows["first"].__setitem__(2, 5),
    ],
)
def test_an_index_that_lies_about_chunks(tmp_path: Path, lie: Callable[[Rows], None]) -> None:
    """What the index claims is compared with the chunk: wrong events are never given out."""
    forge = basic()
    forge.events(0, 5)
    forge.events(5, 5)
    forge.add(ChunkType.FINAL, FINAL)
    rows = np.frombuffer(bytes(forge.rows), ROW_DTYPE).copy()
    lie(rows)
    index = len(forge.data)
    forge.add(ChunkType.INDEX, rows.tobytes())
    forge.data += pack_trailer(index, len(forge.data) + TRAILER.size, 1)
    with forge.open(tmp_path) as reader:
        found = 0
        for domain in reader.domains:
            try:
                for chunk in reader.chunks(domain):
                    assert (chunk.domain, chunk.first_event) == (1, found)
                    found += len(chunk)
            except TraceFormatError as error:
                assert error.offset in forge.offsets
        assert found <= 5
        assert not list(reader.reports)


@pytest.mark.parametrize(
    "trailer",
    [
        {"offset": 0},
        {"offset": (1 << 64) - 1},
        {"offset": 1 << 63},
        {"offset": FILE_HEADER.size},
        {"size": 0},
        {"size": (1 << 64) - 1},
        {"chunks": 0},
        {"chunks": 2},
        {"chunks": BIG - 1},
    ],
    ids=str,
)
def test_trailers_that_lie(tmp_path: Path, trailer: dict[str, int]) -> None:
    forge = basic()
    forge.events(0, 5)
    forge.finish(trailer=trailer)
    with forge.open(tmp_path) as reader:
        assert not reader.from_index and reader.damage is not None
        assert reader.complete and reader.event_count(1) == 5


def test_blobs_that_lie(tmp_path: Path) -> None:
    """Pieces missing, doubled, out of order, of another length than said, or of other content."""
    forge = basic()
    good = blob_digest(b"abcd")

    def piece(digest: str, data: bytes, number: int, offset: int, last: bool) -> None:
        flags = ChunkFlag.LAST_PIECE if last else 0
        forge.add(ChunkType.BLOB, bytes.fromhex(digest), data, count=number, first=offset, flags=flags)

    piece("11" * 32, b"ab", 1, 0, True)
    piece("22" * 32, b"ab", 0, 0, False)
    piece("33" * 32, b"ab", 0, 0, False)
    piece("33" * 32, b"ab", 1, 3, True)
    piece("44" * 32, b"ab", 0, 0, True)
    forge.add(ChunkType.BLOB, b"short", b"ab", flags=ChunkFlag.LAST_PIECE)
    piece(good, b"xx", 0, 0, False)
    piece(good, b"ab", 0, 0, False)
    piece(good, b"xx", 5, 2, True)
    piece(good, b"cd", 1, 2, True)
    piece(good, b"zz", 0, 0, True)
    with forge.open(tmp_path) as reader:
        assert b"".join(reader.blob(good)) == b"abcd"
        assert not reader.has_blob("11" * 32) and not reader.has_blob("22" * 32)
        with pytest.raises(TraceFormatError, match="piece 1 of blob 3333"):
            list(reader.blob("33" * 32))
        with pytest.raises(TraceFormatError, match="does not match its digest"):
            list(reader.blob("44" * 32))


def test_a_second_beginning_of_a_domain(tmp_path: Path) -> None:
    forge = basic()
    forge.events(0, 5)
    bad = forge.domain()
    with forge.open(tmp_path) as reader:
        assert reader.damage is not None and reader.damage.offset == bad and reader.event_count(1) == 5


def test_unknown_chunks_are_passed_over(tmp_path: Path) -> None:
    forge = basic()
    forge.add(200, b"from the future")
    forge.events(0, 5)
    forge.finish()
    with forge.open(tmp_path) as reader:
        assert reader.damage is None and reader.complete and reader.verify() == 5


BOUNDED = """
import resource, sys
from tracefile import TraceFormatError, TraceReader
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (450 << 20),) * 2)
for path in sys.argv[1:]:
    with TraceReader.open(path) as reader:
        try:
            reader.verify()
            for _ in reader.merged_runs():
                pass
        except TraceFormatError as error:
            print(path.rpartition("/")[2], "refused")
        else:
            print(path.rpartition("/")[2], "read")
"""


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """GIVEN traces of some kilobytes that would unfold to gigabytes WHEN read in 450 MB THEN each is refused,
    or read, without running out."""
    level = zstandard.ZstdCompressor(level=3)

    def squeezed(
        forge: Forge, kind: int, raw: bytes, domain: int = 0, count: int = 0, first: int = 0
    ) -> None:
        place = {"domain": domain, "count": count, "first": first}
        forge.put({"type": kind, "raw_a": len(raw), "codec_a": Codec.ZSTD, **place}, level.compress(raw), b"")

    files = {}
    forge = files["events"] = basic()
    count = SECTION_MAX // 96
    for number in range(60):
        squeezed(forge, ChunkType.EVENTS, bytes(96 * count), domain=1, count=count, first=number * count)
    forge = files["metadata"] = basic()
    padded = FileEntry(number=1, path="/usr/lib/x").encode()[:-1] + b',"pad":"' + b"x" * 15_000_000 + b'"}'
    for _ in range(60):
        squeezed(forge, ChunkType.FILE, padded)
    forge = files["wide"] = basic()
    squeezed(forge, ChunkType.META, b'{"a":[' + b"[]," * 5_000_000 + b"[]]}")
    forge = files["index"] = basic()
    forge.finish(rows=b"")
    squeezed(forge, ChunkType.INDEX, bytes(SECTION_MAX // ROW_DTYPE.itemsize * ROW_DTYPE.itemsize))
    forge = files["indexes"] = basic()
    forge.add(ChunkType.FINAL, FINAL)
    start = len(forge.data)
    for number in range(200):
        squeezed(forge, ChunkType.INDEX, bytes(65536 * ROW_DTYPE.itemsize), count=number)
    forge.data += pack_trailer(start, len(forge.data) + TRAILER.size, 200)
    forge = files["blob"] = basic()
    for number in range(200):
        piece = level.compress(bytes(SECTION_MAX))
        forge.add(
            ChunkType.BLOB,
            bytes(32),
            piece,
            raw_b=SECTION_MAX,
            codec_b=Codec.ZSTD,
            count=number,
            first=number * SECTION_MAX,
            flags=int(number == 199),
        )
    paths = []
    for name, forge in files.items():
        (tmp_path / name).write_bytes(forge.data)
        paths.append(str(tmp_path / name))
    root = Path(tracefile.__file__).parent.parent
    run = subprocess.run(
        [sys.executable, "-c", BOUNDED, *paths],
        env={**os.environ, "PYTHONPATH": str(root), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == ""
    assert run.stdout.split("\n")[:-1] == [
        "events read",
        "metadata refused",
        "wide refused",
        "index refused",
        "indexes refused",
        "blob refused",
    ]


def test_headers_reach_the_limits_but_not_beyond(tmp_path: Path) -> None:
    """The largest section that is allowed can be written and read."""
    forge = basic()
    forge.events(0, 1, bytes(SECTION_MAX))
    with forge.open(tmp_path) as reader:
        assert next(reader.chunks(1)).payload == bytes(SECTION_MAX)
        assert HEADER_SIZE == 80
