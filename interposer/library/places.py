"""Places in a program's modules as text: `sqlite3+0x1234 (main)`."""

from __future__ import annotations

import bisect
import os
from functools import lru_cache
from pathlib import Path

from interposer import elf


def place(path: str, offset: int) -> str:
    """A place in a module, with the function's name where the file has one."""
    if not path:
        return f"{offset:#x}"
    name = function_at(path, offset)
    return f"{os.path.basename(path)}+{offset:#x}{f' ({name})' if name else ''}"


def function_at(path: str, offset: int) -> str:
    """The function of a module that an offset lies in, "" where nothing tells."""
    starts, functions = _functions(path)
    i = bisect.bisect_right(starts, offset) - 1
    if i < 0:
        return ""
    size, name = functions[i]
    return name if offset < starts[i] + max(size, 1) else ""


@lru_cache(64)
def _functions(path: str) -> tuple[list[int], list[tuple[int, str]]]:
    try:
        symbols = elf.parse(Path(path).read_bytes()).symbols()
        found = {s.value: (s.size, s.name) for s in symbols if s.is_function and s.value}
    except (OSError, elf.ElfError):
        found = {}
    starts = sorted(found)
    return starts, [found[start] for start in starts]
