"""Answers for many rows of words, each distinct row asked for once.

A trace repeats itself: the same few paths, the same lines. Rows are found again by a hash and then compared,
so an answer is never another row's; all of it column by column, for thousands of rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tracefile.digest import short_digest

Words = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]
Answers = npt.NDArray[np.int64]

_SLOT_BITS = 14
_ROWS_MAX = 4096
_WIDE = 32
"""Words of the longest piece that is worth columns."""
_REMEMBERED = 1 << 15
_SHORT = 128
"""Bytes of the longest piece that is remembered itself; of others their digest is."""
_FACTORS = np.random.default_rng(0x7061).integers(0, 1 << 64, _WIDE + 8, np.uint64) | np.uint64(1)


class Distinct:
    """Answers of rows, which are lists of columns. Answers are numbers from 0 on."""

    def __init__(self) -> None:
        self._tables: dict[int, _Table] = {}

    def answers(self, columns: Sequence[Words], ask: Callable[[int], int]) -> Answers:
        """The answer of each row; `ask` gives that of row i of these columns, where it is not known."""
        table = self._tables.get(len(columns))
        if table is None:
            table = self._tables[len(columns)] = _Table(len(columns))
        hashes = columns[0] * _FACTORS[0]
        for column, factor in zip(columns[1:], _FACTORS[1:], strict=False):
            hashes += column * factor
        found, known = table.look_up(columns, hashes)
        rest = np.flatnonzero(~known)
        if len(rest):
            _, first, which = np.unique(hashes[rest], return_index=True, return_inverse=True)
            asked = rest[first]
            answers = np.array([ask(i) for i in asked.tolist()], np.int64)
            found[rest] = answers[which]
            of_first = asked[which]
            differs = np.zeros(len(rest), np.bool_)
            for column in columns:
                differs |= column[rest] != column[of_first]
            for i in rest[differs].tolist():
                found[i] = ask(i)
            table.learn(columns, hashes, asked, answers)
        return found


class _Table:
    """Rows of one width with their answers, found by the upper bits of their hash. A row that comes later
    takes the slot over."""

    def __init__(self, width: int) -> None:
        self._slots = np.full(1 << _SLOT_BITS, -1, np.int32)
        self._rows = np.zeros((width, 64), np.uint64)
        self._answers = np.zeros(64, np.int64)
        self._count = 0

    def look_up(self, columns: Sequence[Words], hashes: Words) -> tuple[Answers, npt.NDArray[np.bool_]]:
        """(answers, which of them hold)."""
        at = self._slots[hashes >> np.uint64(64 - _SLOT_BITS)]
        known = at >= 0
        for column, row in zip(columns, self._rows, strict=True):
            known &= row[at] == column
        return self._answers[at], known

    def learn(self, columns: Sequence[Words], hashes: Words, asked: Places, answers: Answers) -> None:
        """Remember the answers of some rows."""
        asked, answers = asked[:_ROWS_MAX], answers[:_ROWS_MAX]
        if self._count + len(asked) > _ROWS_MAX:
            self._slots.fill(-1)
            self._count = 0
        end = self._count + len(asked)
        if end > len(self._answers):
            room = min(max(end, 2 * len(self._answers)), _ROWS_MAX)
            more = room - len(self._answers)
            self._rows = np.pad(self._rows, ((0, 0), (0, more)))
            self._answers = np.pad(self._answers, (0, more))
        for row, column in zip(self._rows, columns, strict=True):
            row[self._count : end] = column[asked]
        self._answers[self._count : end] = answers
        self._slots[hashes[asked] >> np.uint64(64 - _SLOT_BITS)] = np.arange(self._count, end)
        self._count = end


class DistinctPieces:
    """Answers of pieces of bytes; `ask` gives that of one."""

    def __init__(self, ask: Callable[[bytes], int]) -> None:
        self._ask = ask
        self._distinct = Distinct()
        self._remembered: dict[bytes, int] = {}

    def answers(self, data: bytes, begins: Places, sizes: Places) -> Answers:
        """The answer of each piece; piece i is `data[begins[i] : begins[i] + sizes[i]]`, begins at a multiple
        of 8, and `data` goes on to a multiple of 8 behind it."""
        found = np.zeros(len(begins), np.int64)
        words = np.frombuffer(data, "<u8", len(data) // 8)
        widths = sizes + 7 >> 3
        for width in np.flatnonzero(np.bincount(np.minimum(widths, _WIDE + 1))).tolist():
            chosen = np.flatnonzero(widths > _WIDE if width > _WIDE else widths == width)
            begin, size = begins[chosen], sizes[chosen]

            def one(i: int, begin: Places = begin, size: Places = size) -> int:
                return self._one(data[begin[i] : begin[i] + size[i]])

            if width > _WIDE or len(chosen) < 4 * width:
                found[chosen] = [one(i) for i in range(len(chosen))]
                continue
            at = begin >> 3
            columns = [size.astype(np.uint64), *(words[at + i] for i in range(width))]
            unused = (np.uint64(8) * (np.uint64(-size & 7))) if width else None
            if unused is not None and unused.any():
                columns[-1] = columns[-1] << unused >> unused
            found[chosen] = self._distinct.answers(columns, one)
        return found

    def _one(self, piece: bytes) -> int:
        key = piece if len(piece) <= _SHORT else short_digest(piece)
        known = self._remembered.get(key)
        if known is None:
            if len(self._remembered) > _REMEMBERED:
                self._remembered.clear()
            known = self._remembered[key] = self._ask(piece)
        return known
