"""Headers and payloads of a whole block of rows, for conditions that the columns in memory do not answer."""

from __future__ import annotations

import bisect
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from interfaces.abi import EventFlag, Kind
from tracefile.columns import ChunkColumns
from tui.model.columns import BLOCK_SHIFT, NR_BITS, Block, Mask, occurring
from tui.model.index import EventIndex

Places = npt.NDArray[np.int64]
_TO_RELEASE = np.uint16((Kind.RELEASE - Kind.SYSCALL) << NR_BITS)
_TOGETHER = 512 << 10
"""Bytes of payload from which on no more is taken together."""
_CHUNKS_KEPT = 16
_PAYLOAD_KEPT = 2 << 20


class ChunkSource:
    """Chunks by domain and first event. The latest ones are remembered, since blocks and chunks do not end
    together; how many is bounded, since there may be thousands of domains."""

    def __init__(self, index: EventIndex) -> None:
        self.index = index
        self._chunks: OrderedDict[tuple[int, int], ChunkColumns] = OrderedDict()
        self._payloads: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._size = 0
        self._words: set[int] = set()

    def chunk(self, domain: int, first: int) -> ChunkColumns:
        """The chunk of a domain that begins with event `first`."""
        key = (domain, first)
        found = self._chunks.get(key)
        if found is None:
            found = self._chunks[key] = ChunkColumns(self.index.reader, domain, first, self._words)
            if len(self._chunks) > _CHUNKS_KEPT:
                self._chunks.popitem(last=False)
        else:
            self._chunks.move_to_end(key)
        return found

    def payload(self, chunk: ChunkColumns) -> bytes:
        """The payload of a chunk."""
        key = (chunk.domain, chunk.first_event)
        found = self._payloads.get(key)
        if found is None:
            found = self._payloads[key] = chunk.payload
            self._size += len(found)
            while self._size > _PAYLOAD_KEPT and len(self._payloads) > 1:
                self._size -= len(self._payloads.popitem(last=False)[1])
        else:
            self._payloads.move_to_end(key)
        return found


class Payloads(NamedTuple):
    """Payloads of rows: the rows' offsets in the block, and where in `data` each payload begins and ends."""

    places: Places
    data: bytes
    starts: Places
    ends: Places


