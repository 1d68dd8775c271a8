"""The registers of a thread in the order in which the description given to gdb names them."""

from __future__ import annotations

from dataclasses import dataclass

from replayer.registers import Registers
from replayer.threadstate import ThreadState

_GENERAL = (
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp",
    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
)  # fmt: skip
_AVX = 4


@dataclass(frozen=True, slots=True)
class Register:
    """Name, size in bits, type and group, as gdb's target descriptions have them."""

    name: str
    bits: int
    type: str = "int"
    group: str = ""


_CORE = (
    *(Register(name, 64, {"rbp": "data_ptr", "rsp": "data_ptr"}.get(name, "int64")) for name in _GENERAL),
    Register("rip", 64, "code_ptr"),
    Register("eflags", 32, "i386_eflags"),
    *(Register(name, 32, "int32") for name in ("cs", "ss", "ds", "es", "fs", "gs")),
    *(Register(f"st{number}", 80, "i387_ext") for number in range(8)),
    *(
        Register(name, 32, "int", "float")
        for name in ("fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop")
    ),
)
_SSE = (
    *(Register(f"xmm{number}", 128, "vec128") for number in range(16)),
    Register("mxcsr", 32, "i386_mxcsr", "vector"),
)
_LINUX = (Register("orig_rax", 64, "int"),)
_SEGMENTS = (Register("fs_base", 64, "int"), Register("gs_base", 64, "int"))
_AVX_HALVES = tuple(Register(f"ymm{number}h", 128, "uint128") for number in range(16))

FEATURES: tuple[tuple[str, tuple[Register, ...]], ...] = (
    ("org.gnu.gdb.i386.core", _CORE),
    ("org.gnu.gdb.i386.sse", _SSE),
    ("org.gnu.gdb.i386.linux", _LINUX),
    ("org.gnu.gdb.i386.segments", _SEGMENTS),
    ("org.gnu.gdb.i386.avx", _AVX_HALVES),
)
ALL = tuple(register for _name, registers in FEATURES for register in registers)

_FLAGS = (
    ("", 22, 31), ("ID", 21, 21), ("VIP", 20, 20), ("VIF", 19, 19), ("AC", 18, 18), ("VM", 17, 17),
    ("RF", 16, 16), ("NT", 14, 14), ("OF", 11, 11), ("DF", 10, 10), ("IF", 9, 9), ("TF", 8, 8),
    ("SF", 7, 7), ("ZF", 6, 6), ("AF", 4, 4), ("PF", 2, 2), ("", 1, 1), ("CF", 0, 0),
)  # fmt: skip
_CONTROL = (
    ("IE", 0, 0), ("DE", 1, 1), ("ZE", 2, 2), ("OE", 3, 3), ("UE", 4, 4), ("PE", 5, 5), ("DAZ", 6, 6),
    ("IM", 7, 7), ("DM", 8, 8), ("ZM", 9, 9), ("OM", 10, 10), ("UM", 11, 11), ("PM", 12, 12), ("FZ", 15, 15),
)  # fmt: skip
_VECTORS = (
    ("v4f", "ieee_single", 4, "v4_float"), ("v2d", "ieee_double", 2, "v2_double"),
    ("v16i8", "int8", 16, "v16_int8"), ("v8i16", "int16", 8, "v8_int16"),
    ("v4i32", "int32", 4, "v4_int32"), ("v2i64", "int64", 2, "v2_int64"),
)  # fmt: skip


def _flags_type(name: str, fields: tuple[tuple[str, int, int], ...]) -> str:
    inner = "".join(f'<field name="{label}" start="{start}" end="{end}"/>' for label, start, end in fields)
    return f'<flags id="{name}" size="4">{inner}</flags>'


def _vector_types() -> str:
    vectors = "".join(f'<vector id="{one}" type="{kind}" count="{n}"/>' for one, kind, n, _f in _VECTORS)
    fields = "".join(f'<field name="{label}" type="{one}"/>' for one, _kind, _n, label in _VECTORS)
    return f'{vectors}<union id="vec128">{fields}<field name="uint128" type="uint128"/></union>'


def description() -> str:
    """The target description, in XML."""
    parts = ['<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target>']
    parts.append("<architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>")
    for name, registers in FEATURES:
        parts.append(f'<feature name="{name}">')
        if name.endswith(".core"):
            parts.append(_flags_type("i386_eflags", _FLAGS))
        elif name.endswith(".sse"):
            parts.append(_vector_types() + _flags_type("i386_mxcsr", _CONTROL))
        for one in registers:
            group = f' group="{one.group}"' if one.group else ""
            parts.append(f'<reg name="{one.name}" bitsize="{one.bits}" type="{one.type}"{group}/>')
        parts.append("</feature>")
    parts.append("</target>")
    return "".join(parts)


def values(state: ThreadState) -> list[bytes]:
    """The bytes of every register, in order; empty where one is not known."""
    general: dict[str, int] = {
        name: getattr(state.registers, name) for name in Registers.__dataclass_fields__
    }
    general |= {"cs": state.cs, "ss": state.ss, "fs_base": state.fs_base, "gs_base": 0}
    general |= {"ds": 0, "es": 0, "fs": 0, "gs": 0, "orig_rax": (1 << 64) - 1}
    area = state.xsave
    found = []
    for one in ALL:
        size = one.bits // 8
        if one.name in general:
            found.append((general[one.name] & (1 << one.bits) - 1).to_bytes(size, "little"))
        else:
            found.append(_vector(one, area, size))
    return found


def _vector(one: Register, area: bytes, size: int) -> bytes:
    if not area:
        return b""
    name = one.name
    if name.startswith("st"):
        at = 32 + 16 * int(name[2:])
        return area[at : at + 10]
    if name.startswith("xmm"):
        at = 160 + 16 * int(name[3:])
        return area[at : at + 16]
    if name.startswith("ymm"):
        in_use = len(area) >= 832 and area[512] & _AVX
        at = 576 + 16 * int(name[3:-1])
        return area[at : at + 16] if in_use else bytes(16)
    if name == "mxcsr":
        return area[24:28]
    word = {"fctrl": (0, 2), "fstat": (2, 2), "fop": (6, 2), "fioff": (8, 4), "fooff": (16, 4)}.get(name)
    if word is not None:
        return area[word[0] : word[0] + word[1]].ljust(size, b"\0")
    if name == "ftag":
        return _full_tag(area).to_bytes(4, "little")
    return bytes(size)


def _full_tag(area: bytes) -> int:
    """The x87 tag word from its short form: 0 where a register is in use, 3 where it is empty."""
    return sum(0 if area[4] >> number & 1 else 3 << 2 * number for number in range(8))
