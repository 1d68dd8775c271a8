"""An image as execve left it, before its first instruction: all a replay needs to lay out the same one.

Nothing here is the recorder's or the trace's own type, so that the interposer stays below both.
"""

import resource
import struct
from typing import NamedTuple

from interposer import procfs
from interposer.errors import Gone, InjectError
from interposer.ptrace import Memory

_PAGE = 4096
_AT_NULL = 0
_TEXT_LIMIT = 1 << 20


class Page(NamedTuple):
    """Bytes of a file mapping that are not the file's any more (the kernel cleared the end of the data)."""

    address: int
    data: bytes


class ImageState(NamedTuple):
    """One address space at its exec stop. Addresses are the program's own."""

    mappings: list[procfs.Mapping]
    entry: int
    stack_pointer: int
    stack: bytes
    """From the stack pointer to the top of the stack mapping."""
    auxv: list[tuple[int, int]]
    argv: list[str]
    envp: list[str]
    brk: int
    comm: str
    ppid: int
    exe: str
    cwd: str
    changed: list[Page]
    stack_limit: int
    """Bytes the main stack may grow to (RLIM_INFINITY: 2**64 - 1); 0 where that cannot be asked."""

    @property
    def stack_mapping(self) -> procfs.Mapping:
        return next(m for m in self.mappings if m.start <= self.stack_pointer < m.end)


def capture(pid: int, entry: int, stack_pointer: int, memory: Memory) -> ImageState:
    """Read everything of `pid`, which is at its exec stop. `memory` is its memory.

    Raises Gone or OSError when it is no more, InjectError when its stack makes no sense.
    """
    mappings = procfs.mappings(pid)
    if not mappings:
        raise Gone(pid)
    top = next((m.end for m in mappings if m.start <= stack_pointer < m.end), 0)
    stack = _read(memory, stack_pointer, top - stack_pointer) if top else b""
    try:
        argv_at, envp_at, auxv = _parse_stack(stack)
    except (struct.error, ValueError) as error:
        raise InjectError(f"the initial stack of process {pid} is not understood: {error}") from None
    stat = procfs.stat(pid)
    return ImageState(
        mappings,
        entry,
        stack_pointer,
        stack,
        auxv,
        _strings(stack, stack_pointer, argv_at),
        _strings(stack, stack_pointer, envp_at),
        stat.brk,
        stat.comm,
        stat.ppid,
        procfs.link(pid, "exe"),
        procfs.link(pid, "cwd"),
        _changed(mappings, memory),
        _stack_limit(pid),
    )


def _stack_limit(pid: int) -> int:
    try:
        return resource.prlimit(pid, resource.RLIMIT_STACK)[0] & (2**64 - 1)
    except OSError:
        return 0


def _read(memory: Memory, address: int, size: int) -> bytes:
    parts = []
    while size > 0:
        part = memory.read(address, min(size, _TEXT_LIMIT))
        if not part:
            break
        parts.append(part)
        address += len(part)
        size -= len(part)
    return b"".join(parts)


def _parse_stack(stack: bytes) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Pointers of argv and envp, and the pairs of the auxiliary vector."""
    (argc,) = struct.unpack_from("<Q", stack)
    argv = list(struct.unpack_from(f"<{argc}Q", stack, 8)) if argc * 8 < len(stack) else []
    if len(argv) != argc:
        raise ValueError(f"argc is {argc}")
    at = 8 * (argc + 2)
    envp = []
    while (pointer := struct.unpack_from("<Q", stack, at)[0]) != 0:
        envp.append(pointer)
        at += 8
    at += 8
    auxv = []
    while (pair := struct.unpack_from("<QQ", stack, at))[0] != _AT_NULL:
        auxv.append((pair[0], pair[1]))
        at += 16
    return argv, envp, auxv


def _strings(stack: bytes, base: int, pointers: list[int]) -> list[str]:
    texts = []
    for pointer in pointers:
        at = pointer - base
        end = stack.find(b"\0", at) if 0 <= at < len(stack) else -1
        texts.append(stack[at:end].decode(errors="surrogateescape") if end >= 0 else "")
    return texts


def _changed(mappings: list[procfs.Mapping], memory: Memory) -> list[Page]:
    """The last page of each writable file mapping: the kernel cleared what follows the data."""
    return [
        Page(m.end - _PAGE, memory.read(m.end - _PAGE, _PAGE))
        for m in mappings
        if m.is_file and m.writable and m.prot[3] == "p"
    ]
