"""The local variables of Python frames, as text, read from memory: of CPython 3.11 to 3.14.

Numbers, text, bytes and the built-in containers show their values, shortened; anything else its type and
address. Nothing of the program runs, so no `__repr__` does.
"""

from __future__ import annotations

import struct
from contextlib import suppress

from replayer.memory import Memory, MemoryFault, read_string, read_u64
from replayer.pylayout import Layout, LayoutError, read_text
from replayer.pystack import PythonFrame

_ITEMS = 8
_DEPTH = 2
_TEXT = 80
_DIGITS = 64
_MOST_LOCALS = 256


def locals_of(memory: Memory, layout: Layout, frame: PythonFrame) -> dict[str, str]:
    """Names and values of the local variables that are set; empty where they cannot be read."""
    found: dict[str, str] = {}
    with suppress(MemoryFault, LayoutError, struct.error):
        names = _tuple(memory, layout, read_u64(memory, frame.code + layout.code_localsnames))
        reader = _Values(memory, layout)
        for index, name in enumerate(names[:_MOST_LOCALS]):
            value = read_u64(memory, frame.frame + layout.frame_locals + 8 * index)
            if layout.tagged:
                value &= ~3
            if value:
                with suppress(MemoryFault, LayoutError):
                    found[read_text(memory, layout, name)] = reader.text(value)
    return found


def _tuple(memory: Memory, layout: Layout, address: int, limit: int = 1 << 16) -> list[int]:
    """The items of a tuple object."""
    size = min(read_u64(memory, address + 16), limit)
    start = address + (32 if layout.version >= (3, 14) else 24)
    return list(struct.unpack(f"<{size}Q", memory.read(start, 8 * size)))


class _Values:
    """Turns objects into text."""

    def __init__(self, memory: Memory, layout: Layout) -> None:
        self._memory = memory
        self._layout = layout
        self._types: dict[int, str] = {}

    def text(self, address: int, depth: int = 0) -> str:
        """An object as text. MemoryFault where it is not one."""
        name = self._type(address)
        match name:
            case "NoneType":
                return "None"
            case "bool":
                return "True" if self._int(address) else "False"
            case "int":
                return str(self._int(address))
            case "float":
                (value,) = struct.unpack("<d", self._memory.read(address + 16, 8))
                return repr(value)
            case "str":
                return _shortened(repr(read_text(self._memory, self._layout, address, _TEXT + 1)))
            case "bytes":
                size = min(read_u64(self._memory, address + 16), _TEXT + 1)
                return _shortened(repr(self._memory.read(address + 32, size)))
            case "cell":
                inside = read_u64(self._memory, address + 16)
                return self.text(inside, depth) if inside else "(not set)"
            case "tuple" | "list" | "dict" if depth < _DEPTH:
                return self._container(name, address, depth)
            case _:
                return f"<{name} at {address:#x}>"

    def _type(self, address: int) -> str:
        kind = read_u64(self._memory, address + 8)
        if kind not in self._types:
            name = read_string(self._memory, read_u64(self._memory, kind + 24), 128)
            self._types[kind] = name.decode("utf-8", "replace")
        return self._types[kind]

    def _int(self, address: int) -> int:
        tag = read_u64(self._memory, address + 16)
        if self._layout.version >= (3, 12):
            size, sign = tag >> 3, 1 - (tag & 3)
        else:
            signed = tag - (1 << 64) if tag >> 63 else tag
            size, sign = abs(signed), (signed > 0) - (signed < 0)
        if size > _DIGITS:
            raise LayoutError("a number of thousands of digits")
        digits = struct.unpack(f"<{size}I", self._memory.read(address + 24, 4 * size))
        value = sum(int(digit) << 30 * index for index, digit in enumerate(digits))
        return sign * value

    def _container(self, name: str, address: int, depth: int) -> str:
        size = read_u64(self._memory, address + 16)
        if name == "dict":
            items = self._dict(address, depth)
            opening, closing = "{", "}"
        else:
            if name == "tuple":
                addresses = _tuple(self._memory, self._layout, address, _ITEMS)
                opening, closing = "(", ",)" if size == 1 else ")"
            else:
                at = read_u64(self._memory, address + 24)
                count = min(size, _ITEMS)
                addresses = list(struct.unpack(f"<{count}Q", self._memory.read(at, 8 * count)))
                opening, closing = "[", "]"
            items = [self.text(one, depth + 1) for one in addresses if one]
        if size > len(items):
            items.append(f"... {size - len(items)} more")
        return opening + ", ".join(items) + closing

    def _dict(self, address: int, depth: int) -> list[str]:
        keys = read_u64(self._memory, address + 32)
        log_bytes, kind = struct.unpack("<BB", self._memory.read(keys + 9, 2))
        if kind not in (0, 1) or log_bytes > 40:
            return []
        entry = 24 if kind == 0 else 16
        start = keys + 32 + (1 << log_bytes)
        count = min(read_u64(self._memory, keys + 24), 4 * _ITEMS)
        found: list[str] = []
        for index in range(count):
            data = self._memory.read(start + entry * index, entry)
            key, value = struct.unpack("<QQ", data[-16:])
            if value and len(found) < _ITEMS:
                found.append(f"{self.text(key, depth + 1)}: {self.text(value, depth + 1)}")
        return found


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT else text[: _TEXT - 3] + "..."
