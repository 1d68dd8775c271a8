"""Records and bit sets: directory entries, descriptor sets, node masks, signal information."""

from __future__ import annotations

import signal

from interfaces.decode import scalars
from interfaces.decode.field import NUMBER, TIME, Field, Style
from interfaces.decode.structures import braces, integer, listing
from interfaces.names import enum_text
from interfaces.names.signals import CODES_OF_SIGNAL, signal_name

MEMBERS = 1000


def directory_entries(name: str, data: bytes, style: Style, *, wide: bool) -> Field:
    """What getdents64 (`wide`) or getdents gave."""
    shown: list[Field] = []
    at, count = 0, 0
    while at + 19 <= len(data):
        length = integer(data, at + 16, 2)
        if length < 19 or at + length > len(data):
            break
        if count < style.elements:
            shown.append(_entry(f"[{count}]", data[at : at + length], style, wide))
        count += 1
        at += length
    elements = tuple(shown)
    return Field(name, "dirent[]", f"{listing(elements, count > len(elements))} /* {count} entries */",
    elements)


def _entry(name: str, data: bytes, style: Style, wide: bool) -> Field:
    kind, text = (data[18], data[19:]) if wide else (data[-1], data[18:-1])
    children = (
        Field("d_ino", "ino", scalars.hidden(str(integer(data, 0, 8)), NUMBER, style)),
        Field("d_off", "off", scalars.hidden(str(integer(data, 8, 8, True)), NUMBER, style)),
        Field("d_reclen", "size", str(len(data))),
        Field("d_type", "enum", enum_text("dirtype", kind)),
        Field("d_name", "string", scalars.quoted(text.partition(b"\0")[0], Style(strings=256))),
    )
    return Field(name, "dirent", braces("dirent", children), children)


def bits(data: bytes, count: int) -> list[int]:
    """The numbers below `count` whose bits are set."""
    return [
        8 * i + bit
        for i, byte in enumerate(data)
        if byte
        for bit in range(8)
        if byte >> bit & 1 and 8 * i + bit < count
    ]


def descriptor_set(name: str, data: bytes, count: int) -> Field:
    """`[3 5]`; "..." stands for members beyond a thousand."""
    members = bits(data, count)
    shown = [str(number) for number in members[:MEMBERS]] + ["..."] * (len(members) > MEMBERS)
    return Field(name, "fd_set", "[" + " ".join(shown) + "]")


def bit_mask(name: str, data: bytes, count: int) -> Field:
    """`[0, 2-3]`: ranges, as for CPUs and nodes."""
    parts: list[str] = []
    members = bits(data, count)
    i = 0
    while i < len(members):
        start = i
        while i + 1 < len(members) and members[i + 1] == members[i] + 1:
            i += 1
        parts.append(str(members[start]) if i == start else f"{members[start]}-{members[i]}")
        i += 1
    return Field(name, "mask", "[" + ", ".join(parts) + "]")


def code_text(signo: int, code: int) -> str:
    """`SI_USER`, `SEGV_MAPERR`, ..."""
    if 0 < code < 0x80 and signo in CODES_OF_SIGNAL:
        return enum_text(CODES_OF_SIGNAL[signo], code)
    return enum_text("si_code", code)


def signal_information(name: str, data: bytes, style: Style) -> Field:
    """siginfo_t: the members that the signal and its code make valid."""
    signo, error, code = (integer(data, at, 4, True) for at in (0, 4, 8))
    children = [
        Field("si_signo", "signo", signal_name(signo)),
        Field("si_code", "enum", code_text(signo, code)),
    ]
    if error:
        children.insert(1, Field("si_errno", "s32", str(error)))
    sender = (
        Field("si_pid", "pid", scalars.process(integer(data, 16, 4), style)),
        Field("si_uid", "uid", str(integer(data, 20, 4))),
    )
    if signo == signal.SIGCHLD and 0 < code < 0x80:
        status = integer(data, 24, 4, True)
        shown = str(status) if code == 1 else signal_name(status)
        children += [*sender, Field("si_status", "s32", shown)]
        children += [
            Field(field, "ticks", scalars.hidden(str(integer(data, at, 8)), TIME, style))
            for field, at in (("si_utime", 32), ("si_stime", 40))
        ]
    elif code == -2:
        children += [Field("si_timerid", "s32", str(integer(data, 16, 4, True))),
                     Field("si_overrun", "s32", str(integer(data, 20, 4, True)))]  # fmt: skip
        children.append(_value(data, style))
    elif code in (-1, -3):
        children += [*sender, _value(data, style)]
    elif code <= 0:
        children += sender
    elif signo in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE,
    signal.SIGTRAP) and code < 0x80:
        children.append(Field("si_addr", "ptr", scalars.address(integer(data, 16, 8), style)))
    elif signo == signal.SIGIO:
        children += [Field("si_band", "s64", str(integer(data, 16, 8, True))),
                     Field("si_fd", "fd", str(integer(data, 24, 4, True)))]  # fmt: skip
    elif signo == signal.SIGSYS:
        from interfaces.calls import name_of

        children += [Field("si_call_addr", "ptr", scalars.address(integer(data, 16, 8), style)),
                     Field("si_syscall", "nr", name_of(integer(data, 24, 4, True)))]  # fmt: skip
    done = tuple(children)
    return Field(name, "siginfo", braces("", done), done)


def _value(data: bytes, style: Style) -> Field:
    number, pointer = integer(data, 24, 4, True), integer(data, 24, 8)
    return Field("si_value", "sigval", f"{{int={number}, ptr={scalars.address(pointer, style)}}}")
