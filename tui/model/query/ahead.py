"""Chunks for filters, read ahead: while one is looked through, another thread decompresses the next ones.

Decompressing and decoding let other threads run, and are half of what a filter over all events takes.
"""

from __future__ import annotations

import bisect
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

from tracefile.columns import ChunkColumns
from tui.model.index import EventIndex

_CHUNKS_KEPT = 16
_PAYLOAD_KEPT = 2 << 20
_AHEAD = 3
"""Chunks of a domain that are read ahead."""
_AHEAD_MOST = 12
"""Chunks that are read ahead of all domains together."""

Key = tuple[int, int]
"""Domain, number of the chunk's first event."""


class _Read(NamedTuple):
    chunk: ChunkColumns
    payload: bytes | None


class ChunkSource:
    """Chunks by domain and first event. The latest ones are remembered, since blocks and chunks do not end
    together; how many is bounded, since there may be thousands of domains.

    Whoever asks for one chunk after the other finds the next ones read: with the columns, and where the last
    one's payload was asked for with the payload, that were needed so far.
    """

    def __init__(self, index: EventIndex) -> None:
        self.index = index
        self._chunks: OrderedDict[Key, ChunkColumns] = OrderedDict()
        self._payloads: OrderedDict[Key, bytes] = OrderedDict()
        self._size = 0
        self._words: set[int] = set()
        self._ahead: OrderedDict[Key, Future[_Read]] = OrderedDict()
        self._last: dict[int, int] = {}

    def chunk(self, domain: int, first: int) -> ChunkColumns:
        """The chunk of a domain that begins with event `first`."""
        key = (domain, first)
        found = self._chunks.get(key)
        if found is None:
            found = self._chunks[key] = self._taken(key) or self._read(key)
            if len(self._chunks) > _CHUNKS_KEPT:
                self._chunks.popitem(last=False)
            self._read_ahead(domain, first)
        else:
            self._chunks.move_to_end(key)
        return found

    def payload(self, chunk: ChunkColumns) -> bytes:
        """The payload of a chunk."""
        key = (chunk.domain, chunk.first_event)
        found = self._payloads.get(key)
        if found is None:
            found = chunk.payload
            self._keep(key, found)
        else:
            self._payloads.move_to_end(key)
        return found

    def _keep(self, key: Key, payload: bytes) -> None:
        self._payloads[key] = payload
        self._size += len(payload)
        while self._size > _PAYLOAD_KEPT and len(self._payloads) > 1:
            self._size -= len(self._payloads.popitem(last=False)[1])

    def _read(self, key: Key) -> ChunkColumns:
        return ChunkColumns(self.index.reader, *key, self._words)

    def _taken(self, key: Key) -> ChunkColumns | None:
        """The chunk, if it was read ahead. What was wrong with it is found again by whoever reads it anew."""
        future = self._ahead.pop(key, None)
        if future is None or future.cancel() or future.exception() is not None:
            return None
        read = future.result()
        if read.payload is not None:
            self._keep(key, read.payload)
        return read.chunk

    def _read_ahead(self, domain: int, first: int) -> None:
        """Have the chunks after this one read, where the one before it was asked for, too."""
        firsts = self.index.reader.domains[domain].firsts
        at = bisect.bisect_left(firsts, first)
        in_order = at > 0 and self._last.get(domain) == firsts[at - 1]
        self._last[domain] = first
        if not in_order:
            return
        with_payload = (domain, firsts[at - 1]) in self._payloads
        for after in firsts[at + 1 : at + 1 + _AHEAD]:
            key = (domain, after)
            if key not in self._chunks and key not in self._ahead:
                self._ahead[key] = _reader().submit(self._whole, key, with_payload)
        while len(self._ahead) > _AHEAD_MOST:
            self._ahead.popitem(last=False)[1].cancel()

    def _whole(self, key: Key, with_payload: bool) -> _Read:
        chunk = self._read(key)
        return _Read(chunk, chunk.payload if with_payload else None)


@cache
def _reader() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "read-ahead")
