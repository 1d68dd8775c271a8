"""What was read before is stored once: the payload of a chunk may point into that of an earlier one.

Programs read the same content again and again: each compiler of a build the same headers, each Python the
same modules. zstd cannot see that, since every chunk is compressed alone so that it can be read alone. A
section with repeats is, before compression, a table and the literals:

    u64 number of rows; rows of u32 at, u32 length, u32 from, u32 domain, u64 first; then the literal bytes

The raw section is the literals with the rows' pieces put in: `length` bytes at byte `at` of it are those from
byte `from` of the *literals* of the payload of that `domain`'s chunk whose first event is `first` (of all its
bytes where it has no table). So no row ever leads to another.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import islice

from interfaces.abi import EVENT_SIZE, REGION_HEADER, Event, RegionKind
from tracefile.digest import short_digest
from tracefile.planes import survey

REPEAT_MIN = 1024
"""Bytes of the shortest piece worth a row."""
KNOWN_MAX = 100_000
"""Pieces that are remembered: some 30 MB of the recorder's memory."""
_COUNT = struct.Struct("<Q")
_ROW = struct.Struct("<IIIIQ")
_U32_PER_EVENT = EVENT_SIZE // 4
_OFFSET_AT = Event.payload_off.offset // 4
_LENGTH_AT = Event.payload_len.offset // 4

Literals = Callable[[int, int], bytes]
"""The literals of the payload of a domain's chunk that begins with that event; ValueError: there is none."""


class RepeatError(ValueError):
    """A section's table is not what a trace has there."""


class Repeats:
    """Finds what a trace holds already. One object belongs to one thread."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[int, int, int]] = {}

    def split(self, domain: int, first: int, events: bytes, payload: bytes) -> bytes | None:
        """Table and literals of the payload of a chunk that is written next; None where nothing repeats."""
        rows: list[bytes] = []
        literals: list[bytes] = []
        end = removed = 0
        for at, length in _pieces(events, payload):
            digest = short_digest(payload[at : at + length])
            place = self._known.get(digest)
            if place is None:
                if len(self._known) < KNOWN_MAX:
                    self._known[digest] = (at - removed, domain, first)
                continue
            rows.append(_ROW.pack(at, length, *place))
            literals.append(payload[end:at])
            end = at + length
            removed += length
        if not rows:
            return None
        return b"".join((_COUNT.pack(len(rows)), *rows, *literals, payload[end:]))


def _pieces(events: bytes, payload: bytes) -> Iterator[tuple[int, int]]:
    """Offset and length of every long piece of memory that a call wrote, ascending.

    The program can have overwritten its log: what is not in order is passed over.
    """
    if len(payload) < REPEAT_MIN or survey(events).longest < REPEAT_MIN:
        return
    words = memoryview(events).cast("I")
    lengths = words[_LENGTH_AT::_U32_PER_EVENT].tolist()
    offsets = words[_OFFSET_AT::_U32_PER_EVENT].tolist()
    done = 0
    for at, length in zip(offsets, lengths, strict=True):
        end = min(at + length, len(payload))
        while length >= REPEAT_MIN and done <= at <= end - REGION_HEADER.size:
            _, size, kind, _, _ = REGION_HEADER.unpack_from(payload, at)
            at += REGION_HEADER.size
            if kind == RegionKind.OUT and REPEAT_MIN <= size <= end - at:
                yield at, size
            at += (size + 7) & ~7
            done = min(at, end)


def literals_of(section: bytes) -> bytes:
    """The literals of a section with a table. Raises RepeatError."""
    return section[_table_end(section) :]


def unfold(section: bytes, raw_size: int, literals: Literals) -> bytes:
    """The raw section of `raw_size` bytes. Raises RepeatError for a table that does not lead to that."""
    table_end = _table_end(section)
    parts: list[bytes] = []
    size, rest = 0, table_end
    rows = _ROW.iter_unpack(section[_COUNT.size : table_end])
    for at, length, start, domain, first in islice(rows, (raw_size // REPEAT_MIN) + 1):
        between = at - size
        if between < 0 or length < REPEAT_MIN or at + length > raw_size or between > len(section) - rest:
            raise RepeatError(f"a repeat of {length} bytes at byte {at} of {raw_size}")
        try:
            piece = literals(domain, first)[start : start + length]
        except ValueError as error:
            raise RepeatError(str(error)) from None
        if len(piece) != length:
            raise RepeatError(f"event {first} of domain {domain} has no {length} bytes at byte {start}")
        parts += (section[rest : rest + between], piece)
        rest += between
        size = at + length
    raw = b"".join((*parts, section[rest:]))
    if len(raw) != raw_size:
        raise RepeatError(f"{len(raw)} bytes with all repeats, the header promises {raw_size}")
    return raw


def _table_end(section: bytes) -> int:
    count = _COUNT.unpack_from(section)[0] if len(section) >= _COUNT.size else 0
    end: int = _COUNT.size + count * _ROW.size
    if not count or end > len(section):
        raise RepeatError(f"a table of {count} repeats in {len(section)} bytes")
    return end
