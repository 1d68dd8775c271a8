"""All domains of a trace in one order of time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracefile.chunk import Chunk

if TYPE_CHECKING:
    from tracefile.reader import TraceReader


class _Cursor:
    """Goes through one domain; an event's key is the latest end of any event up to it, so that it never
    falls."""

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self._chunks = chunks
        self._latest = 0
        self.chunk: Chunk
        self.keys: npt.NDArray[np.uint64]
        self.at = 0

    def load(self) -> bool:
        """Go to the next chunk; False at the domain's end."""
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        self.chunk = chunk
        keys = np.maximum.accumulate(chunk.events["time_out"])
        self.keys = np.maximum(keys, np.uint64(self._latest))
        self._latest = int(self.keys[-1])
        self.at = 0
        return True

    @property
    def key(self) -> int:
        return int(self.keys[self.at])


def merged_runs(reader: TraceReader) -> Iterator[tuple[Chunk, int, int]]:
    """(chunk, start, stop): runs of events [start, stop) within a chunk, in the order in which they ended.

    Events of equal time come in the order of their domains' numbers. In memory is one chunk of each domain
    whose first event was reached and whose last one was not.
    """
    heap = [
        (reader.first_time(domain), domain) for domain, info in reader.domains.items() if info.event_count
    ]
    heapq.heapify(heap)
    cursors: dict[int, _Cursor] = {}
    while heap:
        _, domain = heapq.heappop(heap)
        cursor = cursors.get(domain)
        if cursor is None:
            cursor = cursors[domain] = _Cursor(reader.chunks(domain))
            if cursor.load():
                heapq.heappush(heap, (cursor.key, domain))
            continue
        start = cursor.at
        stop = len(cursor.keys)
        if heap:
            key, other = heap[0]
            stop = int(np.searchsorted(cursor.keys, np.uint64(key), "right" if domain < other else "left"))
        if stop > start:
            yield cursor.chunk, start, stop
        cursor.at = stop
        if stop < len(cursor.keys) or cursor.load():
            heapq.heappush(heap, (cursor.key, domain))
        else:
            del cursors[domain]
