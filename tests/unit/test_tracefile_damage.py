"""Traces that were cut or changed: what precedes stays usable, and nothing that changed goes unnoticed."""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from interfaces.abi import EVENT_DTYPE
from tracefile import (
    BootImage,
    BootMapping,
    DomainEnd,
    DomainStart,
    FileEntry,
    Report,
    TraceError,
    TraceFormatError,
    TraceMissingError,
    TraceReader,
    TraceWriter,
    blob_digest,
)
from tracefile.layout import (
    FILE_HEADER,
    FILE_MAGIC,
    HEADER_SIZE,
    TRAILER,
    ChunkHeader,
    ChunkType,
    unpack_header,
)

CONTENT = b"some content of a file" * 30


@dataclass
class Sample:
    """A small finished trace, its bytes, and the place of each of its chunks."""

    path: Path
    data: bytes
    chunks: list[tuple[int, ChunkHeader]]
    events: dict[int, bytes]

    def read(self, data: bytes) -> TraceReader:
        """Open other bytes in its place."""
        self.path.write_bytes(data)
        return TraceReader.open(self.path)

    def first(self, kind: ChunkType) -> tuple[int, ChunkHeader]:
        return next((offset, header) for offset, header in self.chunks if header.type == kind)


def some_events(first: int, count: int) -> bytes:
    events = np.zeros(count, EVENT_DTYPE)
    events["result"] = np.arange(first, first + count)
    events["time_out"] = np.arange(first, first + count) * 100
    events["payload_len"] = 8
    events["payload_off"] = np.arange(count) * 8
    return events.tobytes()


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    path = tmp_path / "trace.bin"
    boot = BootImage(
        mappings=[
            BootMapping(start=0x1000, end=0x2000, prot=5, path="/bin/x", file=1, data=((0x1800, b"bss"),))
        ],
        stack_start=0x7000,
        stack=b"stack",
        regs={"rip": 0x1000},
        auxv=[(3, 4)],
        brk=0x3000,
    )
    events: dict[int, bytes] = {1: b"", 2: b""}
    with TraceWriter.create(path, {"command": ["x"]}) as trace:
        trace.add_domain(DomainStart(domain=1, kind="exec", pid=7, comm="x", argv=["x"], boot=boot))
        trace.add_file(FileEntry(number=1, path="/bin/x", kind="stored", blob=blob_digest(CONTENT), size=660))
        trace.add_blob(blob_digest(CONTENT), [CONTENT])
        for number, domain in enumerate((1, 2, 1, 2, 1)):
            if number == 1:
                trace.add_domain(DomainStart(domain=2, kind="fork", pid=8, parent_domain=1, comm="y"))
            first = len(events[domain]) // 96
            raw = some_events(first, 3 + number)
            trace.add_events(domain, first, raw, bytes(range(number, number + 8 * (3 + number))))
            events[domain] += raw
        trace.add_report(Report(time=5, domain=1, pid=7, code=1, text="something"))
        trace.end_domain(DomainEnd(domain=2, pid=8, status="exited", code=1))
        trace.end_domain(DomainEnd(domain=1, pid=7, status="exited"))
        trace.close({"status": 0})
    data = path.read_bytes()
    chunks = []
    offset = FILE_HEADER.size
    while offset < len(data) - TRAILER.size:
        header = unpack_header(data[offset : offset + HEADER_SIZE])
        assert isinstance(header, ChunkHeader)
        chunks.append((offset, header))
        offset += header.size
    return Sample(path, data, chunks, events)


def events_of(reader: TraceReader, domain: int) -> bytes:
    """The events that can be read before the first damaged chunk."""
    found = b""
    try:
        for chunk in reader.chunks(domain):
            found += chunk.events.tobytes()
    except TraceFormatError:
        pass
    return found


def test_cut_at_every_byte(sample: Sample) -> None:
    """A trace cut anywhere gives exactly the chunks that are whole, and is not an error."""
    ends = [offset + header.size for offset, header in sample.chunks]
    final = next(offset + header.size for offset, header in sample.chunks if header.type == ChunkType.FINAL)
    for size in range(len(sample.data)):
        if size < FILE_HEADER.size:
            with pytest.raises(TraceFormatError) as caught:
                sample.read(sample.data[:size])
            assert caught.value.offset == 0
            continue
        with sample.read(sample.data[:size]) as reader:
            whole = sum(end <= size for end in ends if end <= final)
            assert reader.damage is None
            assert reader.verify() == whole
            assert reader.complete == (size >= final)
            assert bool(reader.stopped) == (size < final)
            assert (reader.truncated > 0) == (size not in (FILE_HEADER.size, *ends))
            for domain in reader.domains:
                found = events_of(reader, domain)
                assert sample.events[domain].startswith(found)
                assert len(found) == reader.event_count(domain) * 96
            assert set(reader.domains) == {
                header.domain
                for offset, header in sample.chunks
                if header.type == ChunkType.DOMAIN_START and offset + header.size <= size
            }


