"""The core's own ELF image: what of it injection maps where, and where it jumps."""

import functools
import mmap
from pathlib import Path
from typing import NamedTuple

from interfaces import abi
from interposer import image_path
from interposer.elf import PF_W, PF_X, ElfError, parse
from interposer.errors import ImageError

_PAGE = mmap.PAGESIZE


class Part(NamedTuple):
    """One segment as it is mapped: page-aligned bytes of the file at a fixed address."""

    address: int
    offset: int
    length: int


class Image(NamedTuple):
    """The core, ready to be mapped into a program."""

    path: Path
    text: Part
    data: Part
    entry_record: int


@functools.lru_cache(maxsize=2)
def load(path: Path | None = None) -> Image:
    """Read the core's headers. Raises ImageError when it is missing or its layout is not the agreed one."""
    path = path or image_path()
    try:
        with path.open("rb", buffering=0) as file:
            content = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        with content:
            elf = parse(content)
            entry = elf.address("rr_entry_record")
    except (OSError, ValueError, ElfError) as error:
        raise _unusable(path, str(error)) from error
    loads = elf.loads()
    if len(loads) != 2 or not loads[0].flags & PF_X or not loads[1].flags & PF_W:
        raise _unusable(path, f"{len(loads)} segments, expected one of code and one of data")
    text, data = loads
    if (text.vaddr, data.vaddr) != (abi.TEXT, abi.DATA):
        raise _unusable(
            path, f"linked at {text.vaddr:#x} and {data.vaddr:#x}, not {abi.TEXT:#x} and {abi.DATA:#x}"
        )
    if text.offset % _PAGE or data.offset % _PAGE or data.memsz > _round(data.filesz):
        raise _unusable(path, "its segments cannot be mapped from the file as they are")
    if entry is None:
        raise _unusable(path, "it has no rr_entry_record")
    return Image(
        path,
        Part(text.vaddr, text.offset, _round(text.filesz)),
        Part(data.vaddr, data.offset, _round(data.filesz)),
        entry,
    )


def _round(size: int) -> int:
    return (size + _PAGE - 1) & -_PAGE


def _unusable(path: Path, why: str) -> ImageError:
    return ImageError(
        f"the core image {path} cannot be used: {why}", "Install rr-py again, or rebuild the core."
    )
