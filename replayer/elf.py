"""Just enough ELF: program headers, sections, notes - of a file, or of an image that is loaded in memory.

A module of a replaying process may have no file (its content came from the trace), so everything that
unwinding needs is read through a `Memory` at link-time addresses plus a bias; a file is only needed for
what is not loaded (.symtab, .debug_frame).
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from replayer.memory import Memory, MemoryFault

PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_GNU_EH_FRAME = 1, 2, 4, 0x6474E550
SHT_SYMTAB, SHT_NOBITS, SHT_DYNSYM = 2, 8, 11
SHF_COMPRESSED = 0x800
_HEADER_SIZE = 64
_MAX_HEADERS = 1024
_MAX_SECTION = 1 << 30


class ElfError(Exception):
    """This is no 64-bit little-endian ELF image, or its headers contradict themselves."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One program header; addresses as linked, sizes in bytes."""

    kind: int
    flags: int
    offset: int
    vaddr: int
    filesz: int
    memsz: int


@dataclass(frozen=True, slots=True)
class Section:
    """One section header."""

    name: str
    kind: int
    flags: int
    vaddr: int
    offset: int
    size: int
    link: int


class ElfImage:
    """The headers of one ELF image: of a file, or of what is loaded in memory from `base` on."""

    def __init__(self, source: Memory, base: int = 0) -> None:
        """Read the headers at `base` of `source`; ElfError when there are none, MemoryFault at a hole."""
        header = source.read(base, _HEADER_SIZE)
        if header[:6] != b"\x7fELF\x02\x01":
            raise ElfError("no 64-bit little-endian ELF image")
        self.source = source
        self.base = base
        (
            self.type, self.machine, _version, self.entry, phoff, self._shoff, _flags, _ehsize,
            phentsize, phnum, self._shentsize, self._shnum, self._shstrndx,
        ) = struct.unpack_from("<HHIQQQIHHHHHH", header, 16)  # fmt: skip
        if phnum > _MAX_HEADERS or (phnum and phentsize < 56):
            raise ElfError(f"{phnum} program headers of {phentsize} bytes")
        table = source.read(base + phoff, phnum * phentsize) if phnum else b""
        self.segments: list[Segment] = []
        for index in range(phnum):
            kind, flags, offset, vaddr, _paddr, filesz, memsz, _align = struct.unpack_from(
                "<IIQQQQQQ", table, index * phentsize
            )
            self.segments.append(Segment(kind, flags, offset, vaddr, filesz, memsz))

    @property
    def first_address(self) -> int:
        """The page the first loaded segment starts on, as linked: load address minus this is the bias."""
        return (
            min((segment.vaddr for segment in self.segments if segment.kind == PT_LOAD), default=0) & ~0xFFF
        )

    def segment(self, kind: int) -> Segment | None:
        """The first program header of a kind, or None."""
        return next((segment for segment in self.segments if segment.kind == kind), None)

    def sections(self) -> list[Section]:
        """All sections; only sensible on a file. An image stripped of section headers has none."""
        if not self._shoff or not self._shnum or self._shnum > 65000 or self._shentsize < 64:
            return []
        try:
            table = self.source.read(self.base + self._shoff, self._shnum * self._shentsize)
        except MemoryFault:
            return []
        raw = [
            struct.unpack_from("<IIQQQQII", table, index * self._shentsize) for index in range(self._shnum)
        ]
        if self._shstrndx >= len(raw):
            return []
        try:
            names = self.source.read(self.base + raw[self._shstrndx][4], min(raw[self._shstrndx][5], 1 << 20))
        except MemoryFault:
            return []
        result = []
        for name, kind, flags, vaddr, offset, size, link, _info in raw:
            text = names[name : names.find(b"\0", name)].decode("utf-8", "replace")
            result.append(Section(text, kind, flags, vaddr, offset, size, link))
        return result

    def section_bytes(self, section: Section) -> bytes:
        """A section's content, decompressed; ElfError when it is larger than 1 GB or damaged."""
        if section.kind == SHT_NOBITS:
            return b""
        if section.size > _MAX_SECTION:
            raise ElfError(f"section {section.name} has {section.size} bytes")
        try:
            data = self.source.read(self.base + section.offset, section.size)
        except MemoryFault:
            raise ElfError(f"section {section.name} lies outside the file") from None
        if not section.flags & SHF_COMPRESSED:
            return data
        if len(data) < 24:
            raise ElfError(f"section {section.name} is too short to be compressed")
        kind, _reserved, size = struct.unpack_from("<IIQ", data)
        if kind != 1 or size > _MAX_SECTION:
            raise ElfError(f"section {section.name} is compressed in an unknown way ({kind})")
        try:
            return zlib.decompressobj().decompress(data[24:], size)
        except zlib.error as error:
            raise ElfError(f"section {section.name}: {error}") from None

    def build_id(self, bias: int | None = None) -> bytes | None:
        """The GNU build id, or None. `bias` is added to linked addresses of a loaded image; None: a file."""
        for segment in self.segments:
            if segment.kind != PT_NOTE or segment.filesz > 65536:
                continue
            start = self.base + segment.offset if bias is None else segment.vaddr + bias
            try:
                notes = self.source.read(start, segment.filesz)
            except MemoryFault:
                continue
            found = _find_build_id(notes)
            if found is not None:
                return found
        return None


def _find_build_id(notes: bytes) -> bytes | None:
    position = 0
    while position + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("<III", notes, position)
        name_at = position + 12
        data_at = name_at + (name_size + 3 & ~3)
        if kind == 3 and notes[name_at : name_at + name_size] == b"GNU\0":
            return notes[data_at : data_at + size]
        position = data_at + (size + 3 & ~3)
    return None


class BytesMemory:
    """A file's bytes as a Memory; offsets are addresses. Accepts an mmap, so nothing is copied up front."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)

    def read(self, address: int, size: int) -> bytes:
        """Exactly `size` bytes at offset `address`; MemoryFault beyond the end."""
        if address < 0 or size < 0 or address + size > len(self._data):
            raise MemoryFault(address, size)
        return bytes(self._data[address : address + size])
