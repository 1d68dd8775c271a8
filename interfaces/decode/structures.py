"""Structures by their layouts."""

from __future__ import annotations

import struct
from collections.abc import Callable

from interfaces.decode import scalars
from interfaces.decode.field import TIME, Field, Style
from interfaces.layouts import LAYOUTS, SCALARS, Layout, size_of
from interfaces.layouts import Field as Member

BRIEF: dict[str, tuple[str, ...]] = {
    "stat": ("st_mode", "st_size", "st_rdev"),
    "statx": ("stx_mask", "stx_attributes", "stx_mode", "stx_size"),
    "utsname": ("sysname", "nodename"),
    "termios": ("c_iflag", "c_oflag", "c_cflag", "c_lflag"),
    "termios2": ("c_iflag", "c_oflag", "c_cflag", "c_lflag"),
    "sysinfo": ("uptime", "totalram", "mem_unit"),
    "rusage": ("ru_utime", "ru_stime"),
    "shmid_ds": ("shm_segsz", "shm_nattch"),
    "semid_ds": ("sem_nsems",),
    "msqid_ds": ("msg_qnum", "msg_qbytes"),
    "siginfo": ("si_signo", "si_code"),
    "perf_event_attr": ("type", "size", "config"),
}
"""Fields that the text of a large structure shows; the tree has them all."""


def integer(data: bytes, at: int, size: int, signed: bool = False) -> int:
    """The little-endian number at `at`; bytes beyond the end count as 0."""
    return int.from_bytes(data[at : at + size], "little", signed=signed)


def characters(data: bytes, style: Style) -> str:
    """A character array as a string, cut at its NUL."""
    text = data.partition(b"\0")[0]
    return scalars.quoted(text, Style(style.deterministic, max(style.strings, 65), style.elements))


def _element(member: Member, data: bytes, at: int, name: str, style: Style) -> Field:
    if member.type in SCALARS:
        size, is_signed = SCALARS[member.type]
        value = integer(data, at, size, is_signed)
        if member.type not in ("s8", "s16", "s32", "s64") or member.naming == "|":
            value &= (1 << 8 * size) - 1
        return Field(name, member.type, scalars.scalar(member.type, value, style, member.naming, member.of))
    return structure(name, member.type, data[at : at + size_of(member.type)], style)


def _member(member: Member, data: bytes, style: Style) -> Field:
    if member.type == "char":
        return Field(member.name, "char[]", characters(data[member.offset : member.offset + member.count],
        style))
    if not member.array:
        return _element(member, data, member.offset, member.name, style)
    size = size_of(member.type)
    elements = tuple(
        _element(member, data, member.offset + i * size, f"[{i}]", style) for i in range(member.count)
    )
    return Field(member.name, f"{member.type}[]", listing(elements), elements)


def listing(elements: tuple[Field, ...], more: bool = False) -> str:
    """`[a, b, ...]`."""
    return "[" + ", ".join([element.value for element in elements] + ["..."] * more) + "]"


def braces(layout: str, children: tuple[Field, ...], cut: bool = False) -> str:
    """`{a=1, b=2, ...}`: all fields, or those that the layout's brief form shows."""
    chosen = BRIEF.get(layout)
    shown = [child for child in children if chosen is None or child.name in chosen]
    parts = [f"{child.name}={child.value}" for child in shown]
    if cut or len(shown) < len(children):
        parts.append("...")
    return "{" + ", ".join(parts) + "}"


def structure(name: str, layout: str, data: bytes, style: Style) -> Field:
    """The structure that `data` holds, as far as it holds it."""
    if layout in SCALARS:
        member = Member("", layout, 0)
        return _element(member, data, 0, name, style)
    found = LAYOUTS[layout]
    if not found.fields:
        return Field(name, layout, scalars.quoted(data, style, found.size))
    custom = CUSTOM.get(layout)
    if custom is not None and len(data) >= found.size:
        return Field(name, layout, *custom(found, data, style))
    whole = tuple(
        _member(member, data, style)
        for member in found.fields
        if not member.name.startswith("_")
        and member.offset + member.count * size_of(member.type) <= len(data)
    )
    return Field(name, layout, braces(layout, whole, len(data) < found.size), whole)


def _members(layout: Layout, data: bytes, style: Style) -> tuple[Field, ...]:
    return tuple(_member(member, data, style) for member in layout.fields if not member.name.startswith("_"))


def _stat(layout: Layout, data: bytes, style: Style) -> tuple[str, tuple[Field, ...]]:
    children = _members(layout, data, style)
    kind = integer(data, 24, 4) & 0o170000
    unshown = "st_size" if kind in (0o20000, 0o60000) else "st_rdev"
    return braces("stat", tuple(child for child in children if child.name != unshown)), children


def _sigaction(layout: Layout, data: bytes, style: Style) -> tuple[str, tuple[Field, ...]]:
    children = _members(layout, data, style)
    handler = {0: "SIG_DFL", 1: "SIG_IGN", 2**64 - 1: "SIG_ERR"}.get(integer(data, 0, 8))
    if handler:
        children = (Field("sa_handler", "ptr", handler), *children[1:])
    return braces("sigaction", children), children


def _utime_special(layout: Layout, data: bytes, style: Style) -> tuple[str, tuple[Field, ...]]:
    nanoseconds = integer(data, 8, 8)
    special = {0x3FFFFFFF: "UTIME_NOW", 0x3FFFFFFE: "UTIME_OMIT"}.get(nanoseconds)
    children = _members(layout, data, style)
    return (special, children) if special else (braces("timespec", children), children)


def _timestamp(layout: Layout, data: bytes, style: Style) -> tuple[str, tuple[Field, ...]]:
    seconds, nanoseconds = struct.unpack_from("<qI", data)
    children = (
        Field("tv_sec", "sec", scalars.hidden(str(seconds), TIME, style)),
        Field("tv_nsec", "nsec", scalars.hidden(str(nanoseconds), TIME, style)),
    )
    return braces("statx_timestamp", children), children


Custom = Callable[[Layout, bytes, Style], tuple[str, tuple[Field, ...]]]

CUSTOM: dict[str, Custom] = {
    "stat": _stat,
    "sigaction": _sigaction,
    "timespec": _utime_special,
    "statx_timestamp": _timestamp,
}
"""Layouts whose text needs more than their fields."""


def array(name: str, layout: str, data: bytes, count: int, style: Style) -> Field:
    """`count` structures, as far as `data` holds them and the style shows them."""
    each = size_of(layout)
    present = min(count, len(data) // each if each else 0)
    shown = tuple(
        structure(f"[{i}]", layout, data[i * each : (i + 1) * each], style)
        for i in range(min(present, style.elements))
    )
    return Field(name, f"{layout}[]", listing(shown, count > len(shown)), shown)
