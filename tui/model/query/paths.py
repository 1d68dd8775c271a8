"""The condition `path`: of a path among the arguments, or what the call's descriptor stands for.

Over millions of calls neither may cost a decoding each. Paths are looked up by the bytes of the payload,
which repeat; for descriptors, each block is cut at the events that open and close them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from interfaces.abi import Kind, parse_regions
from interfaces.calls import CALLS
from tui.model.columns import CODES, NR_MAX, PAIR, RANGE, Block, Mask, code_of
from tui.model.decode import paths_in
from tui.model.query.bulk import BlockEvents

if TYPE_CHECKING:
    from tui.model.trace import TraceModel

_MEMORY = 1 << 17
_NONE = 7


def _tables() -> tuple[Mask, npt.NDArray[np.uint8]]:
    """(which codes name paths, the first argument that is a descriptor or _NONE)."""
    named = np.zeros(CODES, np.bool_)
    first = np.full(CODES, _NONE, np.uint8)
    for number, call in CALLS.items():
        places = [i for i, arg in enumerate(call.args) if arg.type == "fd"]
        for kind in (Kind.SYSCALL, Kind.RELEASE):
            code = code_of(kind, number)
            named[code] = any(arg.type == "path" for arg in call.args)
            first[code] = places[0] if places else _NONE
    return named, first


_NAMED, _FIRST_FD = _tables()


class _Life(NamedTuple):
    """Rows of a block (offsets) that use a descriptor, and the places where it may begin to stand for
    something else: row i lies behind `at[i]` of them."""

    fd: int
    rows: npt.NDArray[np.int64]
    cuts: npt.NDArray[np.int64]
    at: npt.NDArray[np.intp]


class PathMatcher:
    """Finds the rows whose path passes; see the module."""

    def __init__(self, model: TraceModel, passes: Callable[[str], bool]) -> None:
        self._model = model
        self._passes = passes
        self._payloads: dict[tuple[int, bytes], bool] = {}

    def mask(self, block: Block, events: BlockEvents, candidates: Mask) -> Mask:
        """Which of the candidates, rows [0, len) of the block, pass."""
        codes = block.code[: len(candidates)]
        found = self._named(codes, events, candidates & _NAMED[codes])
        places = _FIRST_FD[codes]
        by_descriptor = candidates & ~found & (places != _NONE)
        if by_descriptor.any():
            self._by_descriptor(block, events, by_descriptor, places, found)
        return found

    def _named(self, codes: npt.NDArray[np.uint16], events: BlockEvents, wanted: Mask) -> Mask:
        found = np.zeros(len(wanted), np.bool_)
        if not wanted.any():
            return found
        known = self._payloads
        numbers = (codes & np.uint16(NR_MAX)).tolist()
        for place, payload in events.payloads(wanted):
            key = (numbers[place], payload)
            passes = known.get(key)
            if passes is None:
                if len(known) > _MEMORY:
                    known.clear()
                passes = known[key] = self._any(numbers[place], payload)
            found[place] = passes
        return found

    def _any(self, nr: int, payload: bytes) -> bool:
        try:
            return any(self._passes(path) for path in paths_in(nr, parse_regions(payload)))
        except ValueError:
            return False

    def _by_descriptor(
        self,
        block: Block,
        events: BlockEvents,
        wanted: Mask,
        places: npt.NDArray[np.uint8],
        found: Mask,
    ) -> None:
        """Decide the wanted rows by their descriptor, in `found`."""
        rows = np.flatnonzero(wanted)
        fds = np.zeros(len(rows), np.uint32)
        for place in np.unique(places[rows]).tolist():
            own = places[rows] == place
            fds[own] = events.column(f"arg{place}", wanted)[rows[own]]
        domains = self._model.index.domain_table()[block.task[rows]]
        pairs = domains.astype(np.uint64) << np.uint64(32) | fds
        lives = [
            self._life(block, pair >> 32, pair & 0xFFFFFFFF, rows[pairs == pair], len(wanted))
            for pair in np.unique(pairs).tolist()
            if not pair & 1 << 31
        ]
        codes = block.code[: len(wanted)]
        openings = np.zeros(len(wanted), np.bool_)
        for life in lives:
            openings[life.cuts[np.unique(life.at[life.at > 0]) - 1]] = True
        opened = self._named(codes, events, openings & _NAMED[codes])
        for life in lives:
            values = np.zeros(len(life.cuts) + 1, np.bool_)
            values[1:] = opened[life.cuts]
            for i in np.unique(life.at).tolist():
                if not i or not _NAMED[codes[life.cuts[i - 1]]]:
                    first = int(life.rows[int(np.searchsorted(life.at, i))])
                    values[i] = self._passes_label(block.first + first, life.fd)
            found[life.rows] = values[life.at]

    def _life(self, block: Block, domain: int, fd: int, rows: npt.NDArray[np.int64], limit: int) -> _Life:
        """How the block's events that make or close a descriptor cut the rows that use it."""
        table = self._model.index.domain_table()
        parts = [np.empty(0, np.uint16)]
        for uses in list(block.uses):
            at = uses.at[(uses.fd == fd) | (uses.fd == PAIR) | (uses.fd == RANGE)]
            parts.append(at[table[block.task[at]] == domain])
        cuts = np.concatenate(parts).astype(np.int64)
        cuts = cuts[cuts < limit]
        return _Life(fd, rows, cuts, np.searchsorted(cuts, rows))

    def _passes_label(self, row: int, fd: int) -> bool:
        label = self._model.label(row, fd)
        return bool(label) and self._passes(label)
