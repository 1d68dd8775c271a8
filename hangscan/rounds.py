"""Whether two places of one activation lie in one loop: what follows a loop is no part of it."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from interposer.elf import Elf, ElfError, parse
from replayer.backtrace import StackFrame

_MOST = 20_000
"""So many instructions are followed; what is not found among them counts as reached."""
_RUN = 1 << 12
_ENDS = ("ret", "retf", "ud2", "hlt", "int3")


def in_one_loop(one: StackFrame, other: StackFrame) -> bool:
    """Whether a loop goes through both places, which two stacks show of the same activation. True as well
    where neither code nor source can be read."""
    if one.kind == "python":
        first, last = sorted((one.line, other.line))
        return one.file != other.file or _statements(one.file, first, last)
    if one.module != other.module or not one.offset or not other.offset:
        return True
    return _reaches(one.module, one.offset, other.offset) and _reaches(one.module, other.offset, one.offset)


@functools.lru_cache(maxsize=4096)
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


@functools.lru_cache(maxsize=4096)
def _reaches(module: str, start: int, goal: int) -> bool:
    """Machine code: control can come from one place, as linked, to the other without returning. What made a
    call is where that is, not where it returns to."""
    elf = _elf(module)
    if elf is None or elf.file_offset(start) is None:
        return True
    from capstone import CS_ARCH_X86, CS_MODE_64, Cs

    disassemble = Cs(CS_ARCH_X86, CS_MODE_64).disasm_lite
    called = _follows_call(elf, goal)
    seen, to_do = set[int](), [start]
    while to_do:
        at = to_do.pop()
        offset = elf.file_offset(at)
        code = bytes(elf.data[offset : offset + _RUN]) if offset is not None else b""
        for address, size, name, operand in disassemble(code, at):
            if address in seen:
                break
            seen.add(address)
            if goal == (address + size if called else address) and (called or len(seen) > 1):
                return True
            if len(seen) > _MOST:
                return True
            if name.startswith(("j", "loop")):
                if not operand.startswith("0x"):
                    return True
                to_do.append(int(operand, 16))
            if name in _ENDS or name == "jmp":
                break
            if address + size >= at + len(code) - 15:
                to_do.append(address + size)
                break
    return False


def _follows_call(elf: Elf, address: int) -> bool:
    """Whether the bytes before an address are a call, or a system call."""
    offset = elf.file_offset(address)
    code = bytes(elf.data[max(0, offset - 8) : offset]) if offset is not None else b""
    calls = code[-5:-4] == b"\xe8" or code[-2:] == b"\x0f\x05"
    return calls or any(
        code[-n] == 0xFF and code[1 - n] >> 3 & 7 == 2 for n in (2, 3, 4, 6, 7) if len(code) >= n
    )


@functools.lru_cache(maxsize=8)
def _elf(module: str) -> Elf | None:
    try:
        return parse(Path(module).read_bytes())
    except (OSError, ElfError):
        return None
