"""Names for addresses: the modules of an address space and their symbol tables.

A module's names come from the best file that is the same build as what is loaded (same build id, or the
same ELF header where there is none): the mapped file itself, a separate debug file, the compressed mini
table inside it; failing all, from the dynamic symbols in the process's own memory.
"""

from __future__ import annotations

import lzma
import mmap
import os
import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from replayer.cfi import CfiError, EhFrame, ScannedFrame
from replayer.elf import (
    PT_DYNAMIC,
    PT_GNU_EH_FRAME,
    SHT_DYNSYM,
    SHT_SYMTAB,
    BytesMemory,
    ElfError,
    ElfImage,
    Section,
)
from replayer.memory import CachedMemory, Mapping, Memory, MemoryFault

DEBUG_FOLDERS = ("/usr/lib/debug", "/usr/local/lib/debug")
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_NAMED_TYPES = (0, 2, 10)  # NOTYPE, FUNC, GNU_IFUNC
_MAX_MINI = 64 << 20
_MAX_DYNAMIC = 1 << 20

Opener = Callable[[str], int | None]
"""Gives a descriptor of the file that a mapping's path stands for, or None; the caller closes it."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name and how far behind its start an address lies (bytes)."""

    name: str
    offset: int

    def __str__(self) -> str:
        return f"{self.name}+{self.offset:#x}" if self.offset else self.name


class SymbolTable:
    """Function symbols by address, as linked."""

    def __init__(self, symbols: np.ndarray, strings: bytes) -> None:
        """`symbols` of the ELF form; undefined ones, and those that name no code, are left out."""
        kind = symbols["info"] & 0xF
        keep = (symbols["section"] != 0) & (symbols["value"] != 0) & np.isin(kind, _NAMED_TYPES)
        chosen = symbols[keep]
        # At one address the last wins: functions before bare labels, global before local, sized before not.
        rank = (
            ((chosen["info"] & 0xF) != 0).astype(np.uint8) * 4
            + ((chosen["info"] >> 4) == 1).astype(np.uint8) * 2
            + (chosen["size"] != 0)
        )
        chosen = chosen[np.lexsort((rank, chosen["value"]))]
        self._values = chosen["value"].astype(np.uint64)
        self._sizes = chosen["size"].astype(np.uint64)
        self._names = chosen["name"]
        self._strings = strings

    def __len__(self) -> int:
        return len(self._values)

    def find(self, address: int) -> Symbol | None:
        """The symbol whose code holds the linked address, or None."""
        index = int(np.searchsorted(self._values, np.uint64(address), side="right")) - 1
        for candidate in range(index, max(index - 8, -1), -1):
            start, size = int(self._values[candidate]), int(self._sizes[candidate])
            if address < start + size or (size == 0 and candidate == index):
                name = self._name(int(self._names[candidate]))
                if name:
                    return Symbol(name, address - start)
        return None

    def address_of(self, name: str) -> int | None:
        """The linked address of the function `name`, or None."""
        wanted = name.encode()
        for index in range(len(self._values)):
            start = int(self._names[index])
            if self._strings[start : start + len(wanted) + 1] == wanted + b"\0":
                return int(self._values[index])
        return None

    def _name(self, start: int) -> str:
        end = self._strings.find(b"\0", start)
        text = self._strings[start:end] if end >= 0 else b""
        return text.split(b"@", 1)[0].decode("utf-8", "replace")


