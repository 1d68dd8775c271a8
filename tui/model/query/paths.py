"""The condition `path`: of a path or address among the arguments, or what a descriptor of the call is.

Over millions of calls neither may cost a decoding each. Paths are looked up by the bytes of the payload,
which repeat; what a descriptor stands for follows from the last event before that made, named or closed it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from interfaces.abi import Kind
from interfaces.calls import BY_NAME, CALLS
from interfaces.libspec import naming
from tui.model.columns import (
    BLOCK,
    BLOCK_SHIFT,
    CODES,
    PAIR,
    RANGE,
    Block,
    Mask,
    code_of,
    table_of,
)
from tui.model.decode import PATH_NAMES
from tui.model.fds import FIXED
from tui.model.query.bulk import BlockEvents, Payloads, Places, decided
from tui.model.query.contents import PathContents
from tui.model.query.pattern import Pattern

if TYPE_CHECKING:
    from tui.model.trace import TraceModel

ARGUMENTS = 6


def _tables() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Which arguments are paths, and which are descriptors, as bits, of each code."""
    paths = np.zeros(CODES, np.uint8)
    descriptors = np.zeros(CODES, np.uint8)
    for number, call in CALLS.items():
        for kind in (Kind.SYSCALL, Kind.RELEASE):
            code = code_of(kind, number)
            paths[code] = sum(1 << i for i, arg in enumerate(call.args) if arg.type == "path")
            descriptors[code] = call.fd_mask
    return paths, descriptors


def _calls(*names: str) -> Mask:
    return table_of([code_of(Kind.SYSCALL, BY_NAME[name].number) for name in names])


_PATH_ARGS, FD_MASKS = _tables()
"""FD_MASKS: for each code, bit i is set where argument i is a descriptor."""
_ADDRESSING = table_of(
    [code_of(kind, BY_NAME[n].number) for kind in (Kind.SYSCALL, Kind.RELEASE) for n in ("connect", "bind")]
)
"""Codes of events that name an address."""
_OPENING = _calls("open", "openat", "openat2", "creat")
"""Codes of events behind which a descriptor stands for the path they name."""
_CLOSING = _calls("close")
"""Codes of events behind which a descriptor stands for nothing."""


class _Uses(NamedTuple):
    """Descriptors that rows use, in the order of `key`, which tells them and their processes apart, and of
    rows. `made` and `wild` are offsets of the last event before the row that makes, names or closes this
    descriptor, or may do so; -1: in an earlier block."""

    row: Places
    fd: npt.NDArray[np.uint32]
    key: npt.NDArray[Any]
    made: Places
    wild: Places