def test_every_flipped_byte_is_noticed(sample: Sample) -> None:
    """Whatever byte changes, the reader says so; and all events it still gives are the recorded ones."""
    dice = random.Random(1)
    for place in range(len(sample.data)):
        data = bytearray(sample.data)
        data[place] ^= 1 << dice.randrange(8)
        try:
            reader = sample.read(bytes(data))
        except TraceFormatError as error:
            assert place < FILE_HEADER.size and error.offset in (0, 16)
            continue
        with reader:
            with pytest.raises(TraceFormatError) as caught:
                reader.verify()
            chunk = next(
                (offset for offset, header in reversed(sample.chunks) if offset <= place),
                len(sample.data) - TRAILER.size,
            )
            if place < len(sample.data) - TRAILER.size:
                assert chunk <= caught.value.offset <= place, place
            for domain in reader.domains:
                assert sample.events[domain].startswith(events_of(reader, domain)), place


@pytest.mark.parametrize("seed", range(200))
def test_random_damage(sample: Sample, seed: int) -> None:
    """Several bytes changed, pieces cut out, doubled or moved: always one clear error, or a clean reader."""
    dice = random.Random(seed)
    data = bytearray(sample.data)
    for _ in range(dice.randint(1, 6)):
        at, size = dice.randrange(len(data)), dice.randint(1, 200)
        match dice.randrange(4):
            case 0:
                data[at : at + size] = dice.randbytes(size)
            case 1:
                del data[at : at + size]
            case 2:
                data[at:at] = data[at : at + size]
            case 3:
                data[at] ^= 0xFF
    try:
        reader = sample.read(bytes(data))
    except TraceError as error:
        assert str(sample.path) in error.message and error.remedy
        return
    with reader:
        assert isinstance(reader.stopped, str)
        for domain in reader.domains:
            if domain in sample.events:
                assert sample.events[domain].startswith(events_of(reader, domain))
        if reader.damage is not None:
            with pytest.raises(TraceFormatError):
                reader.verify()


def test_damage_in_the_middle_spares_what_precedes_and_other_domains(sample: Sample) -> None:
    """GIVEN a damaged body in the second chunk of domain 1 WHEN reading THEN its first chunk is there, the
    error names the place, and domain 2 is whole."""
    offset, header = [item for item in sample.chunks if item[1].type == ChunkType.EVENTS][2]
    assert (header.domain, header.first) == (1, 3)
    data = bytearray(sample.data)
    data[offset + HEADER_SIZE + 5] ^= 1
    with sample.read(bytes(data)) as reader:
        assert reader.complete and reader.damage is None
        chunks = reader.chunks(1)
        assert next(chunks).events.tobytes() == sample.events[1][: 3 * 96]
        with pytest.raises(TraceFormatError, match="section A is damaged") as caught:
            next(chunks)
        assert caught.value.offset == offset + HEADER_SIZE
        assert f"at offset {offset + HEADER_SIZE}" in str(caught.value)
        assert events_of(reader, 2) == sample.events[2]
        assert reader.event(1, 8).result == 8


@pytest.mark.parametrize("with_index", [True, False])
def test_a_damaged_header(sample: Sample, with_index: bool) -> None:
    """GIVEN a damaged chunk header WHEN there is an index THEN only that chunk is lost; else what precedes is
    there."""
    offset, _ = [item for item in sample.chunks if item[1].type == ChunkType.EVENTS][2]
    data = bytearray(sample.data)
    data[offset + 30] ^= 1
    with sample.read(bytes(data) if with_index else bytes(data[: -TRAILER.size])) as reader:
        assert events_of(reader, 1) == sample.events[1][: 3 * 96]
        if with_index:
            assert events_of(reader, 2) == sample.events[2] and reader.damage is None
        else:
            assert reader.damage is not None and reader.damage.offset == offset
            assert events_of(reader, 2) == sample.events[2][: 4 * 96]
            assert f"checksum does not match (at offset {offset})" in reader.stopped
            assert "domain 1 (process 7, x) stops after 3 events" in reader.stopped


def test_a_missing_index_is_rebuilt(sample: Sample) -> None:
    index, _ = sample.first(ChunkType.INDEX)
    with TraceReader.open(sample.path) as reader:
        assert reader.from_index
        expected = {number: list(info.offsets) for number, info in reader.domains.items()}
    with sample.read(sample.data[:index]) as reader:
        assert not reader.from_index and reader.complete and reader.truncated == 0
        assert {number: list(info.offsets) for number, info in reader.domains.items()} == expected


