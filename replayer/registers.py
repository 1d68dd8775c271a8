"""The general registers of an x86-64 thread, by name and by DWARF number."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

DWARF_NAMES = (
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip",
)  # fmt: skip
RBP, RSP, RIP = 6, 7, 16

_CONTEXT_NAMES = (
    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
    "rdi", "rsi", "rbp", "rbx", "rdx", "rax", "rcx", "rsp", "rip", "eflags",
)  # fmt: skip
_CONTEXT_OFFSET = 40
UCONTEXT_SIZE = _CONTEXT_OFFSET + 23 * 8


@dataclass(frozen=True, slots=True)
class Registers:
    """One thread's registers; unknown ones are 0."""

    rax: int = 0
    rbx: int = 0
    rcx: int = 0
    rdx: int = 0
    rsi: int = 0
    rdi: int = 0
    rbp: int = 0
    rsp: int = 0
    r8: int = 0
    r9: int = 0
    r10: int = 0
    r11: int = 0
    r12: int = 0
    r13: int = 0
    r14: int = 0
    r15: int = 0
    rip: int = 0
    eflags: int = 0

    @classmethod
    def from_ucontext(cls, data: bytes) -> Self:
        """From the first UCONTEXT_SIZE bytes of the kernel's struct ucontext; ValueError when shorter."""
        if len(data) < UCONTEXT_SIZE:
            raise ValueError(f"a ucontext has at least {UCONTEXT_SIZE} bytes, not {len(data)}")
        words = struct.unpack_from(f"<{len(_CONTEXT_NAMES)}Q", data, _CONTEXT_OFFSET)
        return cls(**dict(zip(_CONTEXT_NAMES, words, strict=True)))

    @classmethod
    def from_names(cls, values: Mapping[str, int]) -> Self:
        """From any mapping of register names; names that are not general registers are left out."""
        return cls(**{name: value for name, value in values.items() if name in cls.__dataclass_fields__})

    def by_dwarf(self) -> dict[int, int]:
        """Values by DWARF register number, the form that call-frame information speaks."""
        return {number: getattr(self, name) for number, name in enumerate(DWARF_NAMES)}
