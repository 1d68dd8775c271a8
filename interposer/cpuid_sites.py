"""Where a file's code has CPUID instructions.

Where the processor cannot make CPUID trap, each of them becomes one that faults (cd a2) in the
program's memory and the core answers in its place. A wrong site would break the program, so two bytes that
look like CPUID count only in executable sections and when disassembling from the start of their function
arrives exactly there. In a file that describes most of its code as functions, what lies in none of them is
taken for data; in any other almost every start a little before the bytes must arrive.

Where CPUID can trap, only certain sites are replaced, and a file that may have others asks for the trap
(`TRAP` among its sites).

What was found is kept between runs (`filecache`).
"""

from __future__ import annotations

import bisect
import functools
import itertools
import os
import struct
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from interposer.elf import PT_GNU_EH_FRAME, Elf, ElfError, parse
from interposer.filecache import FileCache

CPUID = b"\x0f\xa2"
REPLACED = b"\xcd\xa2"
TRAP = 0
"""Stands for a site: code may have CPUID instructions that are not among the sites, and must trap."""

_CACHE = "cpuid-3"
_CACHE_LEAST = 1 << 16
_FUNCTION_MAX = 1 << 20
_BEFORE_MIN, _BEFORE_MAX = 16, 64
_SYNC_RATIO = 0.8
_DOUBT_RATIO, _NEAR = 0.25, 16
"""Before data that looks like CPUID fewer starts arrive: 13 of 63 at the most in what was looked at."""
_INSTRUCTION_MAX = 15
_AHEAD = 24
_ENDS = ("ret", "jmp")
_PRIVILEGED = frozenset(("in", "out", "insb", "insd", "outsb", "outsd", "hlt", "cli", "sti", "iretd", "retf"))
"""No program in user mode gets past one of these."""
_EH_FRAME_HDR = struct.Struct("<BBBBiI")
_EH_SORTED_TABLE = (1, 0x1B, 0x03, 0x3B)
_MOSTLY = 0.5
_FRAME_RANGE = 12
"""Where a frame description with 4-byte pointers has the size of its function."""

_Disassemble = Callable[[bytes, int], Iterator[tuple[int, int, str, str]]]


class Found(NamedTuple):
    """CPUID instructions of a file: file offsets, ascending. `likely`: all starts say so, but no function's;
    `doubtful`: more bytes may be some."""

    certain: tuple[int, ...]
    likely: tuple[int, ...]
    doubtful: bool

    def sites(self, can_trap: bool) -> list[int]:
        """Those to replace; with TRAP first where the rest must trap."""
        if not can_trap:
            return sorted(self.certain + self.likely)
        return [*([TRAP] if self.likely or self.doubtful else []), *self.certain]


_known: dict[tuple[int, int, int, int], Found] = {}


def in_mapping(fd: int, offset: int, length: int, can_trap: bool = False) -> list[int]:
    """The sites in bytes [offset, offset + length) of the file, and TRAP if it is among the file's.

    Raises OSError when the file cannot be read.
    """
    end = offset + length - len(CPUID)
    return [site for site in sites(fd, can_trap) if site == TRAP or offset <= site <= end]


def is_elf(fd: int) -> bool:
    """Whether the file may be an ELF file; any other is searched for code only where it is mapped as such."""
    return os.pread(fd, 4, 0) == b"\x7fELF"


def sites(fd: int, can_trap: bool = False) -> list[int]:
    """The file offsets of all CPUID instructions of the file, ascending; where they `can_trap`, those that
    are certain, with TRAP before them if there may be others."""
    status = os.fstat(fd)
    key = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
    found = _known.get(key)
    if found is None:
        cache = FileCache(_CACHE)
        found = _parse(cache.get(status))
        if found is None:
            data = _read(fd, status.st_size)
            found = search(data)
            if any(found) or len(data) >= _CACHE_LEAST:
                parts = (found.certain, found.likely, [int(found.doubtful)])
                cache.put(status, ";".join(" ".join(map(str, part)) for part in parts))
        _known[key] = found
    return found.sites(can_trap)


def _parse(fact: str | None) -> Found | None:
    if fact is None:
        return None
    try:
        certain, likely, (doubtful,) = (tuple(map(int, part.split())) for part in fact.split(";"))
    except ValueError:
        return None
    return Found(certain, likely, bool(doubtful))


def find(data: bytes, can_trap: bool = False) -> list[int]:
    """What `sites` says of a file with this content."""
    return search(data).sites(can_trap)


def search(data: bytes) -> Found:
    """The CPUID instructions in an ELF file, or in bare code where `data` is no ELF file."""
    try:
        elf = parse(data)
        functions, ranges = _Functions(elf), elf.code()
    except ElfError:
        functions, ranges = None, [(0, len(data))]
    certain, likely = set[int](), set[int]()
    doubtful = False
    for start, end in ranges:
        at = data.find(CPUID, start, end)
        while at >= 0:
            arrived = _from_its_function(data, functions, at)
            if arrived:
                certain.add(at)
            elif arrived is None:
                votes = _votes(data, start, at)
                if _is_likely(functions, votes, at):
                    likely.add(at)
                elif _is_doubtful(votes) and _goes_on(data, at):
                    doubtful = True
            at = data.find(CPUID, at + 1, end)
    return Found(tuple(sorted(certain)), tuple(sorted(likely)), doubtful)


