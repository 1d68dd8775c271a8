"""Where a file's code has CPUID instructions.

Where the processor cannot make CPUID trap, each of them becomes an invalid instruction (ce a2) in the
program's memory and the core answers in its place. A wrong site would break the program, so two bytes that
look like CPUID count only in executable sections and when disassembling from the start of their function
arrives exactly there. In a file that describes most of its code as functions, what lies in none of them is
taken for data; in any other almost every start a little before the bytes must arrive.

What was found is kept between runs (`filecache`).
"""

from __future__ import annotations

import bisect
import os
import struct
from collections.abc import Callable, Iterator

from interposer.elf import PT_GNU_EH_FRAME, Elf, ElfError, parse
from interposer.filecache import FileCache

CPUID = b"\x0f\xa2"
INVALID = b"\xce\xa2"

_CACHE = "cpuid-2"
_CACHE_LEAST = 1 << 16
_FUNCTION_MAX = 1 << 20
_BEFORE_MIN, _BEFORE_MAX = 16, 64
_SYNC_RATIO = 0.8
_EH_FRAME_HDR = struct.Struct("<BBBBiI")
_EH_SORTED_TABLE = (1, 0x1B, 0x03, 0x3B)
_MOSTLY = 0.5
_FRAME_RANGE = 12
"""Where a frame description with 4-byte pointers has the size of its function."""

_Disassemble = Callable[[bytes, int], Iterator[tuple[int, int, str, str]]]
_known: dict[tuple[int, int, int, int], tuple[int, ...]] = {}


def in_mapping(fd: int, offset: int, length: int) -> list[int]:
    """The file offsets of the CPUID instructions in bytes [offset, offset + length) of the file.

    Raises OSError when the file cannot be read.
    """
    return [site for site in sites(fd) if offset <= site and site + len(CPUID) <= offset + length]


def is_elf(fd: int) -> bool:
    """Whether the file may be an ELF file; any other is searched for code only where it is mapped as such."""
    return os.pread(fd, 4, 0) == b"\x7fELF"


def sites(fd: int) -> tuple[int, ...]:
    """The file offsets of all CPUID instructions of the file, ascending."""
    status = os.fstat(fd)
    key = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
    found = _known.get(key)
    if found is None:
        cache = FileCache(_CACHE)
        found = _parse(cache.get(status))
        if found is None:
            data = _read(fd, status.st_size)
            found = tuple(find(data))
            if found or len(data) >= _CACHE_LEAST:
                cache.put(status, " ".join(map(str, found)))
        _known[key] = found
    return found


def _parse(fact: str | None) -> tuple[int, ...] | None:
    if fact is None:
        return None
    try:
        return tuple(int(word) for word in fact.split())
    except ValueError:
        return None


def find(data: bytes) -> list[int]:
    """The offsets of the CPUID instructions in an ELF file, or in bare code where `data` is no ELF file."""
    try:
        elf = parse(data)
        ranges = elf.code()
    except ElfError:
        elf, ranges = None, [(0, len(data))]
    found = []
    described: list[bool] = []
    for start, end in ranges:
        at = data.find(CPUID, start, end)
        while at >= 0:
            if _is_instruction(data, elf, start, at, described):
                found.append(at)
            at = data.find(CPUID, at + 1, end)
    return sorted(set(found))


def _read(fd: int, size: int) -> bytes:
    parts, at = [], 0
    while at < size and (part := os.pread(fd, min(size - at, 1 << 24), at)):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def _is_instruction(data: bytes, elf: Elf | None, segment_start: int, at: int, described: list[bool]) -> bool:
    """`described` keeps, once it was needed, whether most of the file's code is described as functions."""
    disassemble = _disassembler()
    start = _function_start(elf, at) if elf else None
    if start is None and elf:
        if not described:
            described.append(_describes_its_code(elf))
        if described[0]:
            return False
    if start is not None and 0 <= at - start <= _FUNCTION_MAX:
        arrived = _arrives(disassemble, data, start, at)
        if arrived is not None:
            return arrived
    votes = [
        _arrives(disassemble, data, at - before, at)
        for before in range(_BEFORE_MIN, _BEFORE_MAX)
        if at - before >= segment_start
    ]
    decided = [vote for vote in votes if vote is not None]
    return bool(decided) and sum(decided) >= _SYNC_RATIO * len(decided)


def _arrives(disassemble: _Disassemble, data: bytes, start: int, at: int) -> bool | None:
    """Whether decoding from `start` reaches an instruction at `at`; None if it gets stuck before."""
    here = start
    for address, size, name, _ in disassemble(data[start : at + len(CPUID)], start):
        if address == at:
            return name == "cpuid"
        if address > at:
            return False
        here = address + size
    return False if here > at else None


def _function_start(elf: Elf, at: int) -> int | None:
    """The file offset where the function around file offset `at` begins, if one is known."""
    segment = next((s for s in elf.loads() if s.offset <= at < s.offset + s.filesz), None)
    if segment is None:
        return None
    address = at - segment.offset + segment.vaddr
    for frames in _frames(elf):
        index = bisect.bisect_right(range(len(frames)), address, key=frames.start) - 1
        if index >= 0 and address < frames.start(index) + frames.size(index):
            return elf.file_offset(frames.start(index))
    try:
        starts = (
            s.value for s in elf.symbols() if s.is_function and s.value <= address < s.value + max(s.size, 1)
        )
        start = max(starts, default=None)
    except ElfError:
        return None
    return elf.file_offset(start) if start is not None else None


def _describes_its_code(elf: Elf) -> bool:
    tables = list(_frames(elf))
    if tables and not elf.is_stripped():
        return True
    described = sum(frames.size(i) for frames in tables for i in range(len(frames)))
    return described >= _MOSTLY * sum(end - start for start, end in elf.code())


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


def _disassembler() -> _Disassemble:
    import capstone

    engine: _Disassemble = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64).disasm_lite
    return engine
