"""Whether one of the regions of a payload passes, decided for thousands of payloads at once.

The regions of all payloads are walked together, as columns of 64-bit words. Those that count are searched for
what each text that passes contains, where there is such; what is left is asked for once by content.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from interfaces.abi import REGION_HEADER, Region, RegionKind
from tui.model.columns import Mask
from tui.model.query.distinct import DistinctPieces, Places
from tui.model.query.pattern import Pattern

_HEADER = REGION_HEADER.size
_KNOWN_KINDS = np.zeros(256, np.bool_)
_KNOWN_KINDS[[int(kind) for kind in RegionKind]] = True
_ROUNDS = 64
"""Regions of a payload that are walked; payloads with more are left to be decided otherwise."""


class Regions(NamedTuple):
    """Regions of payloads: the number of its payload, kind and argument, first byte of its content, size."""

    payload: Places
    kind: npt.NDArray[np.uint8]
    arg: npt.NDArray[np.uint8]
    begin: Places
    size: Places

    def chosen(self, which: Mask) -> Regions:
        """Some of them."""
        payload, kind, arg, begin, size = self
        return Regions(payload[which], kind[which], arg[which], begin[which], size[which])


def regions_of(data: bytes, starts: Places, ends: Places) -> tuple[Regions, Mask]:
    """(the regions of payloads, which payloads must be looked at otherwise).

    Payload i is `data[starts[i]:ends[i]]`. Left are those that are not whole regions, or too many.
    """
    words = np.frombuffer(data, "<u8", len(data) // 8)
    odd = (starts & 7 != 0) | (ends + 7 >> 3 > len(words)) | (starts < 0)
    live = np.flatnonzero(~odd)
    at, end = starts[live], ends[live]
    rounds: list[Regions] = []
    while len(live) and len(rounds) < _ROUNDS:
        short = end - at < _HEADER
        if short.any():
            odd[live[short]] = True
            live, at, end = live[~short], at[~short], end[~short]
        head = words[(at >> 3) + 1]
        size = (head & np.uint64(0xFFFFFFFF)).astype(np.int64)
        kind = (head >> np.uint64(32)).astype(np.uint8)
        bad = (size > end - at - _HEADER) | ~_KNOWN_KINDS[kind]
        if bad.any():
            odd[live[bad]] = True
            live, at, end = live[~bad], at[~bad], end[~bad]
            head, size, kind = head[~bad], size[~bad], kind[~bad]
        at = at + _HEADER
        rounds.append(Regions(live, kind, (head >> np.uint64(40)).astype(np.uint8), at, size))
        at = at + (size + 7 & ~7)
        more = at < end
        if not more.all():
            live, at, end = live[more], at[more], end[more]
    odd[live] = True
    if len(rounds) == 1:
        return rounds[0], odd
    none = np.zeros(0, np.int64)
    rounds.append(Regions(none, none.astype(np.uint8), none.astype(np.uint8), none, none))
    return (
        Regions(
            np.concatenate([some.payload for some in rounds]),
            np.concatenate([some.kind for some in rounds]),
            np.concatenate([some.arg for some in rounds]),
            np.concatenate([some.begin for some in rounds]),
            np.concatenate([some.size for some in rounds]),
        ),
        odd,
    )


class PathContents:
    """Decides by the paths among the regions."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._pieces = DistinctPieces(self._path_passes)
        self._literal = _encoded(pattern.literal, sys.getfilesystemencoding(), "surrogateescape")

    def decide(
        self, data: bytes, starts: Places, ends: Places, named: npt.NDArray[np.uint8]
    ) -> tuple[Mask, Mask]:
        """(which payloads name a path that passes, which are to be decided otherwise).

        Bit k of `named[i]` is set where argument k of the call of payload i is a path.
        """
        found = np.zeros(len(starts), np.bool_)
        regions, odd = regions_of(data, starts, ends)
        if self._literal is not None and self._literal in data:
            bits = named[regions.payload] >> np.minimum(regions.arg, np.uint8(7)) & 1
            wanted = (regions.kind == RegionKind.IN) & (regions.arg < 8) & (bits != 0)
            regions = regions.chosen(wanted | (regions.kind == RegionKind.PATH))
            passing = self._pieces.answers(data, regions.begin, regions.size) != 0
            found[regions.payload[passing]] = True
        return found & ~odd, odd

    def _path_passes(self, piece: bytes) -> bool:
        return self._pattern.match(os.fsdecode(piece.split(b"\0", 1)[0]))


class DataContents:
    """Decides by the bytes that went in or out, taken as Latin-1 characters."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._pieces = DistinctPieces(self._passes)
        self._literal = _encoded(pattern.literal, "latin-1", "strict")

    def decide(self, data: bytes, starts: Places, ends: Places) -> tuple[Mask, Mask]:
        """(which payloads hold data that passes, which are to be decided otherwise)."""
        found = np.zeros(len(starts), np.bool_)
        regions, odd = regions_of(data, starts, ends)
        odd[regions.payload[regions.kind == RegionKind.FILL]] = True
        if self._literal is not None and self._literal in data:
            regions = regions.chosen((regions.kind == RegionKind.IN) | (regions.kind == RegionKind.OUT))
            if self._literal:
                regions = regions.chosen(holding(data, self._literal, regions.begin, regions.size))
            if not self._pattern.inside:
                answers = self._pieces.answers(data, regions.begin, regions.size)
                regions = regions.chosen(answers != 0)
            found[regions.payload] = True
        return found & ~odd, odd

    def passes(self, region: Region) -> bool:
        """Whether one region passes."""
        return region.kind in (RegionKind.IN, RegionKind.OUT) and self._passes(region.data)

    def _passes(self, piece: bytes) -> bool:
        return self._pattern.match(piece.decode("latin-1"))


def _encoded(literal: str, encoding: str, errors: str) -> bytes | None:
    """The bytes that stand for a text; None where no bytes do."""
    try:
        return literal.encode(encoding, errors)
    except UnicodeEncodeError:
        return None


def holding(data: bytes, literal: bytes, begins: Places, sizes: Places) -> Mask:
    """Which pieces of `data` hold the literal, which is not empty."""
    hits = positions(data, literal)
    if not len(hits):
        return np.zeros(len(begins), np.bool_)
    following = np.searchsorted(hits, begins)
    first = hits[np.minimum(following, len(hits) - 1)]
    return (following < len(hits)) & (first + len(literal) <= begins + sizes)


def positions(data: bytes, literal: bytes) -> Places:
    """Where the literal, which is not empty, begins in `data`, ascending."""
    octets = np.frombuffer(data, np.uint8)
    last = len(octets) - len(literal) + 1
    if last <= 0:
        return np.zeros(0, np.int64)
    found = octets[:last] == literal[0]
    if len(literal) > 1:
        found &= octets[len(literal) - 1 :] == literal[-1]
    hits = np.flatnonzero(found)
    for i in range(1, len(literal) - 1):
        hits = hits[octets[hits + i] == literal[i]]
    return hits
