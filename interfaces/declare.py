"""The vocabulary in which the table modules are written.

A row reads like a declaration:

    call(0, "read", fd("fd"), out_buf("buf", size="count", written=RESULT), size("count"),
         block=MAY, waits_on="fd")

Argument helpers carry their effects with them; `call` resolves the names they use to argument numbers.
"""

from __future__ import annotations

from interfaces.layouts import size_of
from interfaces.model import (
    NO_ARG,
    Arg,
    Block,
    Call,
    Case,
    Effect,
    Flag,
    Op,
    Selector,
    Spec,
    Special,
    Treat,
    When,
)

FEED, REDO, REFUSE = Treat.FEED, Treat.REDO, Treat.REFUSE
NEVER, MAY, WAIT = Block.NEVER, Block.MAY, Block.WAIT
ALWAYS, SUCCESS, POSITIVE = When.ALWAYS, When.SUCCESS, When.POSITIVE
ECHO, XFER, NEWFD, PATH, RESTART, MASK = Flag.ECHO, Flag.XFER, Flag.NEWFD, Flag.PATH, Flag.RESTART, Flag.MASK
NO_FLAG = Flag(0)
RESULT = "result"

__all__ = [
    "ALWAYS",
    "ECHO",
    "FEED",
    "MASK",
    "MAY",
    "NEVER",
    "NEWFD",
    "NO_FLAG", "PATH",
    "POSITIVE",
    "REDO",
    "REFUSE",
    "RESTART",
    "RESULT",
    "SUCCESS",
    "WAIT",
    "XFER",
    "Call",
    "Case",
    "Pending",
    "Selector",
    "Special",
    "array",
    "call",
    "case",
    "counted",
    "dirfd",
    "enum",
    "fd",
    "flags",
    "hexadecimal",
    "in_array",
    "in_buf",
    "in_string",
    "in_strings",
    "in_struct",
    "inout_array",
    "inout_buf",
    "inout_struct",
    "iovec_in",
    "iovec_out",
    "lenptr",
    "long",
    "mode",
    "msghdr_in",
    "msghdr_out",
    "num",
    "out_array",
    "out_buf",
    "out_string",
    "out_struct",
    "path",
    "pid",
    "ptr",
    "size",
    "sockaddr_in",
    "sockaddr_out",
    "special",
    "unsigned",
    "value",
    "via",
    "writes",
]  # fmt: skip


def value(name: str, type: str, of: str = "") -> Arg:
    """An argument that is its own value, shown as `type`."""
    return Arg(name, type, of)


def num(name: str) -> Arg:
    """A signed 32-bit number."""
    return Arg(name, "int")


def long(name: str) -> Arg:
    """A signed 64-bit number."""
    return Arg(name, "long")


def unsigned(name: str) -> Arg:
    """An unsigned 32-bit number."""
    return Arg(name, "uint")


def size(name: str) -> Arg:
    """A number of bytes or elements."""
    return Arg(name, "size")


def hexadecimal(name: str) -> Arg:
    """A number shown in hexadecimal."""
    return Arg(name, "hex")


def fd(name: str = "fd") -> Arg:
    """A file descriptor."""
    return Arg(name, "fd")


def dirfd(name: str = "dirfd") -> Arg:
    """A directory descriptor or AT_FDCWD."""
    return Arg(name, "dirfd")


def pid(name: str = "pid") -> Arg:
    """A process or thread id."""
    return Arg(name, "pid")


def mode(name: str = "mode") -> Arg:
    """Permission bits."""
    return Arg(name, "mode")


def flags(name: str, of: str) -> Arg:
    """Bits named by the flag set `of`."""
    return Arg(name, "flags", of)


def enum(name: str, of: str) -> Arg:
    """One value named by the enumeration `of`."""
    return Arg(name, "enum", of)


def ptr(name: str) -> Arg:
    """An address whose memory the call neither reads nor writes in a way that matters here."""
    return Arg(name, "ptr")


def path(name: str = "pathname") -> Arg:
    """A path: NUL-terminated, read."""
    return Arg(name, "path", specs=(Spec(Op.STRING, False),))


def in_string(name: str) -> Arg:
    """A NUL-terminated string, read."""
    return Arg(name, "string", specs=(Spec(Op.STRING, False),))


def out_string(name: str) -> Arg:
    """A NUL-terminated string, written."""
    return Arg(name, "string", specs=(Spec(Op.STRING, True, when=SUCCESS),))


