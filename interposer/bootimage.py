"""An image as execve left it, before its first instruction: all a replay needs to lay out the same one.

Nothing here is the recorder's or the trace's own type, so that the interposer stays below both.
"""

import itertools
import resource
from typing import NamedTuple

from interposer import procfs
from interposer.errors import Gone, InjectError
from interposer.ptrace import Memory

_PAGE = 4096
_AT_NULL = 0
_TEXT_LIMIT = 1 << 20
_VECTORS_USUAL = 1 << 14


class Page(NamedTuple):
    """Bytes of a file mapping that are not the file's any more (the kernel cleared the end of the data)."""

    address: int
    data: bytes


class Layout(NamedTuple):
    """What is the same for every image of a program that begins at the same addresses."""

    mappings: list[procfs.Mapping]
    changed: list[Page]


class ImageState(NamedTuple):
    """One address space at its exec stop. Addresses are the program's own."""

    layout: Layout
    entry: int
    stack_pointer: int
    stack: bytes
    """From the stack pointer to the top of the stack mapping."""
    auxv: list[tuple[int, int]]
    argv_at: list[int]
    envp_at: list[int]
    brk: int
    comm: str
    ppid: int
    exe: str
    cwd: str
    stack_limit: int
    """Bytes the main stack may grow to (RLIM_INFINITY: 2**64 - 1); 0 where that cannot be asked."""

    @property
    def mappings(self) -> list[procfs.Mapping]:
        return self.layout.mappings

    @property
    def stack_mapping(self) -> procfs.Mapping:
        return next(m for m in self.mappings if m.start <= self.stack_pointer < m.end)

    @property
    def argv(self) -> list[str]:
        return _strings(self.stack, self.stack_pointer, self.argv_at)

    @property
    def envp(self) -> list[str]:
        return _strings(self.stack, self.stack_pointer, self.envp_at)


def look(pid: int, maps: bytes, memory: Memory) -> Layout:
    """The layout of `pid`, which is at its exec stop; `maps` is its maps file. Raises Gone or OSError."""
    mappings = procfs.parse_maps(maps.decode(errors="surrogateescape"))
    if not mappings:
        raise Gone(pid)
    return Layout(mappings, _changed(mappings, memory))


def capture(
    pid: int, entry: int, stack_pointer: int, memory: Memory, layout: Layout | None = None
) -> ImageState:
    """Read everything of `pid`, which is at its exec stop. `memory` is its memory, `layout` its layout where
    that is known.

    Raises Gone or OSError when it is no more, InjectError when its stack makes no sense.
    """
    layout = layout or look(pid, procfs.maps(pid), memory)
    top = next((m.end for m in reversed(layout.mappings) if m.start <= stack_pointer < m.end), 0)
    stack = _read(memory, stack_pointer, top - stack_pointer) if top else b""
    try:
        argv_at, envp_at, auxv = _parse_stack(stack)
    except (ValueError, IndexError) as error:
        raise InjectError(f"the initial stack of process {pid} is not understood: {error}") from None
    stat = procfs.stat(pid)
    return ImageState(
        layout,
        entry,
        stack_pointer,
        stack,
        auxv,
        argv_at,
        envp_at,
        stat.brk,
        stat.comm,
        stat.ppid,
        procfs.link(pid, "exe"),
        procfs.link(pid, "cwd"),
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
    """Pointers of argv and envp, and the pairs of the auxiliary vector.

    Raises ValueError or IndexError where it is no stack that execve has made.
    """
    try:
        return _parse_words(stack, _VECTORS_USUAL)
    except (ValueError, IndexError):
        return _parse_words(stack, len(stack))


def _parse_words(stack: bytes, most: int) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """The same, as far as it lies in the first bytes, `most` of them."""
    words = memoryview(stack)[: min(len(stack), most) & -8].cast("Q").tolist()
    argc = words[0]
    if words[argc + 1]:
        raise ValueError(f"argc is {argc}")
    end = words.index(0, argc + 2)
    at = end + 1
    auxv = []
    while words[at] != _AT_NULL:
        auxv.append((words[at], words[at + 1]))
        at += 2
    return words[1 : argc + 1], words[argc + 2 : end], auxv


def _strings(stack: bytes, base: int, pointers: list[int]) -> list[str]:
    """The texts that pointers into the stack lead to: as execve leaves them, one behind the other."""
    if not pointers:
        return []
    start = pointers[0] - base
    if 0 <= start < len(stack):
        texts = stack[start:].split(b"\0", len(pointers))[:-1]
        ends = itertools.accumulate((len(text) + 1 for text in texts), initial=pointers[0])
        if [at for at, _ in zip(ends, texts, strict=False)] == pointers:
            return b"\0".join(texts).decode(errors="surrogateescape").split("\0")
    found = []
    for pointer in pointers:
        at = pointer - base
        end = stack.find(b"\0", at) if 0 <= at < len(stack) else -1
        found.append(stack[at:end].decode(errors="surrogateescape") if end >= 0 else "")
    return found


def _changed(mappings: list[procfs.Mapping], memory: Memory) -> list[Page]:
    """The last page of each writable file mapping: the kernel cleared what follows the data."""
    return [
        Page(m.end - _PAGE, memory.read(m.end - _PAGE, _PAGE))
        for m in mappings
        if m.is_file and m.writable and m.prot[3] == "p"
    ]
