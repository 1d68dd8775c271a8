"""The few columns of all events that stay in memory: 16 bytes an event, in blocks of 65 536.

Everything the list, the timeline and most filters ask of an event they have not decoded is here. Blocks are
only ever appended to, so readers in other threads may go on while a worker adds events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from interfaces.abi import Kind

BLOCK_SHIFT = 16
BLOCK = 1 << BLOCK_SHIFT

NR_BITS = 11
NR_MAX = (1 << NR_BITS) - 1
CODES = 1 << 16

_PARTS = 16
"""Parts of a block's descriptor uses before they are joined."""

ERROR_OTHER = 255
"""Error number of a failure whose number is beyond 254."""
_LAST_ERROR = 4095

Mask = npt.NDArray[np.bool_]


def code_of(kind: int, nr: int) -> int:
    """Kind and number as one 16-bit value; numbers beyond NR_MAX share the last one."""
    return (kind & 31) << NR_BITS | min(nr, NR_MAX)


def kind_of_code(code: int) -> int:
    """The kind in a code."""
    return code >> NR_BITS


def nr_of_code(code: int) -> int:
    """The call or signal number in a code."""
    return code & NR_MAX


def codes_of(kinds: npt.NDArray[np.uint8], numbers: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint16]:
    """`code_of` for whole columns."""
    return (kinds & np.uint8(31)).astype(np.uint16) << np.uint16(NR_BITS) | np.minimum(
        numbers, np.uint16(NR_MAX)
    )


def table_of(codes: list[int]) -> Mask:
    """A table that is true at the given codes; index it with a column of codes."""
    table = np.zeros(CODES, np.bool_)
    table[codes] = True
    return table


def table_of_kinds(kinds: frozenset[Kind] | set[Kind]) -> Mask:
    """A table that is true at all codes of the given kinds."""
    table = np.zeros((32, NR_MAX + 1), np.bool_)
    table[[int(kind) for kind in kinds]] = True
    return table.reshape(-1)


def errors_of(kinds: npt.NDArray[np.uint8], results: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """The error number of each call that failed, 0 of all other events."""
    failed = (kinds == Kind.SYSCALL) & (results < 0) & (results >= -_LAST_ERROR)
    return np.where(failed, np.minimum(-results, ERROR_OTHER), 0).astype(np.uint8)


def occurring(tasks: npt.NDArray[np.unsignedinteger[Any]]) -> npt.NDArray[np.intp]:
    """The numbers that occur, ascending; quick for few rows among many tasks and for many among few."""
    least, most = int(tasks.min()), int(tasks.max())
    if most - least > 4 * len(tasks) + 64:
        return np.unique(tasks).astype(np.intp)
    return np.flatnonzero(np.bincount(tasks - tasks.dtype.type(least))) + least


NO_DESCRIPTOR = -9
PAIR = -2
"""In place of a descriptor: the call makes two, or brings some; which ones is in its payload."""
RANGE = -3
"""In place of a descriptor: the call closes several."""


@dataclass(slots=True)
class Columns:
    """The columns of consecutive events. `task` numbers tasks of the index; `took` is in nanoseconds; `use`
    is the descriptor that a call makes, names or closes; `when` never falls: CLOCK_MONOTONIC nanoseconds."""

    task: npt.NDArray[np.uint32]
    code: npt.NDArray[np.uint16]
    error: npt.NDArray[np.uint8]
    flags: npt.NDArray[np.uint8]
    took: npt.NDArray[np.float32]
    use: npt.NDArray[np.int32]
    when: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.when)

    def part(self, chosen: slice | npt.NDArray[np.int64]) -> Columns:
        """Some of the events."""
        return Columns(
            self.task[chosen],
            self.code[chosen],
            self.error[chosen],
            self.flags[chosen],
            self.took[chosen],
            self.use[chosen],
            self.when[chosen],
        )

    @staticmethod
    def merged(parts: list[Columns]) -> Columns:
        """All parts in the order of `when`; where that is equal, earlier parts first."""
        if len(parts) == 1:
            return parts[0]
        when = np.concatenate([part.when for part in parts])
        order = np.argsort(when, kind="stable")
        return Columns(
            np.concatenate([part.task for part in parts])[order],
            np.concatenate([part.code for part in parts])[order],
            np.concatenate([part.error for part in parts])[order],
            np.concatenate([part.flags for part in parts])[order],
            np.concatenate([part.took for part in parts])[order],
            np.concatenate([part.use for part in parts])[order],
            when[order],
        )


