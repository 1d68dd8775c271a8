"""Put the core into the image an execve has just made.

The thread stands at its exec stop: nothing of the new image has run. A few instructions are written over the
start of the page the entry point lies on, run, and taken away again; they map the core's two segments. The
thread then goes on at the core's entry with signals blocked until it is detached, so that none is lost and
none sees the half-made state. The stack is not touched.

That stop costs a change of processes, and more of them where others want the processor too. Where nothing can
go wrong (memory is not limited, nothing lies in the core's place), the instructions are put behind the end of
the kernel's vDSO, which the program never sees, and the thread runs them by itself when it is detached.
"""

import errno
import os
import resource
import signal
from collections.abc import Iterable
from typing import NamedTuple

from interposer import ptrace
from interposer.errors import Gone, InjectError
from interposer.image import Image
from interposer.procfs import Mapping

_PAGE = 4096
_PROT_READ, _PROT_WRITE, _PROT_EXEC = 1, 2, 4
_MAP_PRIVATE, _MAP_FIXED_NOREPLACE = 0x02, 0x100000
_USER_CS_64 = 0x33
_ALL_SIGNALS = 0xFFFFFFFFFFFFFFFF
_ERRNO_MAX = 4095
_U64 = 0xFFFFFFFFFFFFFFFF
_STUB_ROOM = 96
_UNRECORDED = "It goes on unrecorded."

# mov eax, 9; syscall; mov rbx, rax; mov rdi, r12;
# mov rsi, r13; mov edx, 3; mov r9, r14; mov eax, 9; syscall; int3
_STUB = bytes.fromhex("b809000000 0f05 4889c3 4c89e7 4c89ee ba03000000 4d89f1 b809000000 0f05 cc")


# mov eax, 9; syscall; cmp rax, rdi; jne away; mov rdi, r12; mov rsi, r13; mov edx, 3; mov r9, r14;
# mov eax, 9; syscall; cmp rax, rdi; jne away; mov rdi, r15; mov rsi, rsp; mov edx, ...; mov ecx, ...;
# mov r8, rbp; jmp rbx; away: xor edx, edx; xor ebp, ebp; jmp r15
_UNWATCHED = (
    "b809000000 0f05 4839f8 752f 4c89e7 4c89ee ba03000000 4d89f1 b809000000 0f05 4839f8 7515 "
    "4c89ff 4889e6 ba{fd_base} b9{domain} 4989e8 ffe3 31d2 31ed 41ffe7"
)


class Patch(NamedTuple):
    """Bytes to put into the program's memory while it is stopped."""

    address: int
    data: bytes


def is_64bit(registers: ptrace.Registers) -> bool:
    """Whether the image runs in 64-bit mode."""
    return int(registers.cs) == _USER_CS_64


def inject(
    tid: int,
    registers: ptrace.Registers,
    image: Image,
    image_fd: int,
    *,
    fd_base: int,
    domain: int,
    traps: bool,
    memory: ptrace.Memory,
    patches: Iterable[Patch] = (),
) -> None:
    """Map the core into `tid`, at its exec stop, and apply `patches`. Detached, it starts in the core.

    `registers` are those of the exec stop, `image_fd` the core's file *in the program's descriptor table*,
    `traps`: CPUID is to trap from the start, `memory` its memory. Raises
    InjectError when the core does not fit (detached, the program runs as if nothing had happened), Gone
    when it was killed.
    """
    entry, stack = registers.rip, registers.rsp
    mask = ptrace.get_mask(tid)
    ptrace.set_mask(tid, _ALL_SIGNALS)
    registers.orig_rax = _U64
    problem: InjectError | None = None
    try:
        _map_core(tid, registers, image, image_fd, memory)
        _apply(patches, memory)
        registers.rip, registers.rsp = image.entry_record, stack
        registers.rdi, registers.rsi, registers.rdx = entry, stack, fd_base
        registers.rcx, registers.r8 = domain, int(traps)
    except InjectError as error:
        problem = error
    except OSError as error:
        problem = InjectError(f"process {tid} cannot be written to: {error.strerror}", _UNRECORDED)
    ptrace.set_registers(tid, registers)
    ptrace.set_mask(tid, mask)
    if problem is not None:
        raise problem


