"""Just enough of ELF64 to place the core and to find functions: headers, symbols, the table of frames.

Reads from any buffer (a mapped file, bytes). Hostile or truncated input raises ElfError and nothing else.
Debugging information is not its business.
"""

import mmap
import struct
from collections.abc import Iterator
from typing import NamedTuple

Buffer = bytes | bytearray | memoryview | mmap.mmap

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC = struct.Struct("<qQ")

PT_LOAD = 1
PT_DYNAMIC = 2
PT_INTERP = 3
PT_GNU_EH_FRAME = 0x6474E550
PF_X, PF_W, PF_R = 1, 2, 4
_SHT_SYMTAB, _SHT_DYNSYM, _SHT_NOBITS = 2, 11, 8
_SHF_EXECINSTR = 4
_STT_FUNC, _STT_IFUNC = 2, 10
_DT_NULL, _DT_NEEDED, _DT_STRTAB = 0, 1, 5
_NAME_MAX, _DYNAMIC_MAX = 256, 65536
_MAGIC = b"\x7fELF"
ELFCLASS32, ELFCLASS64 = 1, 2
EM_X86_64 = 62


class ElfError(Exception):
    """The bytes are not an ELF64 file for x86-64, or contradict themselves."""


class Segment(NamedTuple):
    """One program header; addresses are as linked, sizes in bytes."""

    type: int
    flags: int
    offset: int
    vaddr: int
    filesz: int
    memsz: int


class Symbol(NamedTuple):
    name: str
    value: int
    size: int
    is_function: bool
    is_chosen: bool = False
    """An indirect function: which code it is, the dynamic linker asks when it loads the file."""


