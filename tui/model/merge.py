"""All domains of a trace in one order of time, many events at a stroke.

`tracefile.merged_runs` yields one run after the other; where domains alternate at every event that is one
Python step an event. Here whole windows are sorted at once. The order is the same: by the latest end of any
event of the domain up to the event, and by domain where that is equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import numpy as np

from tracefile import Chunk, TraceReader
from tui.model.columns import Columns

Reduce = Callable[[Chunk, int], Columns]
"""Makes the columns of a chunk; given the latest key of its domain before it."""


class _Cursor:
    """The part of a domain that was not handed out yet."""

    def __init__(self, domain: int, chunks: Iterator[Chunk], latest: int, reduce: Reduce) -> None:
        self.domain = domain
        self.latest = latest
        self._at = 0
        self._columns: Columns
        self._chunks = chunks
        self._reduce = reduce

    def load(self) -> bool:
        """Go to the next chunk; False at the end."""
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        self._columns = self._reduce(chunk, self.latest)
        self.latest = int(self._columns.when[-1])
        self._at = 0
        return True

    def take(self, horizon: int, *, included: bool) -> Columns:
        """What is left of the chunk up to the horizon, `included` or not."""
        start = self._at
        side: Literal["left", "right"] = "right" if included else "left"
        stop = int(np.searchsorted(self._columns.when, np.uint64(horizon), side))
        self._at = max(stop, start)
        return self._columns.part(slice(start, self._at))

    @property
    def empty(self) -> bool:
        return self._at == len(self._columns)


def windows(
    reader: TraceReader, seen: Mapping[int, int], latest: dict[int, int], reduce: Reduce
) -> Iterator[Columns]:
    """The events of all domains from number `seen[domain]` on (default 0), in order.

    `latest` holds the key each domain has reached and is kept up to date. Chunks appended to the file
    meanwhile are left for the next call.
    """
    waiting = sorted(
        (
            (_begin(reader, domain, seen.get(domain, 0)), domain)
            for domain, info in list(reader.domains.items())
            if info.event_count > seen.get(domain, 0)
        ),
        reverse=True,
    )
    limits = {domain: reader.domains[domain].event_count for _, domain in waiting}
    active: list[_Cursor] = []
    while waiting or active:
        while waiting and (not active or waiting[-1][0] <= min(cursor.latest for cursor in active)):
            _, domain = waiting.pop()
            first = seen.get(domain, 0)
            chunks = _up_to(reader.chunks(domain, first), limits[domain])
            cursor = _Cursor(domain, chunks, latest.get(domain, 0), reduce)
            if cursor.load():
                active.append(cursor)
        if not active:
            continue
        yield _window(active, latest)
        active = [cursor for cursor in active if not cursor.empty or cursor.load()]


def _begin(reader: TraceReader, domain: int, seen: int) -> int:
    """A lower bound of the first key to come: exact enough, since a window ends before what has not begun."""
    return reader.first_time(domain) if not seen else 0


def _up_to(chunks: Iterator[Chunk], limit: int) -> Iterator[Chunk]:
    for chunk in chunks:
        if chunk.first_event >= limit:
            return
        yield chunk
        if chunk.end_event >= limit:
            return


def _window(active: list[_Cursor], latest: dict[int, int]) -> Columns:
    """All events up to where the first of the current chunks ends.

    Its domain may go on at that very moment, before what later domains have of it.
    """
    horizon = min(cursor.latest for cursor in active)
    active.sort(key=lambda cursor: cursor.domain)
    ending = min(cursor.domain for cursor in active if cursor.latest == horizon)
    parts = []
    for cursor in active:
        part = cursor.take(horizon, included=cursor.domain <= ending)
        if len(part):
            latest[cursor.domain] = int(part.when[-1])
            parts.append(part)
    return Columns.merged(parts)