@dataclass(slots=True)
class DescriptorUses:
    """Events of one block that make, name or close descriptors: offset in the block, and the descriptor,
    PAIR or RANGE."""

    at: npt.NDArray[np.uint16]
    fd: npt.NDArray[np.int32]


def _empty_uses() -> list[DescriptorUses]:
    return []


@dataclass(slots=True)
class Block:
    """Up to 65 536 consecutive rows; columns as in Columns, `when` by way of `times`."""

    first: int
    count: int = 0
    task: npt.NDArray[np.uint16] | npt.NDArray[np.uint32] = field(
        default_factory=lambda: np.empty(BLOCK, np.uint16)
    )
    code: npt.NDArray[np.uint16] = field(default_factory=lambda: np.empty(BLOCK, np.uint16))
    error: npt.NDArray[np.uint8] = field(default_factory=lambda: np.empty(BLOCK, np.uint8))
    flags: npt.NDArray[np.uint8] = field(default_factory=lambda: np.empty(BLOCK, np.uint8))
    took: npt.NDArray[np.float32] = field(default_factory=lambda: np.empty(BLOCK, np.float32))
    uses: list[DescriptorUses] = field(default_factory=_empty_uses)
    start: int = 0
    end: int = 0
    longest: float = 0.0
    _exact: npt.NDArray[np.uint64] | None = field(default_factory=lambda: np.empty(BLOCK, np.uint64))
    _packed: npt.NDArray[np.uint32] | None = None
    _shift: int = 0

    @property
    def room(self) -> int:
        """Rows that still fit."""
        return BLOCK - self.count

    def append(self, columns: Columns) -> None:
        """Add rows, not more than there is room for."""
        assert self._exact is not None
        count = len(columns)
        span = slice(self.count, self.count + count)
        if self.task.dtype != np.uint32 and count and int(columns.task.max()) > 0xFFFF:
            self.task = self.task.astype(np.uint32)
        self.task[span] = columns.task
        self.code[span] = columns.code
        self.error[span] = columns.error
        self.flags[span] = columns.flags
        self.took[span] = columns.took
        self._exact[span] = columns.when
        used = np.flatnonzero(columns.use != NO_DESCRIPTOR)
        if len(used):
            self.uses.append(DescriptorUses((used + self.count).astype(np.uint16), columns.use[used]))
            if len(self.uses) > _PARTS:
                self._join_uses()
        if not self.count and count:
            self.start = int(columns.when[0])
        if count:
            self.end = int(columns.when[-1])
            self.longest = max(self.longest, float(columns.took.max()))
        self.count += count
        if not self.room:
            self._pack()

    def times(self, start: int = 0, stop: int | None = None) -> npt.NDArray[np.uint64]:
        """When the rows [start, stop) of this block ended, never falling.

        Exact to a nanosecond unless the block spans more than four seconds, then to a few.
        """
        stop = self.count if stop is None else min(stop, self.count)
        exact = self._exact
        if exact is not None:
            return exact[start:stop]
        assert self._packed is not None
        offsets = self._packed[start:stop].astype(np.uint64) << np.uint64(self._shift)
        return offsets + np.uint64(self.start)

    def _pack(self) -> None:
        assert self._exact is not None
        offsets = self._exact - np.uint64(self.start)
        self._shift = max(int(offsets[-1]).bit_length() - 32, 0)
        self._packed = (offsets >> np.uint64(self._shift)).astype(np.uint32)
        self._exact = None
        if self.uses:
            self._join_uses()

    def _join_uses(self) -> None:
        self.uses = [
            DescriptorUses(
                np.concatenate([part.at for part in self.uses]),
                np.concatenate([part.fd for part in self.uses]),
            )
        ]