class _Piece:
    """Events [start, stop) of a chunk and where they stand in the block; read when they are asked for."""

    def __init__(
        self, source: ChunkSource, domain: int, first: int, span: slice, places: Places
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

    @property
    def payload(self) -> bytes:
        """The payload of the whole chunk."""
        return self._source.payload(self.chunk)

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
        self._before: Places | None = None
        self._domains: npt.NDArray[np.uint32] | None = None
        self._places: list[tuple[int, Places]] | None = None

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

    def begun(self, wanted: Mask) -> tuple[Places, Places]:
        """(the wanted calls that blocked, the event of the same task before each; -1: in another block).

        Such an event holds what the call had read.
        """
        codes, flags = self._block.code[: self._count], self._block.flags[: self._count]
        rows = np.flatnonzero(wanted & (flags & np.uint8(EventFlag.BLOCKED) != 0))
        rows = rows[codes[rows] >> np.uint16(NR_BITS) == Kind.SYSCALL]
        if not len(rows):
            return rows, rows
        before = self._previous()[rows]
        held = codes[before] == codes[rows] + _TO_RELEASE
        chosen = (before < 0) | held
        return rows[chosen], before[chosen]

    def _previous(self) -> Places:
        """For each row, the offset of the row of the same task before it; -1 where it is in another block."""
        if self._before is None:
            tasks = self._block.task[: self._count]
            order = np.argsort(tasks, kind="stable")
            same = tasks[order][1:] == tasks[order][:-1]
            self._before = np.full(self._count, -1, np.int64)
            self._before[order[1:][same]] = order[:-1][same]
        return self._before

    def behind_data(self, wanted: Mask) -> Places:
        """The wanted rows before which there is, in their domain, payload that did not fit into an event."""
        found = []
        kinds = self._block.code[: self._count] >> np.uint16(NR_BITS)
        is_data = kinds == Kind.DATA
        any_here = bool(is_data.any())
        number = self._block.first >> BLOCK_SHIFT
        for domain, places in self._by_domain():
            if any_here:
                found.append(places[1:][is_data[places[:-1]]])
            if self._source.index.last_kind(domain, number) == Kind.DATA:
                found.append(places[:1])
        rows: Places = np.concatenate([np.zeros(0, np.int64), *found])
        chosen: Places = rows[wanted[rows] & ~is_data[rows]]
        return chosen

    def payloads(self, wanted: Mask) -> Iterator[Payloads]:
        """The payloads of the wanted rows that have any, many at a time."""
        parts: list[Payloads] = []
        size = 0
        for piece in self.pieces():
            chosen = np.flatnonzero(wanted[piece.places])
            if not len(chosen):
                continue
            sizes = piece.column("payload_len")[chosen]
            if not sizes.all():
                chosen, sizes = chosen[sizes > 0], sizes[sizes > 0]
            if not len(chosen):
                continue
            data = piece.payload
            starts = piece.column("payload_off")[chosen].astype(np.int64)
            ends = starts + sizes
            there = ends <= len(data)
            parts.append(Payloads(piece.places[chosen][there], data, starts[there], ends[there]))
            size += len(data)
            if size > _TOGETHER:
                yield _joined(parts)
                parts, size = [], 0
        if parts:
            yield _joined(parts)

    def pieces(self) -> list[_Piece]:
        """Where the rows lie in chunks."""
        if self._pieces is None:
            self._pieces = []
            for domain, places in self._by_domain():
                first = self._source.index.events_before(domain, self._block.first >> BLOCK_SHIFT)
                self._pieces.extend(self._of_domain(domain, first, places))
        return self._pieces

    @property
    def domains(self) -> npt.NDArray[np.uint32]:
        """The domains that have rows here, ascending."""
        if self._domains is None:
            table = self._source.index.domain_table()
            self._domains = np.unique(table[occurring(self._block.task[: self._count])])
        return self._domains

    def _by_domain(self) -> list[tuple[int, Places]]:
        """The domains that have rows here, with these."""
        if self._places is None:
            if len(self.domains) == 1:
                self._places = [(int(self.domains[0]), np.arange(self._count))]
            else:
                of_row = self._source.index.domain_table()[self._block.task[: self._count]]
                numbers = self.domains.tolist()
                self._places = [(number, np.flatnonzero(of_row == number)) for number in numbers]
        return self._places

    def _of_domain(self, domain: int, first: int, places: Places) -> Iterator[_Piece]:
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


def decided(
    events: BlockEvents,
    wanted: Mask,
    decide: Callable[[Payloads], tuple[Mask, Mask]],
    passes: Callable[[int], bool],
) -> Mask:
    """Which of the wanted rows pass by their payloads: their own, and that of the event that began a call.

    `decide` says of many payloads (which pass, which it cannot tell), `passes` of the row at an offset: for
    what `decide` cannot tell, and for payload in still other events.
    """
    begun, before = events.begun(wanted)
    needed = wanted
    if len(begun):
        needed = wanted.copy()
        needed[before[before >= 0]] = True
    found = np.zeros(len(wanted), np.bool_)
    odd = np.zeros(len(wanted), np.bool_)
    for payloads in events.payloads(needed):
        found[payloads.places], odd[payloads.places] = decide(payloads)
    alone = wanted & odd
    if len(begun):
        here = before >= 0
        alone[begun[~here]] = True
        alone[begun[here]] |= odd[before[here]]
        found[begun[here]] |= found[before[here]]
    in_pieces = events.behind_data(wanted)
    found[in_pieces] = False
    alone[in_pieces] = True
    for place in np.flatnonzero(alone & ~found).tolist():
        found[place] = passes(place)
    return found & wanted


def _joined(parts: list[Payloads]) -> Payloads:
    """Payloads of several chunks in one; each chunk begins at a multiple of eight bytes."""
    if len(parts) == 1:
        return parts[0]
    data: list[bytes] = []
    size = 0
    begins = []
    for part in parts:
        begins.append(size)
        filling = -len(part.data) % 8
        data += (part.data, bytes(filling)) if filling else (part.data,)
        size += len(part.data) + filling
    return Payloads(
        np.concatenate([part.places for part in parts]),
        b"".join(data),
        np.concatenate([part.starts + begin for part, begin in zip(parts, begins, strict=True)]),
        np.concatenate([part.ends + begin for part, begin in zip(parts, begins, strict=True)]),
    )
