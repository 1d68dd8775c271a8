"""Searching the lines of a view: the next and the previous hit, and how many there are.

A search runs from a place outwards, so that the next hit is there long before all are counted. Hits are found
block by block with the filter language's text condition.
"""

from __future__ import annotations

import bisect
import re
from array import array
from collections.abc import Callable

import numpy as np

from tui.model.columns import BLOCK_SHIFT
from tui.model.query.evaluate import Evaluator
from tui.model.query.fields import FIELDS
from tui.model.query.language import Compare, Or, Query, QueryError
from tui.model.query.pattern import Pattern
from tui.model.trace import TraceModel
from tui.model.view import View

_STEP = 2048


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
    """The hits of a search in a view; rows are looked at once and remembered."""

    def __init__(self, model: TraceModel, view: View, query: Query) -> None:
        self.query = query
        self.view = view
        self.complete = False
        self._evaluator = Evaluator(model, query)
        self._parts: dict[tuple[int, int], array[int]] = {}
        self._hits: list[int] | None = None

    def next(self, row: int, step: int, go_on: Callable[[], bool] | None = None) -> int | None:
        """The first hit behind (`step` 1) or before (-1) a row; None where there is none, or `go_on` said
        False."""
        last = max(self.view.done - 1, 0) // _STEP
        position = min(max(row, 0) // _STEP, last)
        while 0 <= position <= last:
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
        total = 0
        for position in range(max(self.view.done - 1, 0) // _STEP + 1):
            total += len(self._part(position))
            if go_on is not None and not go_on():
                return total
        self.complete = True
        return total

    def ordinal(self, row: int) -> int | None:
        """Which hit a row is, counted from 1; None while not all are known, or where it is none."""
        if not self.complete:
            return None
        if self._hits is None:
            self._hits = [hit for key in sorted(self._parts) for hit in self._parts[key]]
        at = bisect.bisect_left(self._hits, row)
        return at + 1 if at < len(self._hits) and self._hits[at] == row else None

    def is_hit(self, row: int) -> bool:
        """Whether a row is known to be one."""
        start = row // _STEP
        for (position, _), hits in list(self._parts.items()):
            if position == start:
                at = bisect.bisect_left(hits, row)
                return at < len(hits) and hits[at] == row
        return False

    def _part(self, position: int) -> array[int]:
        """The hits among _STEP rows."""
        first = position * _STEP
        block = self.view.index.blocks[first >> BLOCK_SHIFT]
        start = first - block.first
        stop = min(start + _STEP, len(self.view.mask(first >> BLOCK_SHIFT)))
        known = self._parts.get((position, stop))
        if known is None:
            mask = self.view.mask(first >> BLOCK_SHIFT)[start:stop]
            found = self._evaluator.mask(block, start, stop, mask)
            known = array("q", (np.flatnonzero(found) + first).tolist())
            self._parts.pop((position, min(stop, start)), None)
            self._parts[position, stop] = known
            self._hits = None
        return known
