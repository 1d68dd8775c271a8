"""The bytes of a trace: file header, chunk headers, index rows and trailer.

Everything here is little-endian and fixed in size, so that a trace can be walked by reading 80 bytes per
chunk. docs/trace-format.md describes the same layout for people; tests/unit/test_tracefile_layout.py keeps
the two together. Nothing in this module opens a file.
"""

import struct
import zlib
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    ROW_DTYPE: np.dtype[np.void]

FORMAT_VERSION = 1
FILE_MAGIC = b"\x89rr-py trace\r\n\x1a\n"
FILE_HEADER = struct.Struct("<16sIIII")
"""magic, format version, bytes of an event, reserved, CRC-32 of what precedes."""

CHUNK_MAGIC = b"RRCK"
CHUNK_HEADER = struct.Struct("<4sBBHQIIQQQIIIIIIBBHI")
HEADER_SIZE = CHUNK_HEADER.size

TRAILER_MAGIC = b"RRPYEND\n"
TRAILER = struct.Struct("<8sQQII")
"""magic, offset of the first index chunk, size of the whole file, number of index chunks, CRC-32."""

EVENT_SIZE = 96
SECTION_MAX = 16 << 20
"""The most bytes a section of a chunk may have before compression; larger claims are refused unread."""
BLOB_PIECE = 1 << 20
"""Content is stored in pieces of this many bytes; only the last piece of a blob may be shorter."""
INDEX_ROWS_PER_CHUNK = 65536
EVENT_NUMBER_MAX = 1 << 62


class ChunkType(IntEnum):
    """What a chunk holds; section A and section B are described in docs/trace-format.md."""

    META = 1
    EVENTS = 2
    DOMAIN_START = 3
    DOMAIN_END = 4
    FILE = 5
    BLOB = 6
    REPORT = 7
    FINAL = 8
    INDEX = 9


class Codec(IntEnum):
    """How the stored bytes of a section become its raw bytes."""

    RAW = 0
    ZSTD = 1
    ZSTD_EVENTS = 2
    """zstd over events turned into byte planes of column differences, all of them. No longer written."""
    ZSTD_REPEATS = 3
    """zstd over a payload without the pieces that earlier chunks have (see `repeats`)."""
    ZSTD_PACKED = 4
    """zstd over events turned into byte planes of column differences, without those of zeros (`planes`)."""


_OF_EVENTS = (Codec.ZSTD_EVENTS, Codec.ZSTD_PACKED)
_COMPRESSED = (Codec.ZSTD, *_OF_EVENTS, Codec.ZSTD_REPEATS)


class ChunkFlag(IntFlag):
    """Bits of a chunk header's flags."""

    LAST_PIECE = 1
    """BLOB: no piece of this blob follows."""


HEADER_FIELDS = [
    ("magic", "S4"),
    ("type", "u1"),
    ("version", "u1"),
    ("flags", "<u2"),
    ("sequence", "<u8"),
    ("domain", "<u4"),
    ("count", "<u4"),
    ("first", "<u8"),
    ("time_first", "<u8"),
    ("time_last", "<u8"),
    ("raw_a", "<u4"),
    ("stored_a", "<u4"),
    ("raw_b", "<u4"),
    ("stored_b", "<u4"),
    ("crc_a", "<u4"),
    ("crc_b", "<u4"),
    ("codec_a", "u1"),
    ("codec_b", "u1"),
    ("reserved", "<u2"),
    ("crc", "<u4"),
]
ROW = struct.Struct(CHUNK_HEADER.format + "Q")
"""One row of the index: a chunk header as it stands in the file, then its offset in the file. ROW_DTYPE is
the same for numpy."""


class Row(NamedTuple):
    """A decoded row of the index, its fields as in ROW; `items` is the header's count."""

    magic: bytes
    type: int
    version: int
    flags: int
    sequence: int
    domain: int
    items: int
    first: int
    time_first: int
    time_last: int
    raw_a: int
    stored_a: int
    raw_b: int
    stored_b: int
    crc_a: int
    crc_b: int
    codec_a: int
    codec_b: int
    reserved: int
    crc: int
    offset: int

    @property
    def end(self) -> int:
        """Where the chunk ends in the file."""
        return self.offset + HEADER_SIZE + self.stored_a + self.stored_b


assert HEADER_SIZE == 80
assert ROW.size == HEADER_SIZE + 8