class Elf(NamedTuple):
    """The headers of one ELF64 file over the buffer they came from."""

    data: Buffer
    type: int
    entry: int
    segments: tuple[Segment, ...]
    section_offset: int
    section_count: int

    def loads(self) -> tuple[Segment, ...]:
        return tuple(s for s in self.segments if s.type == PT_LOAD)

    def interpreter(self) -> str | None:
        """The dynamic linker it asks for, None for a static program."""
        for segment in self.segments:
            if segment.type == PT_INTERP:
                name = bytes(self.data[segment.offset : segment.offset + min(segment.filesz, 4096)])
                return name.split(b"\0")[0].decode(errors="surrogateescape")
        return None

    def needed(self) -> list[str]:
        """The names of the libraries it is linked with, empty for a static program."""
        names: list[int] = []
        strings: int | None = None
        for segment in self.segments:
            if segment.type != PT_DYNAMIC:
                continue
            for at in range(
                segment.offset, segment.offset + min(segment.filesz, _DYNAMIC_MAX), _DYNAMIC.size
            ):
                tag, value = _unpack(_DYNAMIC, self.data, at)
                if tag == _DT_NULL:
                    break
                if tag == _DT_NEEDED:
                    names.append(value)
                elif tag == _DT_STRTAB:
                    strings = self.file_offset(value)
        if strings is None:
            return []
        return [_name(self.data, strings + name) for name in names]

    def file_offset(self, vaddr: int) -> int | None:
        """Where the byte at linked address `vaddr` stands in the file; None if it comes from no file byte."""
        for segment in self.segments:
            if segment.type == PT_LOAD and segment.vaddr <= vaddr < segment.vaddr + segment.filesz:
                return vaddr - segment.vaddr + segment.offset
        return None

    def code(self) -> list[tuple[int, int]]:
        """The file offsets [start, end) that hold code: executable sections, or segments where it has none.

        An executable segment alone says little: linkers put symbol tables and constants into it, too.
        """
        size = len(self.data)
        found = [
            (offset, min(offset + length, size))
            for _, type_, flags, _, offset, length, *_ in self._sections()
            if flags & _SHF_EXECINSTR and type_ != _SHT_NOBITS
        ]
        return found or [(s.offset, min(s.offset + s.filesz, size)) for s in self.loads() if s.flags & PF_X]

    def _sections(self) -> list[tuple[int, ...]]:
        return [
            _unpack(_SECTION, self.data, self.section_offset + i * _SECTION.size)
            for i in range(self.section_count)
        ]

    def is_stripped(self) -> bool:
        """Whether it has no full symbol table."""
        return all(section[1] != _SHT_SYMTAB for section in self._sections())

    def symbols(self) -> Iterator[Symbol]:
        """The full symbol table, or the dynamic one where that is all there is."""
        sections = self._sections()
        for _, _, _, _, offset, size, link, *_ in self._symbol_tables(sections):
            if link >= len(sections):
                raise ElfError(f"symbol table links to section {link} of {len(sections)}")
            yield from self._table(offset, size, sections[link][4], sections[link][5])

    def functions(self) -> list[tuple[int, int]]:
        """Linked address and size of each function that `symbols` has, ascending; much faster than these."""
        found = []
        for _, _, _, _, offset, size, *_ in self._symbol_tables(self._sections()):
            table = bytes(self.data[offset : offset + size])
            table = table[: len(table) // _SYMBOL.size * _SYMBOL.size]
            found += [
                (value, length)
                for _, info, _, _, value, length in _SYMBOL.iter_unpack(table)
                if info & 15 == _STT_FUNC
            ]
        return sorted(found)

    @staticmethod
    def _symbol_tables(sections: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """The sections of the full symbol table, or of the dynamic one where there is no other."""
        for wanted in (_SHT_SYMTAB, _SHT_DYNSYM):
            if tables := [s for s in sections if s[1] == wanted]:
                return tables
        return []

    def address(self, name: str) -> int | None:
        """The value of symbol `name` of the full symbol table; None where the table has no such string of
        its own. Does not look at any other name."""
        sections = self._sections()
        for _, kind, _, _, offset, size, link, *_ in sections:
            if kind == _SHT_SYMTAB and link < len(sections):
                _, _, _, _, names, names_size, *_ = sections[link]
                at = bytes(self.data[names : names + names_size]).find(b"\0" + name.encode() + b"\0") + 1
                table = bytes(self.data[offset : offset + size // _SYMBOL.size * _SYMBOL.size])
                if at:
                    return next((value for of, *_, value, _ in _SYMBOL.iter_unpack(table) if of == at), None)
        return None

    def _table(self, offset: int, size: int, names: int, names_size: int) -> Iterator[Symbol]:
        strings = bytes(self.data[names : names + names_size])
        for at in range(offset, offset + size - _SYMBOL.size + 1, _SYMBOL.size):
            name, info, _, _, value, length = _unpack(_SYMBOL, self.data, at)
            text = strings[name : strings.find(b"\0", name)].decode(errors="replace")
            yield Symbol(text, value, length, info & 15 == _STT_FUNC, info & 15 == _STT_IFUNC)


def _unpack(layout: struct.Struct, data: Buffer, offset: int) -> tuple[int, ...]:
    try:
        return layout.unpack_from(data, offset)
    except (struct.error, OverflowError):
        raise ElfError(
            f"truncated: {layout.size} bytes needed at {offset}, the file has {len(data)}"
        ) from None


def _name(data: Buffer, offset: int) -> str:
    return bytes(data[offset : offset + _NAME_MAX]).split(b"\0")[0].decode(errors="replace")


def parse(data: Buffer) -> Elf:
    """Read the headers. Raises ElfError for anything but a little-endian x86-64 ELF64 file."""
    if bytes(data[:4]) != _MAGIC:
        raise ElfError("not an ELF file")
    if len(data) < _HEADER.size:
        raise ElfError(f"truncated: an ELF header has {_HEADER.size} bytes, found {len(data)}")
    ident, kind, machine, _, entry, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum, _ = (
        _HEADER.unpack_from(data, 0)
    )
    if ident[4] != ELFCLASS64 or ident[5] != 1 or machine != EM_X86_64:
        raise ElfError(f"class {ident[4]}, machine {machine}: not little-endian x86-64")
    if phnum and phentsize != _PROGRAM.size:
        raise ElfError(f"program headers of {phentsize} bytes, expected {_PROGRAM.size}")
    segments = []
    for i in range(phnum):
        type_, flags, offset, vaddr, _, filesz, memsz, _ = _unpack(_PROGRAM, data, phoff + i * phentsize)
        segments.append(Segment(type_, flags, offset, vaddr, filesz, memsz))
    usable = shentsize == _SECTION.size and shoff + shnum * shentsize <= len(data)
    return Elf(data, kind, entry, tuple(segments), shoff, shnum if usable else 0)