class PathMatcher:
    """Finds the rows whose path passes; see the module."""

    def __init__(self, model: TraceModel, pattern: Pattern, go_on: Callable[[], None]) -> None:
        """`go_on` is called before each event that is decoded, and may raise."""
        self._model = model
        self._go_on = go_on
        self._pattern = pattern
        self._contents = PathContents(pattern)
        self._paths = _path_arguments()
        self._fixed = np.zeros(CODES, np.bool_)
        fixed = [name for name in FIXED if BY_NAME[name].returns == "fd"]
        self._constant = _CLOSING | _calls(*fixed)
        self._fixed |= _calls(*(name for name in fixed if pattern.match(FIXED[name])))

    def mask(self, block: Block, events: BlockEvents, candidates: Mask) -> Mask:
        """Which of the candidates, rows [0, len) of the block, pass."""
        codes = block.code[: len(candidates)]
        named = candidates & (self._paths[codes] != 0)
        found = self._named(block, events, named)
        masks = np.where(candidates & ~found, FD_MASKS[codes], np.uint8(0))
        uses = self._uses(block, events, masks)
        if uses is not None:
            passing = self._by_descriptor(block, events, uses, found, named)
            found[uses.row[passing]] = True
        for place in np.flatnonzero(candidates & ~found & _ADDRESSING[codes]).tolist():
            found[place] = self._passes_label(block.first + place, None)
        return found

    def _named(self, block: Block, events: BlockEvents, wanted: Mask) -> Mask:
        """Which of the wanted rows name a path that passes."""
        if not wanted.any():
            return np.zeros(len(wanted), np.bool_)

        def decide(found: Payloads) -> tuple[Mask, Mask]:
            named = self._paths[block.code[found.places]]
            return self._contents.decide(found.data, found.starts, found.ends, named)

        def passes(place: int) -> bool:
            self._go_on()
            return any(map(self._pattern.match, self._model.decode_once(block.first + place).paths))

        return decided(events, wanted, decide, passes)

    def _by_descriptor(
        self, block: Block, events: BlockEvents, uses: _Uses, found: Mask, known: Mask
    ) -> Mask:
        """Which of the uses pass; `found` has decided the paths that the `known` rows name."""
        codes = block.code[: len(known)]
        at = np.maximum(uses.made, 0)
        made_by = codes[at]
        here = uses.made > uses.wild
        opened = here & _OPENING[made_by]
        openings = np.zeros(len(known), np.bool_)
        openings[at[opened]] = True
        by_path = found | self._named(block, events, openings & ~known)
        passing = np.where(opened, by_path[at], self._fixed[made_by] & here)
        asked = np.flatnonzero(~(opened | (here & self._constant[made_by])))
        if len(asked):
            kinds = [column[asked] for column in (uses.key, uses.made, uses.wild)]
            new = np.ones(len(asked), np.bool_)
            new[1:] = np.any([kind[1:] != kind[:-1] for kind in kinds], axis=0)
            firsts = asked[new]
            rows = np.where(here, uses.made, uses.row)[firsts]
            labels = np.zeros(len(firsts), np.bool_)
            for i in np.argsort(rows, kind="stable").tolist():  # as they lie in the file
                fd = None if here[firsts[i]] else int(uses.fd[firsts[i]])
                labels[i] = self._passes_label(block.first + int(rows[i]), fd)
            passing[asked] = labels[np.cumsum(new) - 1]
        return passing

    def _uses(self, block: Block, events: BlockEvents, masks: npt.NDArray[np.uint8]) -> _Uses | None:
        """The descriptors that rows use, told by bit masks of their arguments; None where there are none."""
        rows, fds = [], []
        for i in range(int(np.bitwise_or.reduce(masks)).bit_length()):
            has = masks & np.uint8(1 << i) != 0
            own = np.flatnonzero(has)
            words = events.column(f"arg{i}", has)[own].astype(np.uint32)
            valid = words < 1 << 31
            rows.append(own[valid])
            fds.append(words[valid])
        row = _together(rows, np.int64)
        if not len(row):
            return None
        fd = _together(fds, np.uint32)
        ranks = np.searchsorted(events.domains, self._model.index.domain_table())
        parts = list(block.uses)
        at = _together([part.at for part in parts], np.uint16)
        made = _together([part.fd for part in parts], np.int32)
        if len(at) and at[-1] >= len(masks):
            at, made = at[at < len(masks)], made[at < len(masks)]
        rank, maker_rank = ranks[block.task[row]], ranks[block.task[at]]
        width = int(fd.max()) + 1
        known = (made >= 0) & (made < width)
        keys = _Keys(width * (int(rank.max()) + 1))
        key = keys.of(rank, width, fd)
        order = keys.order(key, row)
        row, fd, key = row[order], fd[order], key[order]
        last = keys.last_before(keys.of(maker_rank[known], width, made[known]), at[known], key, row)
        wild = (made == PAIR) | (made == RANGE)
        if not wild.any():
            return _Uses(row, fd, key, last, np.full(len(row), -1, np.int64))
        groups = _Keys(int(rank.max()) + 1)
        maker_key, group = groups.of(maker_rank[wild]), groups.of(rank[order])
        return _Uses(row, fd, key, last, groups.last_before(maker_key, at[wild], group, row))

    def _passes_label(self, row: int, fd: int | None) -> bool:
        """Whether what `fd` stands for at a row passes; without `fd`, what the row's event made or named."""
        self._go_on()
        label = self._model.label(row, fd) if fd is not None else self._model.label_made(row)
        return bool(label) and self._pattern.match(label)


def _path_arguments() -> npt.NDArray[np.uint8]:
    """Which arguments are paths, as bits, of each code, library functions included."""
    functions = naming.known()
    if not functions:
        return _PATH_ARGS
    found = _PATH_ARGS.copy()
    for number, function in functions.items():
        named = [i for i, one in enumerate(function.parameters) if one.name in PATH_NAMES]
        found[code_of(Kind.LIBCALL, number)] = sum(1 << i for i in named if i < ARGUMENTS)
    return found


def _together(parts: list[npt.NDArray[Any]], kind: npt.DTypeLike) -> npt.NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, kind), *parts])


class _Keys:
    """Numbers of up to `limit` groups, as arrays of a type that also holds a row of the block."""

    def __init__(self, limit: int) -> None:
        self._small = limit <= 1 << 16
        self._kind = np.dtype(np.uint32 if self._small else np.int64)

    def of(self, rank: Places, width: int = 1, number: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """The number of each: `rank` times `width`, plus `number`."""
        found = rank.astype(self._kind)
        if number is not None:
            found = found * self._kind.type(width) + number.astype(self._kind)
        return found

    def order(self, key: npt.NDArray[Any], row: Places) -> Places:
        """The order by key, then by row."""
        if not self._small:
            return np.argsort(self._joined(key, row), kind="stable")
        if (row[1:] >= row[:-1]).all():
            return np.argsort(key.astype(np.uint16), kind="stable")
        first = np.argsort(row.astype(np.uint16), kind="stable")
        return first[np.argsort(key[first].astype(np.uint16), kind="stable")]

    def last_before(
        self, maker_key: npt.NDArray[Any], at: npt.NDArray[Any], key: npt.NDArray[Any], row: Places
    ) -> Places:
        """For each of the rows, in their order, the last maker before it with the same key; -1: none."""
        if not len(at):
            return np.full(len(row), -1, np.int64)
        makers = np.sort(self._joined(maker_key, at))
        found = np.searchsorted(makers, self._joined(key, row)) - 1
        last = makers[np.maximum(found, 0)]
        same = (found >= 0) & (last >> self._kind.type(BLOCK_SHIFT) == key)
        before = (last & self._kind.type(BLOCK - 1)).astype(np.int64)
        before[~same] = -1
        return before

    def _joined(self, key: npt.NDArray[Any], row: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return key << self._kind.type(BLOCK_SHIFT) | row.astype(self._kind)