def _table_of_sections(image: ElfImage, sections: Sequence[Section], kind: int) -> SymbolTable | None:
    """The symbol table of a section type in a file, None when there is none (or it is empty)."""
    for section in sections:
        if section.kind != kind or section.link >= len(sections):
            continue
        data = image.section_bytes(section)
        strings = image.section_bytes(sections[section.link])
        table = SymbolTable(np.frombuffer(data[: len(data) // 24 * 24], _SYMBOL), strings)
        if len(table):
            return table
    return None


class _File:
    """An ELF file mapped into this process."""

    def __init__(self, descriptor: int) -> None:
        """Takes the descriptor over. ElfError, OSError or ValueError when it is no ELF file."""
        try:
            self._map = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        try:
            self.image = ElfImage(BytesMemory(memoryview(self._map)))
        except MemoryFault:
            raise ElfError("the file is shorter than its ELF header") from None
        self.sections = self.image.sections()

    def section(self, name: str) -> bytes:
        """A section's bytes, empty when there is none."""
        for section in self.sections:
            if section.name == name:
                return self.image.section_bytes(section)
        return b""

    def symbols(self) -> SymbolTable | None:
        """The richest table of the file: .symtab, else the mini table joined with nothing, else .dynsym."""
        found = _table_of_sections(self.image, self.sections, SHT_SYMTAB)
        if found is None:
            found = self._mini()
        return found or _table_of_sections(self.image, self.sections, SHT_DYNSYM)

    def _mini(self) -> SymbolTable | None:
        packed = self.section(".gnu_debugdata")
        if not packed:
            return None
        try:
            data = lzma.LZMADecompressor().decompress(packed, _MAX_MINI)
            image = ElfImage(BytesMemory(data))
        except (lzma.LZMAError, ElfError, MemoryFault):
            return None
        return _table_of_sections(image, image.sections(), SHT_SYMTAB)


def open_path(path: str) -> int | None:
    """The opener for paths that are what they say."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None


class Module:
    """One ELF image in an address space, and what is known about its code."""

    def __init__(
        self, memory: Memory, path: str, mappings: Sequence[Mapping], opener: Opener = open_path
    ) -> None:
        """`mappings` are those of one file, by address; ElfError or MemoryFault without an ELF header."""
        self.path = path
        self.start = mappings[0].start
        self.end = mappings[-1].end
        self._memory = CachedMemory(memory)
        self._opener = opener
        self._image = ElfImage(self._memory, self.start)
        self.bias = self.start - self._image.first_address
        self._frames: list[EhFrame | ScannedFrame] | None = None
        self._symbols: SymbolTable | None = None
        self._symbols_read = False
        self._file: _File | None = None
        self._file_read = False

    @property
    def name(self) -> str:
        """The last part of the path, for people."""
        return os.path.basename(self.path) or self.path

    def symbol(self, address: int) -> Symbol | None:
        """The function at a run-time address, or None."""
        if not self._symbols_read:
            self._symbols_read = True
            self._symbols = self._find_symbols()
        return self._symbols.find(address - self.bias) if self._symbols is not None else None

    def frames(self) -> list[EhFrame | ScannedFrame]:
        """The call-frame tables, best first: .eh_frame, then .debug_frame of the file."""
        if self._frames is None:
            self._frames = []
            segment = self._image.segment(PT_GNU_EH_FRAME)
            if segment is not None and 12 <= segment.memsz <= 1 << 28:
                with suppress(CfiError, MemoryFault):
                    self._frames.append(EhFrame(self._memory, segment.vaddr + self.bias, segment.memsz))
            self._frames.extend(self._scanned_frames())
        return self._frames

    def _scanned_frames(self) -> list[ScannedFrame]:
        """What only the file's section headers lead to."""
        file = self._own_file()
        if file is None:
            return []
        found = []
        with suppress(ElfError, CfiError, MemoryFault):
            frame = next((section for section in file.sections if section.name == ".eh_frame"), None)
            if not self._frames and frame is not None and frame.vaddr:
                found.append(ScannedFrame(self._memory, frame.vaddr + self.bias, frame.size, eh=True))
        with suppress(ElfError, CfiError, MemoryFault):
            data = file.section(".debug_frame")
            if data:
                found.append(ScannedFrame(BytesMemory(data), 0, len(data), eh=False, bias=self.bias))
        return found

    def _own_file(self) -> _File | None:
        """The mapped file, if it still is the build that is loaded."""
        if not self._file_read:
            self._file_read = True
            descriptor = self._opener(self.path)
            if descriptor is not None:
                self._file = self._matching(descriptor)
        return self._file

    def _matching(self, descriptor: int, header_too: bool = True) -> _File | None:
        """The file behind a descriptor (taken over) if it is the build that is loaded, else None."""
        try:
            file = _File(descriptor)
        except (ElfError, OSError, ValueError):
            return None
        mine = self._image.build_id(self.bias)
        if mine is not None:
            return file if file.image.build_id() == mine else None
        same = file.image.segments == self._image.segments and file.image.entry == self._image.entry
        return file if header_too and same else None

    def _find_symbols(self) -> SymbolTable | None:
        file = self._own_file()
        weak: SymbolTable | None = None
        if file is not None:
            try:
                found = _table_of_sections(file.image, file.sections, SHT_SYMTAB)
                if found is not None:
                    return found
                weak = file.symbols()
            except ElfError:
                weak = None
        return self._separate_symbols() or weak or self._dynamic_symbols()

    def _separate_symbols(self) -> SymbolTable | None:
        identity = self._image.build_id(self.bias)
        if identity is None:
            return None
        text = identity.hex()
        for folder in DEBUG_FOLDERS:
            descriptor = open_path(f"{folder}/.build-id/{text[:2]}/{text[2:]}.debug")
            file = self._matching(descriptor, header_too=False) if descriptor is not None else None
            if file is not None:
                try:
                    return _table_of_sections(file.image, file.sections, SHT_SYMTAB)
                except ElfError:
                    continue
        return None

    def _dynamic_symbols(self) -> SymbolTable | None:
        """From PT_DYNAMIC in memory: DT_STRTAB 5, DT_SYMTAB 6, DT_STRSZ 10; strings follow the symbols."""
        segment = self._image.segment(PT_DYNAMIC)
        if segment is None:
            return None
        try:
            raw = self._memory.read(segment.vaddr + self.bias, min(segment.memsz, 65536) // 16 * 16)
            tags = dict(struct.iter_unpack("<QQ", raw))
            strings_at, symbols_at, size = tags[5], tags[6], tags[10]
            if strings_at < self.start:
                strings_at, symbols_at = strings_at + self.bias, symbols_at + self.bias
            count = (strings_at - symbols_at) // 24
            if not 0 < count <= _MAX_DYNAMIC or size > 24 * _MAX_DYNAMIC:
                return None
            symbols = self._memory.read(symbols_at, count * 24)
            strings = self._memory.read(strings_at, size)
        except (KeyError, MemoryFault):
            return None
        table = SymbolTable(np.frombuffer(symbols, _SYMBOL), strings)
        return table if len(table) else None


class Modules:
    """All ELF images of an address space, as mapped now; `previous` lends modules where nothing moved."""

    def __init__(
        self,
        memory: Memory,
        mappings: Sequence[Mapping],
        opener: Opener = open_path,
        previous: Modules | None = None,
    ) -> None:
        self._memory = memory
        self._opener = opener
        self._groups = _by_file(mappings)
        self._starts = [group[0].start for group in self._groups]
        self._modules: dict[tuple[str, int, int], Module | None] = (
            previous._modules if previous is not None else {}
        )

    def at(self, address: int) -> Module | None:
        """The module that holds `address`, or None."""
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address >= self._groups[index][-1].end:
            return None
        group = self._groups[index]
        key = (group[0].path, group[0].start, group[-1].end)
        if key not in self._modules:
            try:
                self._modules[key] = Module(self._memory, key[0], group, self._opener)
            except (ElfError, MemoryFault):
                self._modules[key] = None
        return self._modules[key]


def _by_file(mappings: Sequence[Mapping]) -> list[list[Mapping]]:
    """Neighbouring mappings of one file, each group starting at file offset 0."""
    groups: list[list[Mapping]] = []
    for mapping in mappings:
        if not mapping.path or (mapping.path.startswith("[") and mapping.path != "[vdso]"):
            continue
        group = groups[-1] if groups else None
        if group is not None and group[0].path == mapping.path and mapping.offset > group[0].offset:
            group.append(mapping)
        else:
            groups.append([mapping])
    return groups
