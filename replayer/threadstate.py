"""Everything the processor knows of a thread that waits inside the core, vector registers included.

The core keeps the first and the last of them in the signal frame through which the thread entered it; the FS
base, which the kernel keeps, is read with ptrace.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from interposer import ptrace
from interposer.errors import Gone
from replayer.memory import Memory, MemoryFault
from replayer.registers import UCONTEXT_SIZE, Registers

_SEGMENTS = 40 + 18 * 8
_FPSTATE = 40 + 23 * 8
_INFO = 40 + 256 + 8
_SW_BYTES = 464
_MAGIC = 0x46505853
_MAX_XSAVE = 0x8000
_AVX512 = 0xE0
_AMD_AVX512, _INTEL_AVX512 = 832, 1088
_AMD_SIZE = 2432

FXSAVE_SIZE = 512
SIGINFO_SIZE = 128


@dataclass(frozen=True, slots=True)
class ThreadState:
    """`xsave` is the area in the processor's standard format with the enabled features at byte 464, as core
    files and debuggers have it; empty where it is unknown. `features` are the enabled features (XCR0)."""

    registers: Registers
    cs: int = 0x33
    ss: int = 0x2B
    fs_base: int = 0
    xsave: bytes = b""
    features: int = 0
    siginfo: bytes = field(default=b"", repr=False)


def read_state(memory: Memory, context: int, fs_base: int = 0) -> ThreadState:
    """The state in the ucontext at `context`; MemoryFault when there is none (address 0)."""
    if not context:
        raise MemoryFault(0, UCONTEXT_SIZE)
    head = memory.read(context, _INFO + SIGINFO_SIZE)
    registers = Registers.from_ucontext(head)
    (segments,) = struct.unpack_from("<Q", head, _SEGMENTS)
    (fpstate,) = struct.unpack_from("<Q", head, _FPSTATE)
    xsave, features = _vector(memory, fpstate)
    return ThreadState(registers, segments & 0xFFFF, segments >> 48, fs_base, xsave, features, head[_INFO:])


def _vector(memory: Memory, fpstate: int) -> tuple[bytes, int]:
    if not fpstate:
        return b"", 0
    area = memory.read(fpstate, FXSAVE_SIZE)
    magic, _extended, features, size = struct.unpack_from("<IIQI", area, _SW_BYTES)
    if magic == _MAGIC and FXSAVE_SIZE < size <= _MAX_XSAVE:
        area = memory.read(fpstate, size)
    else:
        features = 3
        area += struct.pack("<Q", 3).ljust(64, b"\0")
    area = _common_layout(area, features)
    return area[:_SW_BYTES] + struct.pack("<Q", features).ljust(48, b"\0") + area[FXSAVE_SIZE:], features


def _common_layout(area: bytes, features: int) -> bytes:
    """The area as Intel's processors lay it out: gdb before 14 knows no other.

    AMD's have no place for MPX, so the parts of AVX-512 and PKRU lie 256 bytes nearer to the start.
    """
    if not features & _AVX512 or len(area) not in (_AMD_SIZE, _AMD_SIZE + 8):
        return area
    return (area[:_AMD_AVX512].ljust(_INTEL_AVX512, b"\0") + area[_AMD_AVX512:_AMD_SIZE]) + area[_AMD_SIZE:]


def fs_base_of(real_tid: int) -> int:
    """The FS base of a thread of ours, stopped for a moment; 0 where it cannot be read."""
    try:
        ptrace.seize(real_tid)
    except (Gone, OSError):
        return 0
    try:
        ptrace.interrupt(real_tid)
        stopped = ptrace.wait(real_tid)
        if stopped.ended:
            return 0
        value = int(getattr(ptrace.get_registers(real_tid), "fs_base", 0))
        ptrace.detach(real_tid, stopped.forward)
        return value
    except (Gone, OSError):
        return 0