def test_a_damaged_index_is_rebuilt(sample: Sample) -> None:
    index, _ = sample.first(ChunkType.INDEX)
    data = bytearray(sample.data)
    data[index + HEADER_SIZE + 3] ^= 1
    with sample.read(bytes(data)) as reader:
        assert not reader.from_index and reader.complete
        assert reader.damage is not None and index <= reader.damage.offset < index + HEADER_SIZE + 1
        assert {domain: events_of(reader, domain) for domain in reader.domains} == sample.events


@pytest.mark.parametrize(
    ("kind", "lost"),
    [
        (ChunkType.META, "meta"),
        (ChunkType.FILE, "files"),
        (ChunkType.REPORT, "reports"),
    ],
)
def test_damaged_metadata_spares_the_rest(sample: Sample, kind: ChunkType, lost: str) -> None:
    offset, _ = sample.first(kind)
    data = bytearray(sample.data)
    data[offset + HEADER_SIZE] ^= 1
    with sample.read(bytes(data)) as reader:
        assert reader.damage is not None and reader.damage.offset == offset + HEADER_SIZE
        assert not getattr(reader, lost)
        assert {domain: events_of(reader, domain) for domain in reader.domains} == sample.events


def test_a_damaged_domain_start_loses_that_domain(sample: Sample) -> None:
    offset, _ = sample.first(ChunkType.DOMAIN_START)
    data = bytearray(sample.data)
    data[offset + HEADER_SIZE] ^= 1
    with sample.read(bytes(data)) as reader:
        assert list(reader.domains) == [2] and events_of(reader, 2) == sample.events[2]
        assert reader.damage is not None and reader.damage.offset == offset + HEADER_SIZE


def test_a_damaged_stack_is_noticed_when_it_is_read(sample: Sample) -> None:
    offset, header = sample.first(ChunkType.DOMAIN_START)
    data = bytearray(sample.data)
    data[offset + HEADER_SIZE + header.stored_a + 3] ^= 1
    with sample.read(bytes(data)) as reader:
        assert reader.damage is None and reader.domains[1].pid == 7
        with pytest.raises(TraceFormatError, match="section B is damaged"):
            _ = reader.domains[1].boot


def test_damaged_content(sample: Sample) -> None:
    offset, header = sample.first(ChunkType.BLOB)
    data = bytearray(sample.data)
    data[offset + HEADER_SIZE + header.stored_a + 3] ^= 1
    with sample.read(bytes(data)) as reader, pytest.raises(TraceFormatError, match="section B is damaged"):
        list(reader.blob(blob_digest(CONTENT)))


@pytest.mark.parametrize("zeros", [1, 79, 80, 5000])
def test_zeros_at_the_end(sample: Sample, zeros: int) -> None:
    """A power cut may leave zeros where a chunk was going to be."""
    offset, _ = sample.first(ChunkType.REPORT)
    with sample.read(sample.data[:offset] + bytes(zeros)) as reader:
        assert reader.damage is None and reader.truncated == zeros
        assert {domain: events_of(reader, domain) for domain in reader.domains} == sample.events
        assert f"left {zeros} bytes of an unfinished chunk" in reader.stopped


def test_zeros_in_the_middle_are_damage(sample: Sample) -> None:
    offset, header = sample.first(ChunkType.REPORT)
    data = sample.data[:offset] + bytes(header.size) + sample.data[offset + header.size : -TRAILER.size]
    with sample.read(data) as reader:
        assert reader.damage is not None and reader.damage.offset == offset


def test_bytes_behind_the_end(sample: Sample) -> None:
    with sample.read(sample.data + b"more") as reader:
        assert reader.complete
        assert reader.damage is not None and reader.damage.offset == len(sample.data)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\x7fELF and more", "not a trace: it begins with b'\\\\x7fELF and more'"),
        (FILE_MAGIC[:7], "ends after 7 bytes, before anything was recorded"),
        (FILE_MAGIC + bytes(16), "the file header is damaged"),
        (FILE_MAGIC.replace(b"\r\n", b"\n") + bytes(40), "not a trace"),
    ],
)
def test_not_a_trace(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(TraceFormatError, match=message) as caught:
        TraceReader.open(path)
    assert caught.value.offset == 0 and caught.value.remedy


def test_another_version(tmp_path: Path) -> None:
    body = FILE_HEADER.pack(FILE_MAGIC, 7, 96, 0, 0)[:-4]
    (tmp_path / "file").write_bytes(body + zlib.crc32(body).to_bytes(4, "little"))
    with pytest.raises(TraceFormatError, match=r"version 7 .* reads version 1") as caught:
        TraceReader.open(tmp_path / "file")
    assert "version of rr-py that recorded it" in caught.value.remedy


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(TraceMissingError, match="No such file"):
        TraceReader.open(tmp_path / "missing")
    with pytest.raises(TraceFormatError, match="no regular file"):
        TraceReader.open(tmp_path)