class ChunkHeader(NamedTuple):
    """A decoded chunk header. Sizes are bytes; `first` and `count` are event numbers for EVENTS, for BLOB the
    offset of the piece in its blob and the number of the piece; times are CLOCK_MONOTONIC nanoseconds."""

    type: int
    sequence: int
    domain: int = 0
    count: int = 0  # type: ignore[assignment]
    first: int = 0
    time_first: int = 0
    time_last: int = 0
    raw_a: int = 0
    stored_a: int = 0
    raw_b: int = 0
    stored_b: int = 0
    crc_a: int = 0
    crc_b: int = 0
    codec_a: int = 0
    codec_b: int = 0
    flags: int = 0
    version: int = FORMAT_VERSION

    @property
    def size(self) -> int:
        """Bytes of the chunk in the file, header included."""
        return HEADER_SIZE + self.stored_a + self.stored_b

    def pack(self) -> bytes:
        """The 80 bytes of the header, checksum included."""
        body = CHUNK_HEADER.pack(
            CHUNK_MAGIC,
            self.type,
            self.version,
            self.flags,
            self.sequence,
            self.domain,
            self.count,
            self.first,
            self.time_first,
            self.time_last,
            self.raw_a,
            self.stored_a,
            self.raw_b,
            self.stored_b,
            self.crc_a,
            self.crc_b,
            self.codec_a,
            self.codec_b,
            0,
            0,
        )[:-4]
        return body + zlib.crc32(body).to_bytes(4, "little")


def unpack_header(data: bytes) -> ChunkHeader | str:
    """Decode and check 80 bytes; a string says what is wrong with them.

    A header that passes claims only sizes within bounds, so whoever reads the body needs no further check
    before allocating.
    """
    (
        magic,
        kind,
        version,
        flags,
        sequence,
        domain,
        count,
        first,
        time_first,
        time_last,
        raw_a,
        stored_a,
        raw_b,
        stored_b,
        crc_a,
        crc_b,
        codec_a,
        codec_b,
        reserved,
        crc,
    ) = CHUNK_HEADER.unpack(data)
    if magic != CHUNK_MAGIC:
        return f"no chunk begins here (found {magic!r}, expected {CHUNK_MAGIC!r})"
    if zlib.crc32(data[:-4]) != crc:
        return "the chunk header's checksum does not match"
    if version != FORMAT_VERSION or reserved != 0:
        return f"chunk version {version}, expected {FORMAT_VERSION}"
    header = ChunkHeader(
        kind,
        sequence,
        domain,
        count,
        first,
        time_first,
        time_last,
        raw_a,
        stored_a,
        raw_b,
        stored_b,
        crc_a,
        crc_b,
        codec_a,
        codec_b,
        flags,
        version,
    )
    return header_problem(header) or header


def header_problem(h: ChunkHeader) -> str:
    """What is impossible about a header's sizes and counts; empty when nothing is."""
    for name, raw, stored, codec in (
        ("A", h.raw_a, h.stored_a, h.codec_a),
        ("B", h.raw_b, h.stored_b, h.codec_b),
    ):
        if raw > SECTION_MAX:
            return f"section {name} claims {raw} bytes, the most is {SECTION_MAX}"
        if codec == Codec.RAW:
            if stored != raw:
                return f"section {name} is stored as it is but claims {raw} raw and {stored} stored bytes"
        elif codec not in _COMPRESSED or stored > raw:
            return f"section {name} has codec {codec} and {stored} stored bytes for {raw} raw ones"
    if h.codec_b in _OF_EVENTS or (h.codec_a in _OF_EVENTS and h.type != ChunkType.EVENTS):
        return "the codec of events is used for something else"
    if h.codec_a == Codec.ZSTD_REPEATS or (h.codec_b == Codec.ZSTD_REPEATS and h.type != ChunkType.EVENTS):
        return "the codec of repeated payload is used for something else"
    if h.type == ChunkType.EVENTS:
        if h.count == 0 or h.raw_a != h.count * EVENT_SIZE:
            return (
                f"{h.count} events in {h.raw_a} bytes, expected {h.count * EVENT_SIZE} and at least one event"
            )
        if h.first > EVENT_NUMBER_MAX:
            return f"first event {h.first} is beyond {EVENT_NUMBER_MAX}"
        if h.domain == 0:
            return "events of domain 0, domains count from 1"
    return ""


def pack_file_header() -> bytes:
    """The first 32 bytes of a trace."""
    body = FILE_HEADER.pack(FILE_MAGIC, FORMAT_VERSION, EVENT_SIZE, 0, 0)[:-4]
    return body + zlib.crc32(body).to_bytes(4, "little")


def pack_trailer(index_offset: int, file_size: int, index_chunks: int) -> bytes:
    """The last 32 bytes of a finished trace of `file_size` bytes, these included."""
    body = TRAILER.pack(TRAILER_MAGIC, index_offset, file_size, index_chunks, 0)[:-4]
    return body + zlib.crc32(body).to_bytes(4, "little")


def unpack_trailer(data: bytes) -> tuple[int, int, int] | None:
    """(index offset, file size, index chunks), or None if these 32 bytes are no trailer."""
    magic, offset, size, chunks, crc = TRAILER.unpack(data)
    if magic != TRAILER_MAGIC or zlib.crc32(data[:-4]) != crc:
        return None
    return offset, size, chunks


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """ROW_DTYPE when it is first asked for, which no recording or replay does."""
        if name != "ROW_DTYPE":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from interfaces.arrays import numpy

        globals()[name] = dtype = numpy().dtype([*HEADER_FIELDS, ("offset", "<u8")])
        return dtype