def is_limited(tid: int) -> bool:
    """Whether mapping anything may fail for a limit, as far as can be told."""
    try:
        return resource.prlimit(tid, resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    except OSError:
        return True


def place_in(mappings: Iterable[Mapping], image: Image, memory: ptrace.Memory) -> int:
    """Where instructions may be put in a process with these mappings; 0 where there is no room, or where
    something lies in the core's place."""
    low, high = image.text.address, image.data.address + image.data.length
    place = 0
    for mapping in mappings:
        if mapping.start < high and mapping.end > low:
            return 0
        if mapping.path == "[vdso]":
            place = mapping.end - _STUB_ROOM
    return place if place and not any(memory.read(place, _STUB_ROOM)) else 0


def inject_unwatched(
    tid: int,
    registers: ptrace.Registers,
    image: Image,
    image_fd: int,
    *,
    fd_base: int,
    domain: int,
    traps: bool,
    memory: ptrace.Memory,
    place: int,
    patches: Iterable[Patch] = (),
) -> None:
    """Like `inject`, but the core is mapped only once `tid` is detached; `place` is what `place_in`
    found, and memory must not be limited.

    Should that fail after all, the program runs as if nothing had happened. Raises Gone, and InjectError when
    it cannot be written to.
    """
    numbers = {"fd_base": fd_base, "domain": domain}
    words = {name: number.to_bytes(4, "little").hex() for name, number in numbers.items()}
    stub = bytes.fromhex(_UNWATCHED.format(**words))
    try:
        memory.write(place, stub)
        _apply(patches, memory)
    except OSError as error:
        raise InjectError(f"process {tid} cannot be written to: {error.strerror}", _UNRECORDED) from None
    registers.orig_rax = _U64
    registers.rbx, registers.rbp, registers.r15 = image.entry_record, int(traps), registers.rip
    registers.rdi, registers.rsi, registers.rdx = (
        image.text.address,
        image.text.length,
        _PROT_READ | _PROT_EXEC,
    )
    registers.r10, registers.r8, registers.r9 = (
        _MAP_PRIVATE | _MAP_FIXED_NOREPLACE,
        image_fd,
        image.text.offset,
    )
    registers.r12, registers.r13, registers.r14 = image.data.address, image.data.length, image.data.offset
    registers.rip = place
    ptrace.set_registers(tid, registers)


def _apply(patches: Iterable[Patch], memory: ptrace.Memory) -> None:
    for patch in patches:
        memory.write(patch.address, patch.data)


def together(patches: Iterable[Patch], memory: ptrace.Memory) -> list[Patch]:
    """Those of one page as one, with what lies between them: each write looks its page up anew."""
    pages: dict[int, list[Patch]] = {}
    joined = []
    for patch in patches:
        pages.setdefault(patch.address & -_PAGE, []).append(patch)
    for page in pages.values():
        start = min(patch.address for patch in page)
        end = max(patch.address + len(patch.data) for patch in page)
        content = bytearray(memory.read(start, end - start))
        for patch in page:
            content[patch.address - start : patch.address - start + len(patch.data)] = patch.data
        joined.append(Patch(start, bytes(content)))
    return joined


def _map_core(
    tid: int, at_exec: ptrace.Registers, image: Image, image_fd: int, memory: ptrace.Memory
) -> None:
    """Run the stub, then put the bytes back."""
    place = at_exec.rip & -_PAGE
    kept = memory.read(place, len(_STUB))
    if len(kept) != len(_STUB):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    memory.write(place, _STUB)
    call = ptrace.get_registers(tid)
    call.rip = place
    call.rdi, call.rsi, call.rdx = image.text.address, image.text.length, _PROT_READ | _PROT_EXEC
    call.r10, call.r8, call.r9 = _MAP_PRIVATE | _MAP_FIXED_NOREPLACE, image_fd, image.text.offset
    call.r12, call.r13, call.r14 = image.data.address, image.data.length, image.data.offset
    ptrace.set_registers(tid, call)
    _run_to_trap(tid)
    done = ptrace.get_registers(tid)
    memory.write(place, kept)
    for part, result in ((image.text, done.rbx), (image.data, done.rax)):
        if result != part.address:
            code = -result & _U64
            why = os.strerror(code) if code <= _ERRNO_MAX else f"it landed at {result:#x}"
            raise InjectError(
                f"the core cannot be mapped into process {tid}: "
                f"{part.length} bytes at {part.address:#x}: {why}",
                _UNRECORDED,
            )


def _run_to_trap(tid: int) -> None:
    """Let the stub run to its int3. After a SIGSTOP it goes on too, and stops once detached."""
    ptrace.resume(tid)
    while True:
        wait = ptrace.wait(tid)
        if wait.ended:
            raise Gone(tid, wait.status)
        if wait.event == 0 and wait.signal == signal.SIGTRAP:
            return
        ptrace.resume(tid, wait.forward)
