"""From the recorded image of a program to the steps by which the core lays it out again (struct rr_boot).

The kernel's own pages (vdso, vvar, vsyscall) are left out: the recorded program never used them. Everything
else appears at its recorded address, whatever this kernel's exec did.
"""

from __future__ import annotations

import bisect
import os
import resource
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from interfaces import abi
from replayer.errors import NothingToReplayError
from tracefile.records import BootImage, BootMapping

_BOOT = struct.Struct("<IIIIQQQ")
_PAGE = 4096
_PROT_READ_WRITE = 3
_MAP_SHARED = 1
_STACK_MIN = 8 << 20
_STACK_MAX = 1 << 30
_STACK_GAP = 1 << 20
_KERNEL_PAGES = ("[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]", "[uprobes]")


class Step(NamedTuple):
    """One struct rr_boot; `data` follows it, padded to 8 bytes. `prot` is that of the place written to.

    Of a STACK, `file` is the pages it has at the start, `off` its limit; 0: all of it is there at once.
    """

    op: abi.BootOp
    addr: int = 0
    len: int = 0
    prot: int = 0
    file: int = 0
    flags: int = 0
    off: int = 0
    data: bytes = b""

    def encode(self) -> bytes:
        """The bytes the core reads."""
        head = _BOOT.pack(self.op, self.prot, self.file, self.flags, self.addr, self.len, self.off)
        return head + self.data + bytes(-len(self.data) % 8)


def steps(image: BootImage, stack_limit: int | None = None) -> list[Step]:
    """The steps that lay `image` out; `stack_limit` is the bytes the main stack may grow to (None: as here).

    Raises NothingToReplayError when the image has no stack or no entry.
    """
    files, stack, start = _parts(image, stack_limit)
    return [*files.mapped, *stack, *files.patched, *start]


def plan(image: BootImage) -> bytes:
    """The bytes of these steps; those of the files are kept for the next program that maps the same."""
    files, stack, start = _parts(image, None)
    return b"".join((files.mapped_bytes, encode(stack), files.patched_bytes, encode(start)))


class _Files(NamedTuple):
    """The part of a plan that is the same for many programs. `ends`: where the mappings end, ascending."""

    mapped: list[Step]
    patched: list[Step]
    mapped_bytes: bytes
    patched_bytes: bytes
    ends: list[int]
    stack_top: int
    stack_prot: int


@lru_cache(maxsize=64)
def _files(mappings: tuple[BootMapping, ...], patches: tuple[int, ...], stack_top: int) -> _Files:
    mapped: list[Step] = []
    ends: list[int] = []
    stack_prot = _PROT_READ_WRITE
    for mapping in sorted(mappings, key=lambda mapping: mapping.start):
        if mapping.path in _KERNEL_PAGES or abi.BASE <= mapping.start < abi.END:
            continue
        if mapping.path == "[stack]" or mapping.start < stack_top <= mapping.end:
            stack_top, stack_prot = mapping.end, mapping.prot
            continue
        ends.append(mapping.end)
        mapped += _mapped(mapping)
    patched = list(_patched(mappings, patches))
    return _Files(mapped, patched, encode(mapped), encode(patched), sorted(ends), stack_top, stack_prot)


def _parts(image: BootImage, stack_limit: int | None) -> tuple[_Files, list[Step], list[Step]]:
    """What maps the files, what makes the stack, and what starts the program."""
    stack_top = image.stack_start + len(image.stack)
    try:
        entry, stack_pointer = image.regs["rip"], image.regs["rsp"]
    except KeyError as error:
        raise NothingToReplayError(f"the recorded image lacks register {error}", "Record again.") from None
    if not image.stack or not image.stack_start <= stack_pointer < stack_top:
        raise NothingToReplayError("the recorded image has no stack", "Record again.")
    files = _files(tuple(image.mappings), tuple(image.patches), stack_top)
    below = bisect.bisect_right(files.ends, image.stack_start)
    taken = files.ends[below - 1] if below else 0
    stack = [
        _stack(image, files.stack_top, files.stack_prot, taken, stack_limit),
        Step(abi.BootOp.DATA, image.stack_start, len(image.stack), files.stack_prot, data=image.stack),
    ]
    return files, stack, [Step(abi.BootOp.BRK, image.brk), Step(abi.BootOp.START, entry, stack_pointer)]


def _mapped(mapping: BootMapping) -> list[Step]:
    flags = _MAP_SHARED if mapping.flags == "s" else 0
    found = [
        Step(
            abi.BootOp.MAP, mapping.start, mapping.end - mapping.start, mapping.prot, mapping.file, flags,
            mapping.offset if mapping.file else 0,
        )
    ]  # fmt: skip
    found += [
        Step(abi.BootOp.DATA, address, len(data), mapping.prot, data=data) for address, data in mapping.data
    ]
    return found


def _patched(mappings: tuple[BootMapping, ...], patches: tuple[int, ...]) -> Iterator[Step]:
    """The CPUID instructions, with the protection of the mapping around each; 0 where there is none."""
    start = end = prot = 0
    for address in patches:
        if not start <= address < end:
            around = next((one for one in mappings if one.start <= address < one.end), None)
            start, end, prot = (around.start, around.end, around.prot) if around else (0, 0, 0)
        yield Step(abi.BootOp.PATCH, address, prot=prot)


def _stack(image: BootImage, top: int, prot: int, taken: int, limit: int | None) -> Step:
    """The range the main stack may grow into, kept clear of what lies below it, and how it grows there."""
    if limit is None:
        limit = image.stack_limit or resource.getrlimit(resource.RLIMIT_STACK)[0]
    endless = limit in (resource.RLIM_INFINITY, 2**64 - 1)
    size = _STACK_MAX if endless else min(max(limit, _STACK_MIN), _STACK_MAX)
    lowest = max(top - size, taken + _STACK_GAP if taken else 0) & -_PAGE
    lowest = min(lowest, image.stack_start & -_PAGE)
    begins = next((m.start for m in image.mappings if m.start <= image.stack_start < m.end), lowest)
    pages = (top - begins) // _PAGE if image.stack_limit else 0
    return Step(abi.BootOp.STACK, lowest, top - lowest, prot, file=pages, off=image.stack_limit)


def encode(steps: list[Step]) -> bytes:
    """The bytes of steps."""
    return b"".join(step.encode() for step in steps)


def to_memfd(data: bytes) -> int:
    """A memfd that holds a plan; the caller closes it."""
    descriptor = os.memfd_create("rr-boot", os.MFD_CLOEXEC)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