def in_strings(name: str) -> Arg:
    """A NULL-terminated array of strings, read."""
    return Arg(name, "strings", specs=(Spec(Op.STRINGS, False),))


def in_buf(name: str, *, size: str) -> Arg:
    """Bytes read, as many as the argument `size` says."""
    return Arg(name, "buffer", count=size, specs=(Spec(Op.ARG, False, size, size=1),))


def out_buf(name: str, *, size: str, written: str = RESULT, of: str = "") -> Arg:
    """Bytes written: min(result, `size`), or with `written=""` all of `size` where the call succeeds."""
    if written == RESULT:
        spec = Spec(Op.RESULT, True, size, POSITIVE, size=1)
    else:
        spec = Spec(Op.ARG, True, size, SUCCESS, size=1)
    return Arg(name, "records" if of else "buffer", of, count=written or size, specs=(spec,))


def inout_buf(name: str, *, size: str, when: When = ALWAYS) -> Arg:
    """Bytes read and written, as many as the argument `size` says."""
    return Arg(
        name, "buffer", count=size, specs=(Spec(Op.ARG, False, size, size=1),
        Spec(Op.ARG, True, size, when, size=1))
    )


def in_struct(name: str, layout: str) -> Arg:
    """A structure, read."""
    return Arg(name, "struct", layout, specs=(Spec(Op.FIXED, False, size=size_of(layout)),))


def out_struct(name: str, layout: str, when: When = SUCCESS) -> Arg:
    """A structure, written."""
    return Arg(name, "struct", layout, specs=(Spec(Op.FIXED, True, when=when, size=size_of(layout)),))


def inout_struct(name: str, layout: str, when: When = ALWAYS) -> Arg:
    """A structure, read and written."""
    length = size_of(layout)
    return Arg(
        name, "struct", layout, specs=(Spec(Op.FIXED, False, size=length),
        Spec(Op.FIXED, True, when=when, size=length))
    )


def in_array(name: str, layout: str, *, count: str) -> Arg:
    """`count` structures, read."""
    return Arg(name, "array", layout, count, (Spec(Op.ARG, False, count, size=size_of(layout)),))


def out_array(name: str, layout: str, *, count: str, written: str = "", when: When = SUCCESS) -> Arg:
    """Structures written: `count` of them, or with `written=RESULT` min(result, `count`)."""
    each = size_of(layout)
    if written == RESULT:
        spec = Spec(Op.RESULT, True, count, POSITIVE, size=each, unit=each)
    else:
        spec = Spec(Op.ARG, True, count, when, size=each)
    return Arg(name, "array", layout, written or count, (spec,))


def inout_array(name: str, layout: str, *, count: str, when: When = ALWAYS) -> Arg:
    """`count` structures, read and written."""
    each = size_of(layout)
    return Arg(
        name, "array", layout, count, (Spec(Op.ARG, False, count, size=each),
        Spec(Op.ARG, True, count, when, size=each))
    )


def array(name: str, layout: str, count: str, *specs: Spec) -> Arg:
    """An array with effects of its own."""
    return Arg(name, "array", layout, count, specs)


def iovec_in(name: str, *, count: str) -> Arg:
    """An iovec array whose bytes are read."""
    return Arg(name, "iovec", count=count, specs=(Spec(Op.IOVEC, False, count),))


def iovec_out(name: str, *, count: str) -> Arg:
    """An iovec array into which `result` bytes are written."""
    return Arg(name, "iovec", count=count, specs=(Spec(Op.IOVEC, True, count, POSITIVE),))


def msghdr_in(name: str) -> Arg:
    """A message to send."""
    return Arg(name, "msghdr", specs=(Spec(Op.MSGHDR, False),))


def msghdr_out(name: str) -> Arg:
    """A message received; the call also writes the header."""
    return Arg(name, "msghdr", specs=(Spec(Op.MSGHDR, True, when=SUCCESS),))


def sockaddr_in(name: str, *, length: str) -> Arg:
    """A socket address, read."""
    return Arg(name, "sockaddr", count=length, specs=(Spec(Op.ARG, False, length, size=1),))


def sockaddr_out(name: str, *, length: str) -> Arg:
    """A socket address, written; the argument `length` points to its capacity and length."""
    return Arg(name, "sockaddr", count=length, specs=(Spec(Op.LENPTR, True, length, SUCCESS, size=1),))


def lenptr(name: str, when: When = ALWAYS) -> Arg:
    """A pointer to a 32-bit length, capacity before and length after."""
    return inout_struct(name, "u32", when)


