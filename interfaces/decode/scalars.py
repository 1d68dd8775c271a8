"""Scalars: numbers, flags, descriptors, modes, strings."""

from __future__ import annotations

from collections.abc import Callable

from interfaces.decode.field import ADDRESS, NUMBER, PROCESS, TIME, Style
from interfaces.names import ENUMS, FLAGS, enum_text, flags_text
from interfaces.names.ioctls import request_name
from interfaces.names.signals import signal_name

_ESCAPES = {9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def quoted(data: bytes, style: Style, total: int | None = None) -> str:
    """A C string literal; "..." follows where `data` (or `total`, its true length) is longer than shown."""
    shown = data[: style.strings]
    out: list[str] = []
    for i, byte in enumerate(shown):
        if byte in _ESCAPES:
            out.append(_ESCAPES[byte])
        elif 32 <= byte < 127:
            out.append(chr(byte))
        else:
            following = shown[i + 1] if i + 1 < len(shown) else 0
            out.append(f"\\{byte:03o}" if 48 <= following <= 57 else f"\\{byte:o}")
    more = max(len(data), total or 0) > len(shown)
    return '"' + "".join(out) + '"' + ("..." if more else "")


def signed(value: int, bits: int = 32) -> int:
    """The low `bits` of `value` as a signed number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def hexadecimal(value: int) -> str:
    """As C's %#x: 0 without a prefix."""
    return f"{value:#x}" if value else "0"


def address(value: int, style: Style) -> str:
    """A pointer; hidden in the deterministic form, but for NULL and small invalid ones."""
    if not value:
        return "NULL"
    return ADDRESS if style.deterministic and value > 4096 else f"{value:#x}"


def mode_text(mode: int) -> str:
    """`S_IFREG|0644`."""
    kind = ENUMS["filetype"].get(mode & 0o170000)
    bits = "".join(
        name + "|" for bit, name in ((0o4000, "S_ISUID"), (0o2000, "S_ISGID"),
        (0o1000, "S_ISVTX")) if mode & bit
    )
    rest = mode & (0o777 if kind else 0o170777)
    return (f"{kind}|" if kind else "") + bits + f"0{rest:02o}"


def device(value: int) -> str:
    """`makedev(0x8, 0x1)`."""
    major = (value >> 8 & 0xFFF) | (value >> 32 & ~0xFFF)
    minor = (value & 0xFF) | (value >> 12 & 0xFFFFFF00)
    return f"makedev({major:#x}, {minor:#x})"


def wait_status(status: int) -> str:
    """`[{WIFEXITED(s) && WEXITSTATUS(s) == 0}]`."""
    status &= 0xFFFFFFFF
    low = status & 0x7F
    if status == 0xFFFF:
        return "{WIFCONTINUED(s)}"
    if low == 0:
        return f"{{WIFEXITED(s) && WEXITSTATUS(s) == {status >> 8 & 0xFF}}}"
    if low == 0x7F:
        return f"{{WIFSTOPPED(s) && WSTOPSIG(s) == {signal_name(status >> 8 & 0xFF)}}}"
    dumped = " && WCOREDUMP(s)" if status & 0x80 else ""
    return f"{{WIFSIGNALED(s) && WTERMSIG(s) == {signal_name(low)}{dumped}}}"


def sigset(mask: int) -> str:
    """`[INT CHLD]`, `~[KILL]` where most signals are in it."""
    members = [n for n in range(1, 65) if mask >> (n - 1) & 1]
    if len(members) > 42:
        missing = [n for n in range(1, 65) if n not in members]
        return "~[" + " ".join(_short(n) for n in missing) + "]"
    return "[" + " ".join(_short(n) for n in members) + "]"


def _short(number: int) -> str:
    return signal_name(number).removeprefix("SIG")


def socket_type(value: int) -> str:
    """`SOCK_STREAM|SOCK_CLOEXEC`."""
    flags = value & ~0xF
    text = enum_text("socktype", value & 0xF)
    return f"{text}|{flags_text('sockflags', flags)}" if flags else text


def futex_operation(value: int) -> str:
    """`FUTEX_WAIT_PRIVATE`, `FUTEX_WAIT_BITSET|FUTEX_CLOCK_REALTIME`."""
    text = enum_text("futexop", value & 127)
    if value & 128:
        text += "_PRIVATE"
    rest = value & ~0xFF
    return f"{text}|{flags_text('futexflags', rest)}" if rest else text


def clock(value: int) -> str:
    """`CLOCK_MONOTONIC`; a negative one is a process's or a descriptor's clock."""
    number = signed(value)
    return f"{number:#x}" if number < 0 else enum_text("clockid", number)


def scheduler(value: int) -> str:
    """`SCHED_FIFO|SCHED_RESET_ON_FORK`."""
    text = enum_text("sched", value & ~0x40000000)
    return text + "|SCHED_RESET_ON_FORK" if value & 0x40000000 else text


def key(value: int) -> str:
    """A System V key."""
    return "IPC_PRIVATE" if not value & 0xFFFFFFFF else f"{value & 0xFFFFFFFF:#x}"


def limit(value: int) -> str:
    """A resource limit: `1024*1024`, `RLIM64_INFINITY`."""
    if value == 2**64 - 1:
        return "RLIM64_INFINITY"
    return f"{value // 1024}*1024" if value and value % 1024 == 0 else str(value)


def identifier(value: int) -> str:
    """A user or group id; -1 means "leave it"."""
    return "-1" if value & 0xFFFFFFFF == 0xFFFFFFFF else str(value & 0xFFFFFFFF)


def process(value: int, style: Style) -> str:
    """A process id; 0, 1 and negative small ones have a meaning of their own."""
    number = signed(value)
    return PROCESS if style.deterministic and not -1 <= number <= 1 else str(number)


def directory(value: int) -> str:
    """A directory descriptor or AT_FDCWD."""
    number = signed(value)
    return "AT_FDCWD" if number == -100 else str(number)


def hidden(text: str, mark: str, style: Style) -> str:
    """`mark` in the deterministic form."""
    return mark if style.deterministic else text


Render = Callable[[int, Style], str]

SCALARS: dict[str, Render] = {
    "int": lambda v, _: str(signed(v)),
    "msec": lambda v, _: str(signed(v)),
    "uint": lambda v, _: str(v & 0xFFFFFFFF),
    "long": lambda v, _: str(signed(v, 64)),
    "size": lambda v, _: str(v),
    "hex": lambda v, _: hexadecimal(v & 0xFFFFFFFF),
    "hex64": lambda v, s: address(v, s) if v >= 1 << 32 else hexadecimal(v),
    "ptr": address,
    "fd": lambda v, _: str(signed(v)),
    "dirfd": lambda v, _: directory(v),
    "pid": process,
    "uid": lambda v, _: identifier(v),
    "mode": lambda v, _: mode_text(v & 0xFFFFFFFF),
    "mode16": lambda v, _: mode_text(v & 0xFFFF),
    "dev": lambda v, s: hidden(device(v), NUMBER, s),
    "cpu": lambda v, s: hidden(str(v), NUMBER, s),
    "ino": lambda v, s: hidden(str(v), NUMBER, s),
    "sec": lambda v, s: hidden(str(signed(v, 64)), TIME, s),
    "nsec": lambda v, s: hidden(str(signed(v, 64)), TIME, s),
    "ticks": lambda v, s: hidden(str(signed(v, 64)), TIME, s),
    "signo": lambda v, _: signal_name(signed(v)),
    "signal": lambda v, _: signal_name(signed(v)),
    "sigset": lambda v, _: sigset(v),
    "waitstatus": lambda v, _: wait_status(v),
    "rlim": lambda v, _: limit(v),
    "socktype": lambda v, _: socket_type(v & 0xFFFFFFFF),
    "futexop": lambda v, _: futex_operation(v & 0xFFFFFFFF),
    "clockid": lambda v, _: clock(v),
    "sched": lambda v, _: scheduler(v & 0xFFFFFFFF),
    "ipckey": lambda v, _: key(v),
    "ioctl": lambda v, _: request_name(v),
    "be16": lambda v, _: str((v & 0xFF) << 8 | v >> 8 & 0xFF),
    "be32": lambda v, _: str(int.from_bytes((v & 0xFFFFFFFF).to_bytes(4, "little"), "big")),
    "x8": lambda v, _: hexadecimal(v),
    "x16": lambda v, _: hexadecimal(v),
    "x32": lambda v, _: hexadecimal(v),
    "x64": lambda v, s: address(v, s) if v >= 1 << 32 else hexadecimal(v),
}
"""Renderers by type, of a value without its sign."""


def scalar(type: str, value: int, style: Style, naming: str = "", of: str = "") -> str:
    """The text of a scalar; `naming` "|" shows it by a flag set, "=" by an enumeration."""
    if naming == "|" and of in FLAGS:
        return flags_text(of, value)
    if naming == "=" and of == "signal":
        return signal_name(signed(value))
    if naming == "=" and of in ENUMS:
        return enum_text(of, value)
    render = SCALARS.get(type)
    return render(value, style) if render else str(value)
