"""The conditions `text` and `data`: of the line as it is shown, and of the bytes that went in or out.

Lines are remembered by what they are made of, since traces repeat themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from interfaces.abi import RegionKind, parse_regions
from tui.model.columns import Block, Mask
from tui.model.decode import line_of, plain_text, result_of
from tui.model.query.bulk import BlockEvents

if TYPE_CHECKING:
    from tui.model.trace import TraceModel

_MEMORY = 1 << 16


class DataMatcher:
    """Finds the rows with an input or output that passes; bytes are taken as Latin-1 characters."""

    def __init__(self, model: TraceModel, passes: Callable[[str], bool]) -> None:
        self._passes = passes
        self._known: dict[bytes, bool] = {}

    def mask(self, block: Block, events: BlockEvents, candidates: Mask) -> Mask:
        """Which of the candidates, rows [0, len) of the block, pass."""
        found = np.zeros(len(candidates), np.bool_)
        known = self._known
        for place, payload in events.payloads(candidates):
            passes = known.get(payload)
            if passes is None:
                if len(known) > _MEMORY:
                    known.clear()
                passes = known[payload] = self._any(payload)
            found[place] = passes
        return found

    def _any(self, payload: bytes) -> bool:
        try:
            regions = parse_regions(payload)
        except ValueError:
            return False
        return any(
            self._passes(region.data.decode("latin-1"))
            for region in regions
            if region.kind in (RegionKind.IN, RegionKind.OUT)
        )


class TextMatcher:
    """Finds the rows whose line, with its result, passes. What descriptors stand for is not part of it:
    that is what `path` asks."""

    def __init__(self, model: TraceModel, passes: Callable[[str], bool]) -> None:
        self._model = model
        self._passes = passes
        self._known: dict[tuple[int, tuple[int, ...], bytes], bool] = {}

    def mask(self, block: Block, events: BlockEvents, candidates: Mask) -> Mask:
        """Which of the candidates, rows [0, len) of the block, pass."""
        found = np.zeros(len(candidates), np.bool_)
        if not candidates.any():
            return found
        payloads = dict(events.payloads(candidates))
        codes = block.code[: len(candidates)].tolist()
        words = [events.column(f"arg{i}", candidates) for i in range(6)]
        results = events.column("result", candidates)
        known = self._known
        for place in np.flatnonzero(candidates).tolist():
            values = (*(int(column[place]) for column in words), int(results[place]))
            key = (codes[place], values, payloads.get(place, b""))
            passes = known.get(key)
            if passes is None:
                if len(known) > _MEMORY:
                    known.clear()
                passes = known[key] = self._passes(text_of(self._model, block.first + place))
            found[place] = passes
        return found


def text_of(model: TraceModel, row: int) -> str:
    """The line of a row with its result, descriptors by number only."""
    event = model.decode_once(row)
    result = plain_text(result_of(event))
    line = plain_text(line_of(event, model.reader))
    return f"{line} = {result}" if result else line
