"""The conditions `text` and `data`: of the line as it is shown, and of the bytes that went in or out.

Lines are remembered by what they are made of, since traces repeat themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from interfaces.abi import Kind
from tui.model.columns import NR_MAX, Block, Mask, table_of_kinds
from tui.model.decode import line_of, plain_text, result_of
from tui.model.query.bulk import BlockEvents, Payloads, decided
from tui.model.query.contents import DataContents
from tui.model.query.distinct import Distinct, DistinctPieces, Places, Words
from tui.model.query.pattern import Pattern

if TYPE_CHECKING:
    from tui.model.trace import TraceModel

_MEMORY = 1 << 16
_WORDS = (*(f"arg{i}" for i in range(6)), "result")
_ANYBODYS = table_of_kinds({Kind.SYSCALL, Kind.RELEASE, Kind.LIBCALL, Kind.RDTSC, Kind.CPUID})
"""Codes of events whose lines do not depend on whose they are."""


class DataMatcher:
    """Finds the rows with an input or output that passes; bytes are taken as Latin-1 characters."""

    def __init__(self, model: TraceModel, pattern: Pattern, go_on: Callable[[], None]) -> None:
        """`go_on` is called before each event that is decoded, and may raise."""
        self._model = model
        self._go_on = go_on
        self._contents = DataContents(pattern)

    def mask(self, block: Block, events: BlockEvents, candidates: Mask) -> Mask:
        """Which of the candidates, rows [0, len) of the block, pass."""

        def decide(found: Payloads) -> tuple[Mask, Mask]:
            return self._contents.decide(found.data, found.starts, found.ends)

        def passes(place: int) -> bool:
            self._go_on()
            return any(map(self._contents.passes, self._model.decode_once(block.first + place).regions))

        return decided(events, candidates, decide, passes)


class TextMatcher:
    """Finds the rows whose line, with its result, passes. What descriptors stand for is not part of it:
    that is what `path` asks."""

    def __init__(self, model: TraceModel, pattern: Pattern, go_on: Callable[[], None]) -> None:
        """`go_on` is called before each event that is decoded, and may raise."""
        self._model = model
        self._go_on = go_on
        self._pattern = pattern
        self._payloads = DistinctPieces(self._number)
        self._lines = Distinct()
        self._known: dict[tuple[int, ...], int] = {}
        self._numbers = 0

    def mask(self, block: Block, events: BlockEvents, candidates: Mask) -> Mask:
        """Which of the candidates, rows [0, len) of the block, pass."""
        found = np.zeros(len(candidates), np.bool_)
        if not candidates.any():
            return found
        begun, before = events.begun(candidates)
        here = before >= 0
        begun, alone, before = begun[here], begun[~here], before[here]
        numbers, odd = self._payload_numbers(events, candidates, before)
        rest = candidates & ~odd & (block.code[: len(candidates)] & np.uint16(NR_MAX) != NR_MAX)
        rest[begun[odd[before]]] = False
        rest[alone] = False
        rest[events.behind_data(candidates)] = False
        for place in np.flatnonzero(candidates & ~rest).tolist():
            found[place] = self._passes(block.first + place)
        rows = np.flatnonzero(rest)
        begins = np.zeros(len(candidates), np.uint64)
        begins[begun] = numbers[before]
        columns = [
            self._identity(block, rows),
            numbers[rows],
            begins[rows],
            *(events.column(name, rest)[rows].view(np.uint64) for name in _WORDS),
        ]

        def ask(i: int) -> int:
            key = tuple(int(column[i]) for column in columns)
            known = self._known.get(key)
            if known is None:
                if len(self._known) > _MEMORY:
                    self._known.clear()
                known = self._known[key] = self._passes(block.first + int(rows[i]))
            return known

        found[rows] = self._lines.answers(columns, ask) != 0
        return found

    def _payload_numbers(self, events: BlockEvents, rows: Mask, before: Places) -> tuple[Words, Mask]:
        """(for each row, and those before some, a number that equal payloads share, which have none)."""
        wanted = rows.copy()
        wanted[before] = True
        numbers = np.zeros(len(wanted), np.uint64)
        odd = np.zeros(len(wanted), np.bool_)
        for found in events.payloads(wanted):
            aligned = (found.starts & 7 == 0) & (found.ends + 7 & ~7 <= len(found.data))
            odd[found.places] = ~aligned
            starts = found.starts[aligned]
            answers = self._payloads.answers(found.data, starts, found.ends[aligned] - starts)
            numbers[found.places[aligned]] = answers
        return numbers, odd

    def _identity(self, block: Block, rows: Places) -> Words:
        """Code and flags; of events that are no calls also the task, which their lines may name."""
        codes = block.code[rows]
        tasks = block.task[rows].astype(np.uint64)
        tasks[_ANYBODYS[codes]] = 0
        flags = block.flags[rows].astype(np.uint64)
        return tasks << np.uint64(24) | flags << np.uint64(16) | codes

    def _number(self, _: bytes) -> int:
        self._numbers += 1
        return self._numbers

    def _passes(self, row: int) -> bool:
        self._go_on()
        return self._pattern.match(text_of(self._model, row))


def text_of(model: TraceModel, row: int) -> str:
    """The line of a row with its result, descriptors by number only."""
    event = model.decode_once(row)
    result = plain_text(result_of(event))
    line = plain_text(line_of(event, model.reader))
    return f"{line} = {result}" if result else line
