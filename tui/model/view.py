"""Which rows are shown: the rows of the index that a selection lets pass, numbered without gaps.

A view grows block by block while a worker fills it; what is there can be shown meanwhile. Only one bit of
each byte is used, so a view of ten million rows takes ten megabytes, whatever it lets pass.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from interfaces.abi import Kind
from tui.model.columns import BLOCK, BLOCK_SHIFT, Block, Mask, table_of_kinds
from tui.model.index import EventIndex
from tui.model.query.language import Query

QUIET_KINDS = frozenset({Kind.RELEASE, Kind.PREEMPT, Kind.YIELD, Kind.RESUME, Kind.DATA, Kind.CHECKSUM})
"""Kinds that only say how recording went about it."""
MACHINE_KINDS = frozenset({Kind.RDTSC, Kind.CPUID})
"""Instructions whose results are recorded."""

CALLS_AND_SIGNALS: Mask = ~table_of_kinds(QUIET_KINDS | MACHINE_KINDS)
"""The codes that are shown unless everything is asked for."""


_MEASURED: Mask = table_of_kinds({Kind.SYSCALL, Kind.LIBCALL})


class View:
    """Rows that pass, in order. Positions count from 0 within the view.

    `query` None lets everything pass; `everything` shows the kinds too that are about recording only.
    """

    def __init__(self, index: EventIndex, query: Query | None = None, everything: bool = False) -> None:
        self.index = index
        self.query = query
        self.everything = everything
        self.done = 0
        """Rows of the index that were looked at: the view is complete up to there."""
        self._masks: list[Mask] = []
        self._before = array("q")
        self._count = 0
        self._cached: tuple[int, int, npt.NDArray[np.int64]] = (-1, 0, np.empty(0, np.int64))

    def __len__(self) -> int:
        return self._count

    @property
    def complete(self) -> bool:
        """Whether all rows of the index were looked at."""
        return self.done >= self.index.rows

    def extend(self, block: Block, mask: Mask) -> None:
        """Add what passes of the rows of `block` that follow `done`; `mask` has one value for each."""
        number = self.done >> BLOCK_SHIFT
        start = self.done - block.first
        if number == len(self._masks):
            self._before.append(self._count)
            self._masks.append(np.zeros(BLOCK, np.bool_))
        self._masks[number][start : start + len(mask)] = mask
        self._count += int(np.count_nonzero(mask))
        self.done += len(mask)

    def row(self, position: int) -> int:
        """The row at a position; IndexError where the view has none."""
        if not 0 <= position < self._count:
            raise IndexError(f"there is no position {position} of {self._count}")
        number = bisect.bisect_right(self._before, position) - 1
        return (number << BLOCK_SHIFT) + int(self._places(number)[position - self._before[number]])

    def rows(self, start: int, stop: int) -> list[int]:
        """The rows at positions [start, stop), as far as the view has them."""
        return [self.row(position) for position in range(max(start, 0), min(stop, self._count))]

    def position(self, row: int) -> int:
        """The position of a row, or of the first one after it that passes; `len(view)` at the end."""
        number = row >> BLOCK_SHIFT
        if row < 0:
            return 0
        if number >= len(self._masks):
            return self._count
        return self._before[number] + int(np.count_nonzero(self._masks[number][: row & (BLOCK - 1)]))

    def nearest(self, row: int) -> int:
        """The position of a row, or of a neighbour that passes; 0 in an empty view."""
        return min(self.position(row), max(self._count - 1, 0))

    def has(self, row: int) -> bool:
        """Whether a row passes."""
        number = row >> BLOCK_SHIFT
        return 0 <= number < len(self._masks) and bool(self._masks[number][row & (BLOCK - 1)])

    def next_where(self, row: int, step: int, wanted: Sequence[tuple[str, int]]) -> int | None:
        """The next row after (`step` 1) or before (-1) `row` whose columns have the wanted values.

        Columns are those of Block, `task` for instance. None where no row of the view does.
        """

        def chosen(block: Block, count: int) -> Mask:
            found = np.ones(count, np.bool_)
            for column, value in wanted:
                found &= getattr(block, column)[:count] == value
            return found

        return self._next(row, step, chosen)

    def next_at_least(self, row: int, step: int, column: str, least: float) -> int | None:
        """The next call whose column (of Block) is at least so much; None where there is none."""

        def chosen(block: Block, count: int) -> Mask:
            calls = _MEASURED[block.code[:count]]
            return np.asarray(calls & (getattr(block, column)[:count] >= least))

        return self._next(row, step, chosen)

    def _next(self, row: int, step: int, chosen: Callable[[Block, int], Mask]) -> int | None:
        number = row >> BLOCK_SHIFT
        while 0 <= number < len(self._masks):
            block = self.index.blocks[number]
            offset = row - block.first
            passing = chosen(block, block.count)
            places = np.flatnonzero(passing & self._masks[number][: len(passing)])
            places = places[places > offset] if step > 0 else places[places < offset]
            if len(places):
                return block.first + int(places[0] if step > 0 else places[-1])
            number += step
        return None

    def masks(self) -> Iterator[tuple[Block, Mask]]:
        """Each block with the mask of its rows that were looked at."""
        for number in range(len(self._masks)):
            block = self.index.blocks[number]
            yield block, self._masks[number][: min(block.count, self.done - block.first)]

    def mask(self, number: int) -> Mask:
        """The mask of block `number`, as far as it was looked at; empty where it was not."""
        if number >= len(self._masks):
            return np.zeros(0, np.bool_)
        block = self.index.blocks[number]
        return self._masks[number][: min(block.count, self.done - block.first)]

    def _places(self, number: int) -> npt.NDArray[np.int64]:
        """The offsets in block `number` that pass; those of one block are remembered.

        The count is read first: what `extend` adds meanwhile is looked for again.
        """
        count = self._count
        known, counted, places = self._cached
        if known == number and counted == count:
            return places
        places = np.flatnonzero(self._masks[number])
        self._cached = (number, count, places)
        return places
