"""The blocks of glibc's allocator in one piece of memory: which the program holds, which are free."""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass

_TCACHE_SIZE = 0x290
_TCACHE_BINS = 64
_FLAGS = 7
_SMALLEST = 32
_MOST_CACHED = 65536


@dataclass(frozen=True, slots=True)
class Block:
    """A block: where its header is, its size with the header (bytes), whether the program holds it."""

    start: int
    size: int
    held: bool

    @property
    def memory(self) -> int:
        """The address that malloc gave."""
        return self.start + 16

    @property
    def end(self) -> int:
        """The end of what the program may use: it reaches into the next block's header."""
        return self.start + self.size + 8


class Heap:
    """The blocks of one heap. A block that was freed a moment ago may be taken for one that is held."""

    def __init__(self, start: int, data: bytes) -> None:
        """`data` is the heap's memory. ValueError where it is not one of glibc's."""
        self._start, self._data = start, data
        self._size = len(data) & ~15
        self.blocks = self._walk()
        self._starts = [block.start for block in self.blocks]

    def at(self, address: int) -> Block | None:
        """The block that holds an address, the last one being what was never given out."""
        i = bisect_right(self._starts, address) - 1
        return self.blocks[i] if i >= 0 and address < self.blocks[i].start + self.blocks[i].size else None

    @property
    def keeper(self) -> Block:
        """The first block: the allocator's own list of freed blocks."""
        return self.blocks[0]

    def _word(self, address: int) -> int:
        at = address - self._start
        if not 0 <= at <= len(self._data) - 8:
            raise ValueError(f"{address:#x} is not in the heap")
        (word,) = struct.unpack_from("<Q", self._data, at)
        return int(word)

    def _walk(self) -> list[Block]:
        found: list[tuple[int, int]] = []
        at, end = self._start, self._start + self._size
        while at < end:
            size = self._word(at + 8) & ~_FLAGS
            if size < _SMALLEST or size & 15 or at + size > end:
                raise ValueError(f"no block of {size} bytes at {at:#x}")
            found.append((at, size))
            at += size
        cached = self._cached(found[0][1])
        blocks = []
        for i, (at, size) in enumerate(found):
            last = i + 1 == len(found)
            held = not last and bool(self._word(found[i + 1][0] + 8) & 1) and at + 16 not in cached
            blocks.append(Block(at, size, held))
        return blocks

    def _cached(self, size: int) -> set[int]:
        """Blocks that were freed and wait to be given out again by the thread."""
        found: set[int] = set()
        if size != _TCACHE_SIZE:
            return found
        entries = self._start + 16 + 2 * _TCACHE_BINS
        for i in range(_TCACHE_BINS):
            at = self._word(entries + 8 * i)
            while at and at not in found and len(found) < _MOST_CACHED:
                found.add(at)
                at = self._word(at) ^ at >> 12
        return found
