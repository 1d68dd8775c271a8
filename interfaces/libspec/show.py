"""Library calls as text, for dumps and divergence reports."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from enum import IntFlag
from typing import Any

from interfaces.abi import Region, RegionKind
from interfaces.libspec.model import Callback, CType, Function

RESULT_ARG = 255
EXTRA_ARG = 128
_U64 = (1 << 64) - 1


class LibFlag(IntFlag):
    """Bits of the `flags` of a Kind.LIBCALL event."""

    CALLBACK = 1
    RETURN = 2
    PART = 4
    ERRNO = 8
    RELEASE = 16
    ENTER = 32
    AHEAD = 64
    SIGNAL = 128


def call_text(
    event: Any,
    regions: Sequence[Region],
    known: Mapping[int, Function | Callback],
    *,
    result: bool = True,
    strings: int = 48,
) -> str:
    """`sqlite3_step(p=0x55...) = 100`; a callback is shown as `-> callback(...)`, its return as `<- ...`."""
    described = known.get(int(event.nr))
    name = described.name if described is not None else f"function {event.nr}"
    flags = int(getattr(event, "flags", 0))
    if flags & LibFlag.PART:
        return f"{name}: {sum(len(region.data) for region in regions)} bytes of the next call"
    if flags & LibFlag.RETURN:
        return f"<- {name} returns {_value(int(event.result), described.returns if described else None)}"
    shown = ", ".join(_arguments(event, regions, described, strings))
    if flags & LibFlag.CALLBACK:
        return f"-> {name}({shown})"
    text = f"{name}({shown})"
    if flags & LibFlag.ENTER:
        return f"{text} <calls back ...>"
    if not result or flags & LibFlag.RELEASE or (described is not None and described.returns.kind == "void"):
        return text
    return f"{text} = {result_text(event, regions, described, strings=strings)}"


def result_text(
    event: Any, regions: Sequence[Region], described: Function | Callback | None, *, strings: int = 48
) -> str:
    """What a call returned, and the errno it set; empty for void."""
    returned = [region for region in regions if region.kind == RegionKind.OUT and region.arg == RESULT_ARG]
    value = _value(int(event.result), described.returns if described is not None else None)
    if returned and event.result and described is not None and described.returns.kind == "pointer":
        value = _quoted(returned[0].data, strings)
        if not returned[0].data and 0 < returned[0].addr <= len(described.parameters):
            value = described.parameters[returned[0].addr - 1].name
    if int(getattr(event, "flags", 0)) & LibFlag.ERRNO:
        number = next((int.from_bytes(r.data[:4], "little") for r in regions if r.kind == RegionKind.INFO), 0)
        value += f" (errno {number})"
    return value


def declaration(described: Function | Callback) -> str:
    """The function as C declares it."""
    parameters = ", ".join(one.type.declare(one.name) for one in described.parameters)
    return described.returns.declare(f"{described.name}({parameters or 'void'})").strip()


def _arguments(
    event: Any, regions: Sequence[Region], described: Function | Callback | None, strings: int
) -> list[str]:
    return [
        f"{name}={value}" if name else value
        for name, _, value in arguments_of(event, regions, described, strings=strings)
    ]


def arguments_of(
    event: Any, regions: Sequence[Region], described: Function | Callback | None, *, strings: int = 48
) -> list[tuple[str, str, str]]:
    """(name, C type, value) of each argument; of an unknown function six words without a name."""
    if described is None:
        return [("", "", f"{int(value):#x}") for value in event.args]
    words = [int(value) for value in event.args]
    for region in regions:
        if region.kind == RegionKind.REGS:
            words += [word for (word,) in struct.iter_unpack("<Q", region.data[: len(region.data) & ~7])]
    found = []
    for i, parameter in enumerate(described.parameters):
        word = words[i] if i < len(words) else 0
        contents = [r for r in regions if r.arg == i and r.kind in (RegionKind.IN, RegionKind.OUT)]
        text = _value(word, parameter.type)
        if contents and word:
            text = " -> ".join(_content(region, parameter.type, strings) for region in contents[:3])
        found.append((parameter.name, parameter.type.bare, text))
    return found


def _content(region: Region, kind: CType, strings: int) -> str:
    size = len(region.data)
    if kind.pointee_kind == "integer" and "char" not in kind.pointee and size in (1, 2, 4, 8):
        return f"[{int.from_bytes(region.data, 'little', signed='unsigned' not in kind.pointee)}]"
    if kind.pointee_kind == "pointer" and size == 8:
        return f"[{int.from_bytes(region.data, 'little'):#x}]"
    return _quoted(region.data, strings)


def _value(word: int, kind: CType | None) -> str:
    if kind is None or kind.kind in ("pointer", "function"):
        return "NULL" if word == 0 else f"{word & _U64:#x}"
    if kind.kind == "void":
        return ""
    if kind.kind == "floating":
        return repr(struct.unpack("<d", struct.pack("<Q", word & _U64))[0])
    word &= _U64
    signed = word - (1 << 64) if word >> 63 else word
    return str(word if "unsigned" in kind.text else signed)


def _quoted(data: bytes, most: int) -> str:
    text = data[:-1] if data.endswith(b"\0") and b"\0" not in data[:-1] else data
    shown = "".join(
        chr(byte)
        if 32 <= byte < 127 and byte not in b'"\\'
        else f"\\{chr(byte)}"
        if byte in b'"\\'
        else f"\\x{byte:02x}"
        for byte in text[:most]
    )
    return f'"{shown}"' + ("..." if len(text) > most else "")
