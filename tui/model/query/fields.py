"""What a filter can ask of an event: names, types, and what they mean."""

from __future__ import annotations

import errno
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum

from interfaces.abi import Kind
from interfaces.calls import BY_NAME, CALLS
from interfaces.libspec import naming
from interfaces.names.signals import signal_name

ERRNOS = {name: number for number, name in errno.errorcode.items()}
SIGNALS = {signal_name(number): number for number in range(1, 65)}
SIGNALS |= {member.name: int(member) for member in signal.Signals}
KINDS = {kind.name.lower(): int(kind) for kind in Kind}
FAMILIES = sorted({call.family for call in CALLS.values()})


class Cost(IntEnum):
    """What must be read to know a field."""

    COLUMNS = 0
    HEADERS = 1
    DECODE = 2


class Type(Enum):
    """How values are written and compared."""

    CALL = "a call name or %family"
    FAMILY = "a family of calls"
    KIND = "a kind of event"
    ERRNO = "an error name or number"
    SIGNAL = "a signal name or number"
    INTEGER = "a number"
    DURATION = "a time such as 10ms"
    TEXT = "a text, a pattern with * and ?, or /regex/"
    FLAG = "nothing: it is true or not"


@dataclass(frozen=True, slots=True)
class Field:
    """A name that filters may use."""

    name: str
    type: Type
    cost: Cost
    help: str


FIELDS = {
    field.name: field
    for field in (
        Field("call", Type.CALL, Cost.COLUMNS, "name of the system call, or library function"),
        Field("family", Type.FAMILY, Cost.COLUMNS, "family of the system call"),
        Field("kind", Type.KIND, Cost.COLUMNS, "kind of event: syscall, signal, exec, ..."),
        Field("signal", Type.SIGNAL, Cost.COLUMNS, "signal that was delivered or killed"),
        Field("errno", Type.ERRNO, Cost.COLUMNS, "error with which the call failed"),
        Field("failed", Type.FLAG, Cost.COLUMNS, "the call failed"),
        Field("blocked", Type.FLAG, Cost.COLUMNS, "the call gave other threads the turn"),
        Field("echoed", Type.FLAG, Cost.COLUMNS, "wrote to the recording's output"),
        Field("unknown", Type.FLAG, Cost.COLUMNS, "answered by rr-py itself"),
        Field("duration", Type.DURATION, Cost.COLUMNS, "time between entry and exit"),
        Field("time", Type.DURATION, Cost.COLUMNS, "time since the recording's start"),
        Field("pid", Type.INTEGER, Cost.COLUMNS, "process"),
        Field("tid", Type.INTEGER, Cost.COLUMNS, "thread"),
        Field("domain", Type.INTEGER, Cost.COLUMNS, "domain of the trace"),
        Field("process", Type.TEXT, Cost.COLUMNS, "short name of the process"),
        Field("row", Type.INTEGER, Cost.COLUMNS, "number in the whole trace"),
        Field("event", Type.INTEGER, Cost.HEADERS, "number in its domain"),
        Field("result", Type.INTEGER, Cost.HEADERS, "what the call returned"),
        Field("fd", Type.INTEGER, Cost.HEADERS, "a descriptor among the arguments"),
        Field("arg", Type.INTEGER, Cost.HEADERS, "any argument's word"),
        Field("ip", Type.INTEGER, Cost.HEADERS, "address of the caller"),
        Field("path", Type.TEXT, Cost.DECODE, "a path or address the call names, or a descriptor's"),
        Field("data", Type.TEXT, Cost.DECODE, "bytes that went in or out"),
        Field("text", Type.TEXT, Cost.DECODE, "the line as it is shown"),
    )
}

ORDERED = ("==", "!=", "<", "<=", ">", ">=", "in")
EQUAL = ("==", "!=", "in")
MATCHING = ("==", "!=", "~", "!~", "in")

OPERATORS: dict[Type, tuple[str, ...]] = {
    Type.CALL: MATCHING,
    Type.FAMILY: EQUAL,
    Type.KIND: EQUAL,
    Type.ERRNO: EQUAL,
    Type.SIGNAL: EQUAL,
    Type.INTEGER: ORDERED,
    Type.DURATION: ("<", "<=", ">", ">=", "==", "!="),
    Type.TEXT: MATCHING,
    Type.FLAG: (),
}

_UNITS = {"": 1.0, "ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "m": 60e9, "h": 3600e9}
_SIZES = {"": 1, "k": 1000, "kb": 1000, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9,
          "ki": 1 << 10, "kib": 1 << 10, "mi": 1 << 20, "mib": 1 << 20,
          "gi": 1 << 30, "gib": 1 << 30}  # fmt: skip
_PARTS = re.compile(r"(-?)(0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?)([a-zA-Zµ]*)")


def nanoseconds(text: str) -> float | None:
    """`10ms` as nanoseconds; None where it is no time. A time without unit is in seconds, as shown."""
    match = _PARTS.fullmatch(text)
    if match is None or match[2].lower().startswith("0x") or match[3] not in _UNITS:
        return None
    value = float(match[2]) * (_UNITS[match[3]] if match[3] else 1e9)
    return -value if match[1] else value


def integer(text: str) -> int | None:
    """`4096`, `0x1000`, `4k`, `4KiB`; None where it is no such number."""
    match = _PARTS.fullmatch(text)
    if match is None:
        return None
    if match[2].lower().startswith("0x"):
        value = int(match[2], 16) if not match[3] else None
    elif match[3].lower() in _SIZES:
        value = int(float(match[2]) * _SIZES[match[3].lower()])
    else:
        value = None
    return value if value is None or not match[1] else -value


LIBRARY = 1 << 12
"""Added to the number of a library function, to tell it from system calls."""


def library_calls() -> dict[str, int]:
    """The functions of the interface that the trace was recorded at, by name."""
    return {item.name: LIBRARY + number for number, item in naming.known().items()}


def names_of(type: Type) -> list[str]:
    """The names a value of a type may have; empty where any is possible."""
    makers: dict[Type, Callable[[], list[str]]] = {
        Type.CALL: lambda: [*sorted({*BY_NAME, *library_calls()}), *(f"%{family}" for family in FAMILIES)],
        Type.FAMILY: lambda: FAMILIES,
        Type.KIND: lambda: sorted(KINDS),
        Type.ERRNO: lambda: sorted(ERRNOS),
        Type.SIGNAL: lambda: sorted(SIGNALS),
    }
    maker = makers.get(type)
    return maker() if maker else []
