"""One system call: its arguments as fields, the whole as a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from interfaces.abi import RESTART, Kind, Region, RegionKind
from interfaces.calls import CALLS, name_of
from interfaces.decode import records, scalars, sockets, structures
from interfaces.decode.field import PROCESS, TIME, EventLike, Field, Memory, Style, plain
from interfaces.layouts import LAYOUTS, size_of
from interfaces.model import Arg, Call
from interfaces.names import enum_text, flags_text
from interfaces.names.signals import RESTARTS, errno_name, errno_text, signal_name

LAST_ERROR = 4095
PATHS = 4096


class _Context:
    """A call with its event: what the decoders of its arguments need."""

    def __init__(self, call: Call, args: tuple[Arg, ...], event: EventLike, memory: Memory,
    style: Style) -> None:
        self.call, self.args, self.style, self.memory = call, args, style, memory
        self.values = [int(value) & (2**64 - 1) for value in event.args][:6]
        self.values += [0] * (6 - len(self.values))
        self.result = int(event.result)
        self.kind = event.kind

    def value(self, name: str) -> int:
        """The argument of that name, or the result."""
        if name == "result":
            return max(self.result, 0)
        if name.isdigit():
            return int(name)
        for arg, value in zip(self.args, self.values, strict=False):
            if arg.name == name:
                if arg.type in ("int", "uint"):
                    return value & 0xFFFFFFFF
                return self.pointed(value) if arg.type == "struct" else value
        return 0

    def pointed(self, address: int) -> int:
        """The 32-bit length behind a pointer."""
        return structures.integer(self.memory.read(address, 4), 0, 4)

    def direction(self, arg: Arg) -> RegionKind:
        """Where the bytes of an argument are: what the kernel wrote, else what it read."""
        return RegionKind.OUT if any(spec.out for spec in arg.specs) else RegionKind.IN

    def pointer(self, arg: Arg, value: int) -> Field:
        """The argument as an address."""
        return Field(arg.name, arg.type, scalars.address(value, self.style))


Decoder = Callable[[_Context, Arg, int], Field]


def _path(c: _Context, arg: Arg, value: int) -> Field:
    found = c.memory.string(value, c.direction(arg))
    if found is None:
        return c.pointer(arg, value)
    text, whole = found
    style = Style(c.style.deterministic, PATHS if arg.type == "path" else c.style.strings)
    return Field(arg.name, arg.type, scalars.quoted(text, style) + ("" if whole else "..."))


def _comm(c: _Context, arg: Arg, value: int) -> Field:
    data = c.memory.read(value, 16, c.direction(arg))
    return Field(arg.name, arg.type, structures.characters(data, c.style)) if data else c.pointer(arg, value)


def _strings(c: _Context, arg: Arg, value: int) -> Field:
    """An array of strings. The core logs the strings in order, the pointer array itself not."""
    pointers = c.memory.read(value, 8 * 512)
    texts = (
        [c.memory.string(structures.integer(pointers, 8 * i, 8)) for i in range(len(pointers) // 8)]
        if pointers
        else c.memory.strings(c.args.index(arg))
    )
    found = [text for text in texts if text is not None]
    if not value or not found:
        return c.pointer(arg, value)
    if arg.name == "envp":
        return Field(arg.name, "string[]", f"{scalars.address(value, c.style)} /* {len(found)} vars */",
                     _string_fields(found, c.style))  # fmt: skip
    shown = _string_fields(found, c.style)
    return Field(arg.name, "string[]", structures.listing(shown[: c.style.elements],
    len(shown) > c.style.elements), shown)


def _string_fields(found: list[tuple[bytes, bool]], style: Style) -> tuple[Field, ...]:
    return tuple(
        Field(f"[{i}]", "string", scalars.quoted(text, style) + ("" if whole else "..."))
        for i, (text, whole) in enumerate(found)
    )


def _buffer(c: _Context, arg: Arg, value: int) -> Field:
    if c.kind == Kind.RELEASE and c.direction(arg) == RegionKind.OUT:
        return c.pointer(arg, value)
    count = c.value(arg.count) if arg.count else 0
    shown = min(count, c.style.strings + 1) if arg.count else c.style.strings + 1
    data = c.memory.read(value, shown, c.direction(arg))
    if not data and (count or not value or c.result < 0):
        return c.pointer(arg, value)
    return Field(arg.name, arg.type, scalars.quoted(data, c.style, count))


def _records(c: _Context, arg: Arg, value: int) -> Field:
    if c.result < 0 or c.kind != Kind.SYSCALL:
        return c.pointer(arg, value)
    data = c.memory.read(value, max(c.result, 0), RegionKind.OUT)
    field = records.directory_entries(arg.name, data, c.style, wide=arg.of == "dirent64")
    return Field(arg.name, field.type,
    f"{scalars.address(value, c.style)} {field.value[field.value.rindex('/*'):]}",
                 field.children)  # fmt: skip


def _struct(c: _Context, arg: Arg, value: int) -> Field:
    out = c.direction(arg) == RegionKind.OUT and arg.name != "timeout"
    if arg.name in ("rem", "remain") and c.result >= 0:
        return c.pointer(arg, value)
    data = c.memory.read(value, size_of(arg.of), RegionKind.OUT if out else RegionKind.IN)
    if not data and out and any(not spec.out for spec in arg.specs):
        data = c.memory.read(value, size_of(arg.of), RegionKind.IN)
    if not data:
        return c.pointer(arg, value)
    if arg.of == "siginfo":
        return records.signal_information(arg.name, data, c.style)
    if arg.of == "fd_pair":
        fds = tuple(Field(f"[{i}]", "fd", str(structures.integer(data, 4 * i, 4, True))) for i in (0, 1))
        return Field(arg.name, "fd[]", structures.listing(fds), fds)
    if arg.of == "sigset_arg":
        mask = c.memory.read(structures.integer(data, 0, 8), 8)
        text = scalars.sigset(structures.integer(mask, 0, 8)) if mask else "..."
        return Field(arg.name, arg.of, f"{{sigmask={text}, sigsetsize={structures.integer(data, 8, 8)}}}")
    field = structures.structure(arg.name, arg.of, data, c.style)
    if arg.of in LAYOUTS or arg.of == "sigset":
        return field
    return Field(field.name, field.type, f"[{field.value}]", field.children)


def _array(c: _Context, arg: Arg, value: int) -> Field:
    count = c.value(arg.count)
    data = c.memory.read(value, min(count, c.style.elements) * size_of(arg.of), c.direction(arg))
    if not data:
        return Field(arg.name, f"{arg.of}[]", "[]") if value and not count else c.pointer(arg, value)
    return structures.array(arg.name, arg.of, data, count, c.style)


def _iovec(c: _Context, arg: Arg, value: int) -> Field:
    kind = c.direction(arg)
    moved = max(c.result, 0) if kind == RegionKind.OUT else None
    return sockets.iovec(arg.name, c.memory, value, c.value(arg.count), c.style, kind, moved)


def _msghdr(c: _Context, arg: Arg, value: int) -> Field:
    kind = c.direction(arg)
    moved = max(c.result, 0) if kind == RegionKind.OUT else None
    return sockets.message(arg.name, c.memory, value, c.style, kind, moved)


def _mmsghdr(c: _Context, arg: Arg, value: int) -> Field:
    kind = RegionKind.IN if c.call.name == "sendmmsg" else RegionKind.OUT
    return sockets.messages(arg.name, c.memory, value, c.value(arg.count), c.style, kind, c.result)


def _sockaddr(c: _Context, arg: Arg, value: int) -> Field:
    data = c.memory.read(value, min(c.value(arg.count), 128), c.direction(arg))
    return sockets.address(arg.name, data, c.style) if data else c.pointer(arg, value)


def _sockopt(c: _Context, arg: Arg, value: int) -> Field:
    data = c.memory.read(value, min(c.value(arg.count), 4096), c.direction(arg))
    if not data:
        return c.pointer(arg, value)
    return sockets.option_value(arg.name, c.values[1] & 0xFFFFFFFF, c.values[2] & 0xFFFFFFFF, data, c.style)


def _fdset(c: _Context, arg: Arg, value: int) -> Field:
    count = c.value(arg.count)
    data = c.memory.read(value, (count + 63) // 64 * 8, RegionKind.IN)
    if not data:
        return c.pointer(arg, value)
    before = records.descriptor_set(arg.name, data, count)
    after = c.memory.read(value, len(data), RegionKind.OUT)
    if not after:
        return before
    return Field(arg.name, before.type, before.value,
                 (Field("before", "fd_set", before.value), records.descriptor_set("after", after,
                 count)))  # fmt: skip


def _bitmask(c: _Context, arg: Arg, value: int) -> Field:
    count = c.value(arg.count)
    data = c.memory.read(value, min((count + 63) // 64 * 8, 8192), c.direction(arg))
    return records.bit_mask(arg.name, data, count) if data else c.pointer(arg, value)


def _optname(c: _Context, arg: Arg, value: int) -> Field:
    return Field(arg.name, "enum", sockets.option_name(c.values[1], value))


def _protocol(c: _Context, arg: Arg, value: int) -> Field:
    return Field(arg.name, "enum", sockets.protocol_name(c.values[0], value))


def _flags(c: _Context, arg: Arg, value: int) -> Field:
    wide = arg.of in ("clone", "clone3")
    return Field(arg.name, "flags", flags_text(arg.of, value if wide else value & 0xFFFFFFFF))


def _enumerated(c: _Context, arg: Arg, value: int) -> Field:
    number = scalars.signed(value)
    return Field(arg.name, "enum", signal_name(number) if arg.of == "signal" else enum_text(arg.of, number))


def _mode(c: _Context, arg: Arg, value: int) -> Field:
    return Field(arg.name, "mode", scalars.mode_text(value & 0xFFFF))


DECODERS: dict[str, Decoder] = {
    "path": _path, "string": _path, "strings": _strings, "comm": _comm, "buffer": _buffer,
    "records": _records,
    "struct": _struct, "array": _array, "iovec": _iovec, "msghdr": _msghdr, "mmsghdr": _mmsghdr,
    "sockaddr": _sockaddr, "sockopt": _sockopt, "fdset": _fdset, "bitmask": _bitmask, "optname": _optname,
    "protocol": _protocol, "flags": _flags, "enum": _enumerated, "mode": _mode,
}  # fmt: skip

FIXED_TEXT: dict[str, str] = {"getrandom.buf": "<random>"}
"""What the deterministic form shows for buffers that differ between recordings by their nature."""

UNUSED_WITHOUT: dict[str, tuple[int, int]] = {"open": (1, 0o20000100), "openat": (2, 0o20000100)}
"""Calls whose last argument counts only with one of these bits in the argument of that position."""

RESULT_FLAGS: dict[str, str] = {"F_GETFD": "fdflags", "F_GETFL": "open", "F_GET_SEALS": "seal"}


def _arguments(call: Call, values: Sequence[int]) -> tuple[Arg, ...]:
    case = call.case([int(value) for value in values])
    args = case.args if case else call.args
    if call.name in UNUSED_WITHOUT:
        position, bits = UNUSED_WITHOUT[call.name]
        if not int(values[position]) & bits:
            return args[:-1]
    return args


def _decode(c: _Context) -> list[Field]:
    fields = []
    for arg, value in zip(c.args, c.values, strict=False):
        fixed = FIXED_TEXT.get(f"{c.call.name}.{arg.name}") if c.style.deterministic and value else None
        if fixed:
            fields.append(Field(arg.name, arg.type, fixed))
        elif arg.type in DECODERS:
            fields.append(DECODERS[arg.type](c, arg, value))
        else:
            fields.append(Field(arg.name, arg.type, scalars.scalar(arg.type, value, c.style)))
    return fields


def _encoded_ioctl(c: _Context, fields: list[Field]) -> list[Field]:
    """An ioctl without a row: as many bytes as its encoding says."""
    size = c.values[1] >> 16 & 0x3FFF
    data = c.memory.read(c.values[2], size)
    if not data:
        return fields
    return [*fields[:2], Field("argp", "buffer", scalars.quoted(data, c.style, size))]


def _context(event: EventLike, regions: Iterable[Region], style: Style) -> _Context | None:
    call = CALLS.get(event.nr)
    if call is None:
        return None
    return _Context(call, _arguments(call, event.args), event, Memory(regions), style)


def _fields(c: _Context) -> list[Field]:
    fields = _decode(c)
    if c.call.name == "ioctl" and c.call.case(c.values) is None:
        return _encoded_ioctl(c, fields)
    return fields


def _unknown(event: EventLike, style: Style) -> list[Field]:
    return [
        Field(f"arg{i + 1}", "hex64", scalars.scalar("hex64", int(value), style)) for i,
        value in enumerate(event.args)
    ]


def decode_args(
    event: Any, regions: Iterable[Region] = (), *, deterministic: bool = False, strings: int = 32
) -> list[Field]:
    """The arguments of a call as fields, with what the regions hold behind the pointers.

    `event` is an EventLike or a row of an EVENT_DTYPE array. An unknown call gives its six words.
    """
    event = plain(event)
    style = Style(deterministic, strings)
    context = _context(event, regions, style)
    return _unknown(event, style) if context is None else _fields(context)


def format_call(
    event: Any, regions: Iterable[Region] = (), *, deterministic: bool = False, strings: int = 32
) -> str:
    """One line: `openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3`.

    The result of a call that only begins (Kind.RELEASE) or does not return is `?`. `strings` bytes of each
    buffer are shown; `deterministic` hides what differs between recordings of the same behaviour.
    """
    event = plain(event)
    style = Style(deterministic, strings)
    context = _context(event, regions, style)
    if context is None:
        fields = _unknown(event, style)
        result = _error(event.result) or scalars.scalar("hex64", event.result & (2**64 - 1), style)
    else:
        fields = _fields(context)
        result = _result(context, fields)
    return f"{name_of(event.nr)}({', '.join(field.value for field in fields)}) = {result}"


def _error(result: int) -> str:
    if result == RESTART or -result in RESTARTS:
        return f"? {errno_name(-result)} ({errno_text(-result)})"
    if -LAST_ERROR <= result < 0:
        return f"-1 {errno_name(-result)} ({errno_text(-result)})"
    return ""


def _result(c: _Context, fields: list[Field]) -> str:
    if c.kind == Kind.RELEASE or c.call.name in ("exit", "exit_group", "rt_sigreturn"):
        return "?"
    error = _error(c.result)
    if error:
        return error
    case = c.call.case(c.values)
    if case is not None and case.name in RESULT_FLAGS:
        return f"{scalars.hexadecimal(c.result)} (flags {flags_text(RESULT_FLAGS[case.name], c.result)})"
    value = c.result & (2**64 - 1)
    match c.call.returns:
        case "int" | "fd" | "long" | "size":
            text = str(c.result)
        case "pid":
            text = PROCESS if c.style.deterministic and c.result else str(c.result)
        case "sec" | "ticks":
            text = scalars.hidden(str(c.result), TIME, c.style)
        case other:
            text = scalars.scalar(other, value, c.style)
    return text + _note(c, fields)


def _note(c: _Context, fields: list[Field]) -> str:
    """What strace tells behind the result of poll and select."""
    if c.call.name in ("poll", "ppoll", "select", "pselect6") and c.result == 0:
        return " (Timeout)"
    if c.call.name in ("poll", "ppoll"):
        ready = [
            structures.braces("", tuple(child for child in one.children if child.name != "events"))
            for one in fields[0].children
            if one.children and one.children[-1].value != "0"
        ]
        return f" ([{', '.join(ready)}])" if ready else ""
    if c.call.name in ("select", "pselect6"):
        parts = [
            f"{label} {field.children[1].value}"
            for label, field in zip(("in", "out", "except"), fields[1:4], strict=True)
            if len(field.children) == 2 and field.children[1].value != "[]"
        ]
        return f" ({', '.join(parts)})" if parts else ""
    return ""
