"""Searching the lines of a view: the next and the previous hit, and how many there are.

A search runs from a place outwards, so that the next hit is there long before all are counted. Hits are found
with the filter language's conditions on text and path, first in the rows near by, then block by block.
"""

from __future__ import annotations

import bisect
import re
import threading
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np

from tui.model.columns import BLOCK_SHIFT
from tui.model.query.evaluate import Evaluator, Interrupted
from tui.model.query.fields import FIELDS
from tui.model.query.language import Compare, Or, Query, QueryError
from tui.model.query.pattern import Pattern
from tui.model.trace import TraceModel
from tui.model.view import View

_STEP = 2048
_NEAR = 2
"""So many times _STEP rows from where a search begins, whole blocks are looked at."""


def search_query(text: str) -> Query | None:
    """What a search for `text` looks for, in lines and in what their descriptors stand for; QueryError.

    Case counts only where the text has capitals; `/text/` is a regular expression.
    """
    if not text:
        return None
    is_regex = len(text) > 2 and text[0] == "/" and text[-1] == "/"
    body = text[1:-1] if is_regex else re.escape(text)
    exact = any(char.isupper() for char in text)
    try:
        pattern = Pattern.within(body, 0 if exact else re.IGNORECASE)
        if exact and not is_regex:
            pattern = Pattern.containing(text)
    except re.error as why:
        raise QueryError(f"not a regular expression: {why}", 0) from None
    parts = tuple(Compare(FIELDS[name], "~", pattern=pattern) for name in ("text", "path"))
    return Query(text, Or(parts))


class Search:
    """The hits of a search in a view; rows are looked at once and remembered. Safe from any thread."""

    def __init__(self, model: TraceModel, view: View, query: Query) -> None:
        self.query = query
        self.view = view
        self.complete = False
        self._evaluator = Evaluator(model, query)
        self._lock = threading.Lock()
        self._parts: dict[int, tuple[int, array[int]]] = {}
        """For each _STEP rows: how many of them were looked at, and the hits."""
        self._hits: list[int] | None = None

    def next(self, row: int, step: int, go_on: Callable[[], bool] | None = None) -> int | None:
        """The first hit behind (`step` 1) or before (-1) a row; None where there is none, or `go_on` said
        False."""
        last = max(self.view.done - 1, 0) // _STEP
        position = begin = min(max(row, 0) // _STEP, last)
        with self._looking(go_on):
            while 0 <= position <= last:
                if abs(position - begin) > _NEAR:
                    self._look_at_block(position * _STEP >> BLOCK_SHIFT)
                hits = self._part(position)
                if step > 0:
                    at = bisect.bisect_right(hits, row)
                    if at < len(hits):
                        return hits[at]
                else:
                    at = bisect.bisect_left(hits, row)
                    if at:
                        return hits[at - 1]
                if go_on is not None and not go_on():
                    return None
                position += step
        return None

    def count(self, go_on: Callable[[], bool] | None = None) -> int:
        """The number of hits in the whole view; of what was looked at where `go_on` said False."""
        with self._looking(go_on):
            for number in range((max(self.view.done - 1, 0) >> BLOCK_SHIFT) + 1):
                self._look_at_block(number)
                if go_on is not None and not go_on():
                    break
            else:
                self.complete = True
        return sum(len(hits) for _, hits in list(self._parts.values()))

    def ordinal(self, row: int) -> int | None:
        """Which hit a row is, counted from 1; None while not all are known, or where it is none."""
        if not self.complete:
            return None
        if self._hits is None:
            self._hits = [hit for key in sorted(self._parts) for hit in self._parts[key][1]]
        at = bisect.bisect_left(self._hits, row)
        return at + 1 if at < len(self._hits) and self._hits[at] == row else None

    def is_hit(self, row: int) -> bool:
        """Whether a row is known to be one."""
        _, hits = self._parts.get(row // _STEP, (0, []))
        at = bisect.bisect_left(hits, row)
        return at < len(hits) and hits[at] == row

    @contextmanager
    def _looking(self, go_on: Callable[[], bool] | None) -> Iterator[None]:
        """Looking at events, for one thread at a time; ends early when `go_on` says False."""
        with self._lock, suppress(Interrupted):
            self._evaluator.stopped = (lambda: not go_on()) if go_on is not None else None
            try:
                yield
            finally:
                self._evaluator.stopped = None

    def _look_at_block(self, number: int) -> None:
        """Look at the rows of a block that were not looked at."""
        first = number << BLOCK_SHIFT
        count = len(self.view.mask(number))
        unknown = [
            position
            for position in range(first // _STEP, (first + count - 1) // _STEP + 1)
            if self._parts.get(position, (-1, None))[0] != self._size(position)
        ]
        if unknown:
            self._look_at(number, unknown)

    def _part(self, position: int) -> array[int]:
        """The hits among _STEP rows."""
        known = self._parts.get(position)
        if known is None or known[0] != self._size(position):
            self._look_at(position * _STEP >> BLOCK_SHIFT, [position])
        return self._parts[position][1]

    def _size(self, position: int) -> int:
        """How many of the _STEP rows the view has."""
        first = position * _STEP
        number = first >> BLOCK_SHIFT
        return min(len(self.view.mask(number)) - (first - (number << BLOCK_SHIFT)), _STEP)

    def _look_at(self, number: int, positions: list[int]) -> None:
        """Look at the rows of ascending positions, which are all in one block."""
        block = self.view.index.blocks[number]
        sizes = [self._size(position) for position in positions]
        start = positions[0] * _STEP - block.first
        stop = positions[-1] * _STEP - block.first + sizes[-1]
        mask = self.view.mask(number)[start:stop]
        found = np.flatnonzero(self._evaluator.mask(block, start, stop, mask)) + block.first + start
        for position, size in zip(positions, sizes, strict=True):
            begin, end = np.searchsorted(found, (position * _STEP, position * _STEP + size)).tolist()
            self._parts[position] = (size, array("q", found[begin:end].tolist()))
        self._hits = None
