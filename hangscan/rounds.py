"""Whether two places of one activation lie in one loop: what follows a loop is no part of it."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from interposer.elf import Elf, ElfError, parse
from replayer.backtrace import StackFrame

_FAR = 1 << 16
"""How far behind a place the jump back is looked for, in bytes."""


def in_one_loop(one: StackFrame, other: StackFrame) -> bool:
    """Whether a loop's body holds both places, which two stacks show of the same activation. True as well
    where neither code nor source can be read."""
    if one.kind == "python":
        return one.file != other.file or _statements(
            one.file, min(one.line, other.line), max(one.line, other.line)
        )
    if one.module != other.module or not one.offset or not other.offset:
        return True
    return _jumps(one.module, min(one.offset, other.offset), max(one.offset, other.offset))


@functools.lru_cache(maxsize=256)
def _statements(file: str, first: int, last: int) -> bool:
    """Python: a statement that loops spans both lines."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return True
    return any(
        node.lineno <= first and last <= (node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.While | ast.For | ast.AsyncFor)
    )


@functools.lru_cache(maxsize=256)
def _jumps(module: str, first: int, last: int) -> bool:
    """Machine code: something behind the last place jumps back to before the first one. Both are return
    addresses, as linked, and so where instructions begin."""
    code = _code(module, last)
    if code is None:
        return True
    from capstone import CS_ARCH_X86, CS_MODE_64, Cs

    for address, _, name, operand in Cs(CS_ARCH_X86, CS_MODE_64).disasm_lite(code, last):
        if name.startswith("j") and operand.startswith("0x") and last <= address and int(operand, 16) < first:
            return first - int(operand, 16) < _FAR
    return False


def _code(module: str, address: int) -> bytes | None:
    """The bytes of the function around a linked address, from there on; None where they cannot be read."""
    elf = _elf(module)
    offset = elf.file_offset(address) if elf is not None else None
    if elf is None or offset is None:
        return None
    length = _FAR
    for start, size in elf.functions():
        if start <= address < start + size:
            length = min(length, start + size - address)
    return bytes(elf.data[offset : offset + length])


@functools.lru_cache(maxsize=8)
def _elf(module: str) -> Elf | None:
    try:
        return parse(Path(module).read_bytes())
    except (OSError, ElfError):
        return None
