"""The condition `path`: of a path among the arguments, or what the call's descriptor stands for.

Over millions of calls neither may cost a decoding each. Paths are looked up by the bytes of the payload,
which repeat; for descriptors, each block is cut at the events that open and close them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from interfaces.abi import Kind, parse_regions
from interfaces.calls import BY_NAME, CALLS
from tui.model.columns import CODES, NR_MAX, PAIR, RANGE, Block, Mask, code_of, table_of
from tui.model.decode import paths_in
from tui.model.query.bulk import BlockEvents
from tui.model.query.pathbytes import PathBytes

if TYPE_CHECKING:
    from tui.model.trace import TraceModel

_NONE = 7


def _tables() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """(which arguments are paths as bits, the first argument that is a descriptor or _NONE) of each code."""
    named = np.zeros(CODES, np.uint8)
    first = np.full(CODES, _NONE, np.uint8)
    for number, call in CALLS.items():
        places = [i for i, arg in enumerate(call.args) if arg.type == "fd"]
        for kind in (Kind.SYSCALL, Kind.RELEASE):
            code = code_of(kind, number)
            named[code] = sum(1 << i for i, arg in enumerate(call.args) if arg.type == "path")
            first[code] = places[0] if places else _NONE
    return named, first


_PATH_ARGS, _FIRST_FD = _tables()
_NAMED = _PATH_ARGS != 0
_TELLING = _NAMED | table_of([code_of(Kind.SYSCALL, BY_NAME["close"].number)])
"""Codes of events behind which a descriptor stands for the path they name, or for nothing."""


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
        self._paths = PathBytes(passes)

    def mask(self, block: Block, events: BlockEvents, candidates: Mask) -> Mask:
        """Which of the candidates, rows [0, len) of the block, pass."""
        codes = block.code[: len(candidates)]
        named = candidates & _NAMED[codes]
        found = self._named(codes, events, named)
        places = _FIRST_FD[codes]
        by_descriptor = candidates & ~found & (places != _NONE)
        if by_descriptor.any():
            self._by_descriptor(block, events, by_descriptor, places, found, named)
        return found

    def _named(self, codes: npt.NDArray[np.uint16], events: BlockEvents, wanted: Mask) -> Mask:
        """Which of the wanted rows name a path that passes."""
        found = np.zeros(len(wanted), np.bool_)
        if not wanted.any():
            return found
        odd = np.zeros(len(wanted), np.bool_)
        odd[events.begun(wanted)] = True
        for places, data, starts, ends in events.payload_places(wanted & ~odd):
            found[places], odd[places] = self._paths.decide(data, starts, ends, _PATH_ARGS[codes[places]])
        if odd.any():
            numbers = codes & np.uint16(NR_MAX)
            for place, payload in events.payloads(odd):
                found[place] = self._any(int(numbers[place]), payload)
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
        known: Mask,
    ) -> None:
        """Decide the wanted rows by their descriptor, in `found`, which has decided the `known` ones."""
        rows = np.flatnonzero(wanted)
        fds = np.zeros(len(rows), np.uint32)
        for place, own in _groups(places[rows].astype(np.uint32)):
            fds[own] = events.column(f"arg{place}", wanted)[rows[own]]
        lives = [
            self._life(block, domain, fd, rows[of_domain[of_fd]], len(wanted))
            for domain, of_domain in _groups(self._model.index.domain_table()[block.task[rows]])
            for fd, of_fd in _groups(fds[of_domain])
            if not fd & 1 << 31
        ]
        codes = block.code[: len(wanted)]
        openings = np.zeros(len(wanted), np.bool_)
        for life in lives:
            openings[life.cuts[life.at[life.at > 0] - 1]] = True
        opened = found & known | self._named(codes, events, openings & _NAMED[codes] & ~known)
        for life in lives:
            values = np.zeros(len(life.cuts) + 1, np.bool_)
            values[1:] = opened[life.cuts]
            told = np.zeros(len(values), np.bool_)
            told[1:] = _TELLING[codes[life.cuts]]
            asked = np.flatnonzero(~told[life.at])
            for begin in asked[np.diff(life.at[asked], prepend=-1) != 0].tolist():
                first = block.first + int(life.rows[begin])
                values[life.at[begin]] = self._passes_label(first, life.fd)
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


def _groups(values: npt.NDArray[np.uint32]) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Each value that occurs, with its places in order. Small numbers are sorted much quicker as such."""
    if not len(values):
        return
    keys = values.astype(np.uint16) if values.max() < 1 << 16 else values
    order = np.argsort(keys, kind="stable")
    ordered = values[order]
    begins = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(order)]
    for begin, end in itertools.pairwise(begins):
        yield int(ordered[begin]), order[begin:end]