def counted(
    name: str, layout: str, *, header: int, each: int, at: int, width: int, out: bool = True,
    when: When = ALWAYS
) -> Arg:
    """`header` bytes, then `each` times the count that lies at offset `at` (`width` bytes); also read."""
    packed = header | each << 16
    specs: tuple[Spec, ...] = (Spec(Op.COUNTED, False, size=packed, unit=width, off2=at),)
    if out:
        specs += (Spec(Op.COUNTED, True, when=when, size=packed, unit=width, off2=at),)
    return Arg(name, "struct", layout, specs=specs)


def via(arg: Arg, *, pointer: int, at: int, width: int, each: int = 1, out: bool = True,
when: When = ALWAYS) -> Arg:
    """`arg` with memory behind the pointer at offset `pointer`: `each` times the count at offset `at`."""
    spec = Spec(Op.VIA, out, when=when if out else ALWAYS, size=each, unit=width, off=pointer, off2=at)
    return Arg(arg.name, arg.type, arg.of, arg.count, (*arg.specs, spec))


def special(name: str, which: Special, *, out: bool, type: str = "ptr", of: str = "") -> Arg:
    """Memory that only the core's own code can state."""
    return Arg(name, type, of, specs=(Spec(Op.SPECIAL, out, when=SUCCESS if out else ALWAYS,
    size=int(which)),))


def writes(argument: str, length: int) -> tuple[str, Spec]:
    """For `case(also=...)`: the call writes `length` bytes at `argument`."""
    return argument, Spec(Op.FIXED, True, size=length)


def _resolve(name: str, args: tuple[Arg, ...], also: tuple[tuple[str, Spec], ...] = ()) -> tuple[Effect, ...]:
    index = {arg.name: i for i, arg in enumerate(args)}
    if len(index) != len(args) or len(args) > 6:
        raise ValueError(f"{name}: argument names must differ and be six at most")
    declared = [(i, spec) for i, arg in enumerate(args) for spec in arg.specs]
    declared += [(index[argument], spec) for argument, spec in also]
    return tuple(
        Effect(
            spec.op,
            spec.out,
            i,
            index[spec.length] if spec.length else NO_ARG,
            spec.when,
            spec.size,
            spec.unit,
            spec.off,
            spec.off2,
        )
        for i, spec in declared
    )


class Pending:
    """A case before its call is known."""

    def __init__(
        self, key: int, name: str, args: tuple[Arg, ...], treat: Treat, block: Block | None,
        also: tuple[tuple[str, Spec], ...],
    ) -> None:  # fmt: skip
        self.key, self.name, self.args = key, name, args
        self.treat, self.block, self.also = treat, block, also


def case(
    key: int,
    name: str,
    *args: Arg,
    treat: Treat = FEED,
    block: Block | None = None,
    also: tuple[tuple[str, Spec], ...] = (),
) -> Pending:
    """One case of a call with a selector: `args` are the arguments from the call's `case_from` on.

    `block` defaults to the call's own; `also` adds effects on the arguments before.
    """
    return Pending(key, name, args, treat, block, also)


def call(
    number: int,
    name: str,
    *args: Arg,
    family: str,
    treat: Treat = FEED,
    block: Block = NEVER,
    waits_on: str | None = None,
    flags: Flag = NO_FLAG,
    returns: str = "int",
    selector: Selector | None = None,
    case_from: int = 0,
    cases: list[Pending] | None = None,
) -> Call:
    """Declare a call. FD and PATH among the flags, and blocking on a path, follow from the arguments.

    With a `selector`, a case's arguments replace those from position `case_from` on.
    """
    has_path = any(arg.type == "path" for arg in args)
    if args and args[0].type == "fd":
        flags |= Flag.FD
    if has_path:
        flags |= Flag.PATH
        if block is NEVER:
            block, waits_on = MAY, "path"
    done: list[Case] = []
    for pending in sorted(cases or (), key=lambda pending: pending.key):
        whole = args[:case_from] + pending.args
        done.append(
            Case(
                pending.key,
                pending.name,
                whole,
                _resolve(f"{name} {pending.name}", whole, pending.also),
                pending.treat,
                block if pending.block is None else pending.block,
            )
        )
    return Call(
        number, name, args, _resolve(name, args), treat, block, waits_on, flags, family, returns, selector,
        tuple(done), {one.key: one for one in done},
    )  # fmt: skip
