"""Conditions of breakpoints as gdb compiles them: agent expressions, evaluated where a thread stopped."""

from __future__ import annotations

import struct
from collections.abc import Callable

_MASK = (1 << 64) - 1
_MOST_STEPS = 10_000


class AgentError(Exception):
    """An expression that cannot be evaluated; gdb then has to look itself."""


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


_BINARY: dict[int, Callable[[int, int], int]] = {
    0x02: lambda a, b: a + b,
    0x03: lambda a, b: a - b,
    0x04: lambda a, b: a * b,
    0x05: lambda a, b: int(_signed(a) / _signed(b)),
    0x06: lambda a, b: a // b,
    0x07: lambda a, b: _signed(a) - int(_signed(a) / _signed(b)) * _signed(b),
    0x08: lambda a, b: a % b,
    0x09: lambda a, b: a << min(b, 64),
    0x0A: lambda a, b: _signed(a) >> min(b, 63),
    0x0B: lambda a, b: a >> min(b, 64),
    0x0F: lambda a, b: a & b,
    0x10: lambda a, b: a | b,
    0x11: lambda a, b: a ^ b,
    0x13: lambda a, b: int(a == b),
    0x14: lambda a, b: int(_signed(a) < _signed(b)),
    0x15: lambda a, b: int(a < b),
}
_READ = {0x17: 1, 0x18: 2, 0x19: 4, 0x1A: 8}
_CONST = {0x22: 1, 0x23: 2, 0x24: 4, 0x25: 8}


def evaluate(code: bytes, register: Callable[[int], int], read: Callable[[int, int], bytes]) -> int:
    """The value an expression leaves. `register` gives a register by gdb's number, `read` memory.

    AgentError for what is not understood, or divides by zero; what `read` raises passes through.
    """
    stack: list[int] = []
    at = 0
    try:
        for _step in range(_MOST_STEPS):
            op = code[at]
            at += 1
            if op in _BINARY:
                right, left = stack.pop(), stack.pop()
                stack.append(_BINARY[op](left, right) & _MASK)
            elif op in _READ:
                stack.append(int.from_bytes(read(stack.pop(), _READ[op]), "little"))
            elif op in _CONST:
                size = _CONST[op]
                stack.append(int.from_bytes(code[at : at + size], "big"))
                at += size
            elif op == 0x27:
                return stack.pop()
            elif op == 0x20:
                at = struct.unpack_from(">H", code, at)[0] if stack.pop() else at + 2
            elif op == 0x21:
                at = struct.unpack_from(">H", code, at)[0]
            elif op == 0x26:
                stack.append(register(struct.unpack_from(">H", code, at)[0]) & _MASK)
                at += 2
            else:
                at = _other(op, code, at, stack)
    except (IndexError, struct.error, ZeroDivisionError) as error:
        raise AgentError(str(error)) from None
    raise AgentError("it does not end")


def _other(op: int, code: bytes, at: int, stack: list[int]) -> int:
    """Operations on the stack alone; where the next one is."""
    if op == 0x0E:
        stack.append(int(not stack.pop()))
    elif op == 0x12:
        stack.append(~stack.pop() & _MASK)
    elif op in (0x16, 0x2A):
        bits = code[at]
        at += 1
        value = stack.pop() & (1 << bits) - 1
        if op == 0x16 and value >> bits - 1:
            value |= _MASK & ~((1 << bits) - 1)
        stack.append(value)
    elif op == 0x28:
        stack.append(stack[-1])
    elif op == 0x29:
        stack.pop()
    elif op == 0x2B:
        stack[-1], stack[-2] = stack[-2], stack[-1]
    elif op == 0x32:
        stack.append(stack[-1 - code[at]])
        at += 1
    elif op == 0x33:
        stack[-3:] = [stack[-1], stack[-3], stack[-2]]
    else:
        raise AgentError(f"operation {op:#x}")
    return at
