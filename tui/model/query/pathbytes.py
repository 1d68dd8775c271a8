"""Whether the paths that calls name pass, decided for thousands of payloads at once.

A trace has few paths and names them again and again. So the regions of all payloads are walked together, as
columns of 64-bit words; equal paths are found by a hash, compared to be sure, and each is asked for once.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from interfaces.abi import REGION_HEADER, RegionKind
from tui.model.columns import Mask

_WORDS_MAX = 512
_MEMORY = 1 << 16
_HEADER_WORDS = REGION_HEADER.size // 8
_KINDS = np.zeros(256, np.bool_)
_KINDS[[int(kind) for kind in RegionKind]] = True
_FACTORS = np.random.default_rng(0x7061).integers(0, 1 << 64, _WORDS_MAX, np.uint64) | np.uint64(1)

Words = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]


class PathBytes:
    """Asks `passes` for each path once."""

    def __init__(self, passes: Callable[[str], bool]) -> None:
        self._passes = passes
        self._known: dict[bytes, bool] = {}

    def decide(
        self, data: bytes, starts: Places, ends: Places, named: npt.NDArray[np.uint8]
    ) -> tuple[Mask, Mask]:
        """(which payloads name a path that passes, which are to be decided otherwise).

        Payload i is `data[starts[i]:ends[i]]`; bit k of `named[i]` is set where argument k of its call is a
        path. What cannot be decided here: payloads that are not whole regions.
        """
        words = np.frombuffer(data, "<u8", len(data) // 8)
        found = np.zeros(len(starts), np.bool_)
        odd = (starts & 7 != 0) | (ends + 7 >> 3 > len(words)) | (starts < 0)
        live = np.flatnonzero(~odd)
        at = starts[live] >> 3
        while len(live):
            short = ends[live] - (at << 3) < REGION_HEADER.size
            odd[live[short]] = True
            live, at = live[~short], at[~short]
            head = words[at + 1]
            length = (head & np.uint64(0xFFFFFFFF)).astype(np.int64)
            kind = (head >> np.uint64(32)).astype(np.uint8)
            bad = (length > ends[live] - (at << 3) - REGION_HEADER.size) | ~_KINDS[kind]
            if bad.any():
                odd[live[bad]] = True
                live, at, head, length, kind = live[~bad], at[~bad], head[~bad], length[~bad], kind[~bad]
            arg = (head >> np.uint64(40)).astype(np.uint8)
            paths = (kind == RegionKind.PATH) | (
                (kind == RegionKind.IN) & (arg < 8) & (named[live] >> np.minimum(arg, np.uint8(7)) & 1 != 0)
            )
            sizes = length + 7 >> 3
            self._compare(words, live[paths], at[paths] + _HEADER_WORDS, sizes[paths], found, odd)
            at += _HEADER_WORDS + sizes
            more = at << 3 < ends[live]
            live, at = live[more], at[more]
        return found & ~odd, odd

    def _compare(
        self, words: Words, rows: Places, at: Places, sizes: Places, found: Mask, odd: Mask
    ) -> None:
        """Ask for the paths of `rows`, which begin at the words `at`."""
        long = sizes > _WORDS_MAX
        odd[rows[long]] = True
        for size in np.flatnonzero(np.bincount(sizes[~long])).tolist():
            same = sizes == size
            self._of_size(words[at[same][:, None] + np.arange(size)], rows[same], found, odd)

    def _of_size(self, content: Words, rows: Places, found: Mask, odd: Mask) -> None:
        hashes = (content * _FACTORS[: content.shape[1]]).sum(1, dtype=np.uint64)
        _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
        passes = np.array([self._ask(content[i].tobytes()) for i in first.tolist()], np.bool_)
        found[rows] |= passes[which]
        different = (content != content[first[which]]).any(1)
        if different.any():
            odd[rows[different]] = True

    def _ask(self, data: bytes) -> bool:
        known = self._known.get(data)
        if known is None:
            if len(self._known) > _MEMORY:
                self._known.clear()
            known = self._known[data] = self._passes(os.fsdecode(data.split(b"\0", 1)[0]))
        return known
