"""Headers and payloads of a whole block of rows, for conditions that the columns in memory do not answer."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from interfaces.abi import EventFlag, Kind
from tracefile.columns import ChunkColumns
from tui.model.columns import BLOCK_SHIFT, NR_BITS, Block, Mask
from tui.model.index import EventIndex


class ChunkSource:
    """Chunks by domain and first event; the last one of each domain is remembered, since blocks and chunks do
    not end together."""

    def __init__(self, index: EventIndex) -> None:
        self.index = index
        self._last: dict[int, ChunkColumns] = {}

    def chunk(self, domain: int, first: int) -> ChunkColumns:
        """The chunk of a domain that begins with event `first`."""
        last = self._last.get(domain)
        if last is None or last.first_event != first:
            last = self._last[domain] = ChunkColumns(self.index.reader, domain, first)
        return last


PayloadPlaces = tuple[npt.NDArray[np.int64], bytes, npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Rows (offsets in the block), and where in the bytes of their chunk the payload of each begins and ends."""


class _Piece:
    """Events [start, stop) of a chunk and where they stand in the block; read when they are asked for."""

    def __init__(
        self, source: ChunkSource, domain: int, first: int, span: slice, places: npt.NDArray[np.int64]
    ) -> None:
        self.first = first
        self.span = span
        self.places = places
        self._source = source
        self._domain = domain
        self._chunk: ChunkColumns | None = None

    @property
    def chunk(self) -> ChunkColumns:
        if self._chunk is None:
            self._chunk = self._source.chunk(self._domain, self.first)
        return self._chunk

    def column(self, name: str) -> npt.NDArray[Any]:
        """The values of a column for the piece's events."""
        if name == "number":
            return np.arange(self.first + self.span.start, self.first + self.span.stop)
        return self.chunk.column(name)[self.span]


class BlockEvents:
    """The events of a block's rows [0, count), read from the file as far as they are asked for."""

    def __init__(self, source: ChunkSource, block: Block, count: int) -> None:
        self._source = source
        self._block = block
        self._count = count
        self._columns: dict[str, npt.NDArray[Any]] = {}
        self._filled: dict[str, set[int]] = {}
        self._pieces: list[_Piece] | None = None
        self._before: npt.NDArray[np.int64] | None = None

    def column(self, name: str, wanted: Mask) -> npt.NDArray[Any]:
        """A column of `tracefile.columns`, one value a row; `number` is the event's number in its domain.

        Only the values of the wanted rows count.
        """
        filled = self._filled.setdefault(name, set())
        for i, piece in enumerate(self.pieces()):
            if i in filled or not wanted[piece.places].any():
                continue
            filled.add(i)
            values = piece.column(name)
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = np.zeros(self._count, values.dtype)
            column[piece.places] = values
        return self._columns[name] if name in self._columns else np.zeros(self._count, np.int64)

    def payloads(self, wanted: Mask) -> Iterator[tuple[int, bytes]]:
        """(offset in the block, payload) of the wanted rows that have any, in no particular order.

        What a call that blocked had read lies in the event of its task before it, and comes first.
        """
        begun = self.begun(wanted)
        if not len(begun):
            yield from self._own_payloads(wanted)
            return
        needed = wanted.copy()
        before = self._previous()[begun]
        needed[before[before >= 0]] = True
        own = dict(self._own_payloads(needed))
        extra = dict(zip(begun.tolist(), before.tolist(), strict=True))
        for place in np.flatnonzero(wanted).tolist():
            payload = own.get(place, b"")
            if place in extra:
                at = extra[place]
                payload = (own.get(at, b"") if at >= 0 else self._payload_before(place)) + payload
            if payload:
                yield place, payload

    def begun(self, wanted: Mask) -> npt.NDArray[np.int64]:
        """The wanted calls that blocked: part of their payload lies in the event of their task before."""
        count = len(wanted)
        calls = self._block.code[:count] >> np.uint16(NR_BITS) == Kind.SYSCALL
        return np.flatnonzero(wanted & calls & (self._block.flags[:count] & EventFlag.BLOCKED != 0))

    def _previous(self) -> npt.NDArray[np.int64]:
        """For each row, the offset of the row of the same task before it; -1 where it is in another block."""
        if self._before is None:
            tasks = self._block.task[: self._count]
            order = np.argsort(tasks, kind="stable")
            same = tasks[order][1:] == tasks[order][:-1]
            self._before = np.full(self._count, -1, np.int64)
            self._before[order[1:][same]] = order[:-1][same]
        return self._before

    def _payload_before(self, place: int) -> bytes:
        index = self._source.index
        row = index.previous_of_task(self._block.first + place)
        return index.reader.event(*index.place(row)).payload if row is not None else b""

    def _own_payloads(self, wanted: Mask) -> Iterator[tuple[int, bytes]]:
        for places, data, starts, ends in self.payload_places(wanted):
            for place, start, end in zip(places.tolist(), starts.tolist(), ends.tolist(), strict=True):
                yield place, data[start:end]

    def payload_places(self, wanted: Mask) -> Iterator[PayloadPlaces]:
        """Where the payloads of the wanted rows that have any lie, without those of the events before."""
        for piece in self.pieces():
            chosen = np.flatnonzero(wanted[piece.places])
            if not len(chosen):
                continue
            sizes = piece.column("payload_len")[chosen]
            chosen, sizes = chosen[sizes > 0], sizes[sizes > 0]
            if not len(chosen):
                continue
            data = piece.chunk.payload
            starts = piece.column("payload_off")[chosen].astype(np.int64)
            ends = starts + sizes
            yield piece.places[chosen], data, starts, ends

    def pieces(self) -> list[_Piece]:
        """Where the rows lie in chunks."""
        if self._pieces is None:
            index = self._source.index
            domains = index.domain_table()[self._block.task[: self._count]]
            self._pieces = []
            for domain in np.unique(domains).tolist():
                places = np.flatnonzero(domains == domain)
                first = index.events_before(domain, self._block.first >> BLOCK_SHIFT)
                self._pieces.extend(self._of_domain(domain, first, places))
        return self._pieces

    def _of_domain(self, domain: int, first: int, places: npt.NDArray[np.int64]) -> Iterator[_Piece]:
        """The pieces of one domain, whose events from number `first` on stand at `places`."""
        firsts = self._source.index.reader.domains[domain].firsts
        at = bisect.bisect_right(firsts, first) - 1
        done = 0
        while done < len(places):
            begin = firsts[at]
            end = firsts[at + 1] if at + 1 < len(firsts) else begin + len(places) + first
            start = first + done - begin
            count = min(end - begin - start, len(places) - done)
            yield _Piece(
                self._source, domain, begin, slice(start, start + count), places[done : done + count]
            )
            done += count
            at += 1