def _read(fd: int, size: int) -> bytes:
    parts, at = [], 0
    while at < size and (part := os.pread(fd, min(size - at, 1 << 24), at)):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def _from_its_function(data: bytes, functions: _Functions | None, at: int) -> bool | None:
    """Whether the bytes are an instruction of the function around them; None where that is not known."""
    start = functions.around(at) if functions else None
    if start is None or not 0 <= at - start <= _FUNCTION_MAX:
        return None
    return _arrives(data, start, at)


def _votes(data: bytes, lowest: int, at: int) -> list[bool | None]:
    """Whether decoding arrives, from each start before the bytes, the nearest first."""
    return [_arrives(data, at - before, at) for before in range(1, _BEFORE_MAX) if at - before >= lowest]


def _is_likely(functions: _Functions | None, votes: list[bool | None], at: int) -> bool:
    if functions and functions.around(at) is None and functions.are_most_code:
        return False
    decided = [vote for vote in votes[_BEFORE_MIN - 1 :] if vote is not None]
    return bool(decided) and sum(decided) >= _SYNC_RATIO * len(decided)


def _is_doubtful(votes: list[bool | None]) -> bool:
    """Whether the bytes may be an instruction nevertheless."""
    near = votes[:_NEAR]
    return votes.count(True) >= _DOUBT_RATIO * len(votes) or near.count(True) >= len(near) / 2


def _goes_on(data: bytes, at: int) -> bool:
    """Whether code can follow from `at` on: so many instructions, or an end of the function before."""
    code = data[at : at + _AHEAD * _INSTRUCTION_MAX]
    for count, (_, _, name, _) in enumerate(_disassembler()(code, at), 1):
        if count == _AHEAD or name in _ENDS:
            return True
        if name in _PRIVILEGED:
            return False
    return False


def _arrives(data: bytes, start: int, at: int) -> bool | None:
    """Whether decoding from `start` reaches an instruction at `at`; None if it gets stuck before."""
    for address, _, name, _ in _disassembler()(data[start : at + _INSTRUCTION_MAX], start):
        if address == at:
            return name == "cpuid"
        if address > at:
            return False
    return None


class _Functions:
    """Where a file's functions begin: by the unwind tables, or else by the symbols."""

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self._frames = list(_frames(elf))

    def around(self, at: int) -> int | None:
        """The file offset where the function around file offset `at` begins, if one is known."""
        segment = next((s for s in self._elf.loads() if s.offset <= at < s.offset + s.filesz), None)
        if segment is None:
            return None
        address = at - segment.offset + segment.vaddr
        for frames in self._frames:
            index = bisect.bisect_right(range(len(frames)), address, key=frames.start) - 1
            if index >= 0 and address < frames.start(index) + frames.size(index):
                return self._elf.file_offset(frames.start(index))
        index = bisect.bisect_right(self._symbols, (address, sys.maxsize)) - 1
        while index >= 0 and self._ends[index] > address:
            start, size = self._symbols[index]
            if address < start + max(size, 1):
                return self._elf.file_offset(start)
            index -= 1
        return None

    @functools.cached_property
    def _symbols(self) -> list[tuple[int, int]]:
        return self._elf.functions()

    @functools.cached_property
    def _ends(self) -> list[int]:
        """How far this symbol and those before it reach."""
        return list(itertools.accumulate((start + max(size, 1) for start, size in self._symbols), max))

    @functools.cached_property
    def are_most_code(self) -> bool:
        if self._frames and not self._elf.is_stripped():
            return True
        described = sum(frames.size(i) for frames in self._frames for i in range(len(frames)))
        return described >= _MOSTLY * sum(end - start for start, end in self._elf.code())


class _Frames:
    """The sorted table of an .eh_frame_hdr: starts and sizes of functions, as linked, in bytes."""

    def __init__(self, elf: Elf, vaddr: int, table: int, count: int) -> None:
        self._elf, self._vaddr, self._table, self._count = elf, vaddr, table, count

    def __len__(self) -> int:
        return self._count

    def _entry(self, index: int, field: int) -> int:
        (value,) = struct.unpack_from("<i", self._elf.data, self._table + 8 * index + field)
        return self._vaddr + int(value)

    def start(self, index: int) -> int:
        return self._entry(index, 0)

    def size(self, index: int) -> int:
        frame = self._elf.file_offset(self._entry(index, 4))
        if frame is None or frame + _FRAME_RANGE + 4 > len(self._elf.data):
            return 0
        return int(struct.unpack_from("<I", self._elf.data, frame + _FRAME_RANGE)[0])


def _frames(elf: Elf) -> Iterator[_Frames]:
    for header in elf.segments:
        if header.type != PT_GNU_EH_FRAME:
            continue
        try:
            *encodings, _, count = _EH_FRAME_HDR.unpack_from(elf.data, header.offset)
        except (struct.error, OverflowError):
            continue
        table = header.offset + _EH_FRAME_HDR.size
        if tuple(encodings) == _EH_SORTED_TABLE and count and table + 8 * count <= len(elf.data):
            yield _Frames(elf, header.vaddr, table, count)


@functools.cache
def _disassembler() -> _Disassemble:
    import capstone

    engine: _Disassemble = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64).disasm_lite
    return engine
