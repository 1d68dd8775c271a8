"""Reading the bytes of a trace: single chunks, the walk over all headers, and the index.

Nothing here keeps more in memory than one chunk and 88 bytes for each chunk of the file.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator
from typing import NoReturn

from tracefile.codec import CodecError, decompress, decompress_events, decompress_repeats, has_planes
from tracefile.errors import TraceFormatError, TraceMissingError
from tracefile.layout import (
    CHUNK_MAGIC,
    EVENT_SIZE,
    FILE_HEADER,
    FILE_MAGIC,
    FORMAT_VERSION,
    HEADER_SIZE,
    INDEX_ROWS_PER_CHUNK,
    ROW,
    TRAILER,
    TRAILER_MAGIC,
    ChunkHeader,
    ChunkType,
    Row,
    unpack_header,
    unpack_trailer,
)
from tracefile.planes import StoredEvents

_ZERO_TAIL_MAX = 64 << 20
_EVENTS = int(ChunkType.EVENTS)
_NOT_A_TRACE = "Name a file that `rr-py record` wrote."


class Source:
    """An open trace file; every read names its offset, so threads may share one object."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open a regular file that begins like a trace of this version, or raise a TraceError."""
        self.path = os.fspath(path)
        try:
            self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            raise TraceMissingError(
                f"{self.path}: cannot open the trace: {error.strerror}",
                "Check the name." if missing else "Make the file readable for you.",
            ) from error
        try:
            if not stat.S_ISREG(os.fstat(self.fd).st_mode):
                raise TraceFormatError(self.path, 0, "not a trace: no regular file", _NOT_A_TRACE)
            self._check_file_header()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; doing so again does nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def size(self) -> int:
        """Bytes of the file now."""
        return os.fstat(self.fd).st_size

    def fail(self, offset: int, problem: str, remedy: str = "") -> NoReturn:
        """Raise a TraceFormatError."""
        raise TraceFormatError(self.path, offset, problem, remedy)

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes at `offset`; fewer only at the end of the file."""
        try:
            data = os.pread(self.fd, size, offset)
            while len(data) < size and (more := os.pread(self.fd, size - len(data), offset + len(data))):
                data += more
        except OSError as error:
            raise TraceFormatError(self.path, offset, f"cannot be read: {error.strerror}") from error
        return data

    def header(self, offset: int) -> ChunkHeader:
        """The chunk header at `offset`."""
        data = self.read(offset, HEADER_SIZE)
        if len(data) < HEADER_SIZE:
            self.fail(offset, "the file ends within a chunk header")
        header = unpack_header(data)
        if isinstance(header, str):
            self.fail(offset, header)
        return header

    def stored_a(self, offset: int, header: ChunkHeader) -> bytes:
        """The stored bytes of section A, checked."""
        return self._stored(offset + HEADER_SIZE, header.stored_a, header.crc_a, "A")

    def stored_b(self, offset: int, header: ChunkHeader) -> bytes:
        """The stored bytes of section B, checked."""
        return self._stored(offset + HEADER_SIZE + header.stored_a, header.stored_b, header.crc_b, "B")

    def section_a(self, offset: int, header: ChunkHeader) -> bytes:
        """The raw bytes of section A of the chunk at `offset`."""
        return self._decoded(offset, self.stored_a(offset, header), header.codec_a, header.raw_a)

    def events_a(self, offset: int, header: ChunkHeader) -> bytes | StoredEvents:
        """The events of section A of the chunk at `offset`, as planes where they are stored so."""
        if not has_planes(header.codec_a):
            return self.section_a(offset, header)
        try:
            return decompress_events(header.codec_a, self.stored_a(offset, header), header.raw_a)
        except CodecError as error:
            self.fail(offset, str(error))

    def section_b(self, offset: int, header: ChunkHeader) -> bytes:
        """The raw bytes of section B of the chunk at `offset`."""
        return self._decoded(offset, self.stored_b(offset, header), header.codec_b, header.raw_b)

    def repeats_b(self, offset: int, header: ChunkHeader) -> bytes:
        """Table and literals of section B of the chunk at `offset`, which has repeats."""
        try:
            return decompress_repeats(self.stored_b(offset, header), header.raw_b)
        except CodecError as error:
            self.fail(offset, str(error))

    def body_is_whole(self, offset: int, header: ChunkHeader) -> bool:
        """Whether both sections are there and match their checksums."""
        try:
            self.stored_a(offset, header)
            self.stored_b(offset, header)
        except TraceFormatError:
            return False
        return True

    def _stored(self, offset: int, size: int, crc: int, name: str) -> bytes:
        data = self.read(offset, size)
        if len(data) < size:
            self.fail(offset, f"section {name} is cut: {len(data)} of {size} bytes")
        if zlib.crc32(data) != crc:
            self.fail(offset, f"section {name} is damaged: its checksum does not match")
        return data

    def _decoded(self, offset: int, stored: bytes, codec: int, raw: int) -> bytes:
        try:
            return decompress(codec, stored, raw)
        except CodecError as error:
            self.fail(offset, str(error))

    def _check_file_header(self) -> None:
        data = self.read(0, FILE_HEADER.size)
        if not data:
            self.fail(0, "not a trace: the file is empty", _NOT_A_TRACE)
        if data[: len(FILE_MAGIC)] != FILE_MAGIC[: len(data)]:
            self.fail(0, f"not a trace: it begins with {data[:16]!r}", _NOT_A_TRACE)
        if len(data) < FILE_HEADER.size:
            self.fail(
                0, f"the trace ends after {len(data)} bytes, before anything was recorded", "Record again."
            )
        _, version, event_size, _, crc = FILE_HEADER.unpack(data)
        if zlib.crc32(data[:-4]) != crc:
            self.fail(0, "the file header is damaged: its checksum does not match", "Record again.")
        if version != FORMAT_VERSION or event_size != EVENT_SIZE:
            self.fail(
                len(FILE_MAGIC),
                f"trace format version {version} with events of {event_size} bytes; this rr-py reads version "
                f"{FORMAT_VERSION} with events of {EVENT_SIZE} bytes",
                "Use the version of rr-py that recorded it.",
            )


class Walk:
    """Result of looking at chunk headers from some place on.

    `rows` are the usable chunks, INDEX excluded, packed as in the index and decoded by iterating; `end` is
    where the last of them ends; `truncated` bytes behind it are an unfinished chunk; `finished`: a FINAL
    chunk is among them; `damage`: why the walk stopped early.
    """

    def __init__(
        self, rows: bytes, end: int, sequence: int, *, finished: bool = False, from_index: bool = False
    ) -> None:
        self.rows = rows
        self.end = end
        self.sequence = sequence
        self.truncated = 0
        self.finished = finished
        self.damage: TraceFormatError | None = None
        self.from_index = from_index

    def __iter__(self) -> Iterator[Row]:
        return map(Row._make, ROW.iter_unpack(self.rows))


def walk_headers(source: Source, offset: int, sequence: int) -> Walk:
    """Follow the chunk headers from `offset`, where chunk number `sequence` begins, to the end of the file.

    Bodies are not read, except those at the very end of a trace without FINAL chunk: after a power cut they
    may be missing although the header is there.
    """
    size = source.size()
    rows = bytearray()
    walk = Walk(b"", offset, sequence)
    while offset < size:
        data = source.read(offset, HEADER_SIZE)
        if walk.finished and not data.startswith(CHUNK_MAGIC[: len(data)]):
            walk.truncated, walk.damage = _after_index(source, offset, data, size - offset)
            break
        if len(data) < HEADER_SIZE:
            walk.truncated = size - offset
            break
        header = unpack_header(data)
        problem = header if isinstance(header, str) else _misplaced(header, sequence, walk.finished)
        if isinstance(header, str) or problem:
            if not any(data) and _only_zeros(source, offset, size):
                walk.truncated = size - offset
            else:
                walk.damage = TraceFormatError(source.path, offset, problem)
            break
        if header.size > size - offset:
            walk.truncated = size - offset
            break
        if header.type != ChunkType.INDEX:
            rows += data + offset.to_bytes(8, "little")
            walk.end = offset + header.size
            walk.sequence = sequence + 1
            walk.finished = header.type == ChunkType.FINAL
        sequence += 1
        offset += header.size
    walk.rows = bytes(rows)
    if not walk.finished and walk.damage is None:
        _drop_torn_tail(source, walk, size)
    return walk


def _misplaced(header: ChunkHeader, sequence: int, finished: bool) -> str:
    """Why a sound chunk cannot stand here; empty when it can. An index follows a final record, nothing else
    does."""
    if header.sequence != sequence:
        return f"chunk {header.sequence} where chunk {sequence} should be"
    if finished and header.type != ChunkType.INDEX:
        return "a chunk after the final record"
    if not finished and header.type == ChunkType.INDEX:
        return "an index before the final record"
    return ""


def _after_index(source: Source, offset: int, data: bytes, left: int) -> tuple[int, TraceFormatError | None]:
    """What follows the index where no chunk begins: (bytes of a cut trailer, what is wrong)."""
    if left < TRAILER.size and TRAILER_MAGIC.startswith(data[: len(TRAILER_MAGIC)]):
        return left, None
    if unpack_trailer(data[: TRAILER.size].ljust(TRAILER.size, b"\0")) is None:
        return 0, TraceFormatError(source.path, offset, "the trailer is damaged")
    if left > TRAILER.size:
        return 0, TraceFormatError(source.path, offset + TRAILER.size, "bytes after the trace's end")
    return 0, None


def _drop_torn_tail(source: Source, walk: Walk, size: int) -> None:
    while walk.rows:
        row = walk.rows[-ROW.size :]
        offset = Row._make(ROW.unpack(row)).offset
        header = unpack_header(row[:HEADER_SIZE])
        if isinstance(header, str) or source.body_is_whole(offset, header):
            return
        walk.rows = walk.rows[: -ROW.size]
        walk.end = offset
        walk.sequence -= 1
        walk.truncated = size - offset


def _only_zeros(source: Source, offset: int, size: int) -> bool:
    if size - offset > _ZERO_TAIL_MAX:
        return False
    step = 1 << 20
    return not any(any(source.read(place, min(step, size - place))) for place in range(offset, size, step))


def read_index(source: Source) -> Walk | TraceFormatError | None:
    """The walk as the index at the end of the file tells it.

    None when the file does not end with a trailer; the error when it does but the index is not to be trusted.
    Rows are checked to lie one behind the other without gap or overlap; what else they claim is compared with
    the chunk itself when it is read.
    """
    size = source.size()
    if size < FILE_HEADER.size + TRAILER.size:
        return None
    trailer = unpack_trailer(source.read(size - TRAILER.size, TRAILER.size))
    if trailer is None:
        return None
    index_offset, claimed_size, chunks = trailer
    try:
        if claimed_size != size:
            source.fail(
                size - TRAILER.size, f"the trailer speaks of {claimed_size} bytes, the file has {size}"
            )
        if not FILE_HEADER.size <= index_offset < size:
            source.fail(size - TRAILER.size, f"the index is said to be at {index_offset}")
        if chunks > 1 + size // HEADER_SIZE // INDEX_ROWS_PER_CHUNK:
            source.fail(size - TRAILER.size, f"{chunks} index chunks in a file of {size} bytes")
        rows = _read_rows(source, index_offset, size - TRAILER.size, chunks)
        _check_rows(source, rows, index_offset)
    except TraceFormatError as error:
        return error
    return Walk(rows, index_offset, len(rows) // ROW.size, finished=True, from_index=True)


def _read_rows(source: Source, offset: int, end: int, chunks: int) -> bytes:
    parts = []
    for number in range(chunks):
        header = source.header(offset)
        rows, rest = divmod(header.raw_a, ROW.size)
        if header.type != ChunkType.INDEX or header.count != number or header.raw_b:
            source.fail(offset, f"part {number} of the index should be here")
        if rest or rows > INDEX_ROWS_PER_CHUNK:
            source.fail(offset, f"an index chunk of {header.raw_a} bytes")
        parts.append(source.section_a(offset, header))
        offset += header.size
    if offset != end:
        source.fail(offset, f"the index ends at {offset}, the trailer begins at {end}")
    return b"".join(parts)


def _check_rows(source: Source, rows: bytes, index_offset: int) -> None:
    end = FILE_HEADER.size
    kind = 0
    for number, row in enumerate(map(Row._make, ROW.iter_unpack(rows))):
        kind = row.type
        if row.sequence != number:
            source.fail(index_offset, "the index does not count its chunks one by one")
        if row.offset != end:
            source.fail(index_offset, "the index has gaps or overlaps")
        if kind == _EVENTS and (row.items == 0 or row.raw_a != row.items * EVENT_SIZE):
            source.fail(index_offset, "the index has event chunks of impossible size")
        end = row.end
    if kind != ChunkType.FINAL:
        source.fail(index_offset, "the index does not end with a final record")
    if end != index_offset:
        source.fail(index_offset, "the index has gaps or overlaps")
