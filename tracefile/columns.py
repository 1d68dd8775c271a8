"""Chunks of events of which only the columns that are asked for are decoded.

Whoever goes through millions of events for one field needs a twelfth of the work that whole events take.
"""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np
import numpy.typing as npt

from tracefile.chunk import events_from
from tracefile.codec import CodecError, decompress, decompress_events, has_planes
from tracefile.layout import ChunkType
from tracefile.reader import TraceReader

_WHOLE = {"ip": 1, "result": 8, "time_in": 9, "time_out": 10} | {f"arg{i}": 2 + i for i in range(6)}
_PARTS = {
    "task": (0, "<u4", 0), "kind": (0, "u1", 4), "flags": (0, "u1", 5), "nr": (0, "<u2", 6),
    "payload_off": (11, "<u4", 0), "payload_len": (11, "<u4", 4),
}  # fmt: skip
"""Column: its word, its type, its place in the word in bytes."""

COLUMNS = (*_WHOLE, *_PARTS)
"""The columns there are: the fields of EVENT_DTYPE, `args` as arg0 to arg5."""


class ChunkColumns:
    """The chunk of a domain that begins with event `first`; see `DomainInfo.firsts`.

    `words` are the words of events that are asked for, as chunks that share it have found out: they are
    decoded at once. What is decompressed goes then, so that the next chunk finds its memory in the
    processor's cache.

    Raises KeyError for an unknown domain, IndexError where no chunk begins so, TraceFormatError where the
    chunk is damaged.
    """

    def __init__(self, reader: TraceReader, domain: int, first: int, words: set[int] | None = None) -> None:
        info = reader.domains[domain]
        position = bisect.bisect_left(info.firsts, first)
        if position == len(info.firsts) or info.firsts[position] != first:
            raise IndexError(f"no chunk of domain {domain} begins with event {first}")
        self.domain = domain
        self.first_event = first
        self._reader = reader
        self._source = reader._source
        self._offset = info.offsets[position]
        self._header = self._source.header(self._offset)
        end = info.firsts[position + 1] if position + 1 < len(info.firsts) else info.event_count
        header = self._header
        if (header.type, header.domain, header.first, header.count) != (
            ChunkType.EVENTS,
            domain,
            first,
            end - first,
        ):
            self._source.fail(self._offset, f"events {first} to {end - 1} of domain {domain} should be here")
        self._words = words if words is not None else set()
        self._events: npt.NDArray[np.void] | None = None
        self._decoded: dict[int, npt.NDArray[np.uint64]] = {}
        self._load()

    def __len__(self) -> int:
        return self._header.count

    @property
    def payload(self) -> bytes:
        """The payload of the whole chunk, read anew each time."""
        return self._reader.section_b(self._offset, self._header)

    def column(self, name: str) -> npt.NDArray[Any]:
        """A column (see COLUMNS), one value an event."""
        if self._events is not None:
            if name.startswith("arg"):
                return np.ascontiguousarray(self._events["args"][:, int(name[3:])])
            return np.ascontiguousarray(self._events[name])
        if name in _WHOLE:
            word = self._word(_WHOLE[name])
            return word.view(np.int64) if name == "result" else word
        number, kind, place = _PARTS[name]
        parts = self._word(number).view(kind)
        width = parts.itemsize
        return parts[place // width :: 8 // width]

    def _load(self) -> None:
        header = self._header
        stored = self._source.stored_a(self._offset, header)
        try:
            if not has_planes(header.codec_a):
                self._events = events_from(decompress(header.codec_a, stored, header.raw_a))
                return
            events = decompress_events(header.codec_a, stored, header.raw_a)
        except CodecError as error:
            self._source.fail(self._offset, str(error))
        for number in self._words - self._decoded.keys():
            self._decoded[number] = np.frombuffer(events.column(number), "<u8")

    def _word(self, number: int) -> npt.NDArray[np.uint64]:
        """One 64-bit column."""
        if number not in self._decoded:
            self._words.add(number)
            self._load()
        return self._decoded[number]
