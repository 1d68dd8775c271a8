"""Reading the memory of a process, and what is mapped in it.

Everything above (unwinding, symbols, divergence reports, sessions) asks for memory through the `Memory`
protocol, so that a live process, a core file or a test's dictionary of bytes serve equally well.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, overload

PAGE = 4096


class MemoryFault(Exception):
    """Memory that was asked for is not mapped or cannot be read. Fields: `address`, `size` (bytes)."""

    def __init__(self, address: int, size: int) -> None:
        super().__init__(f"{size} bytes at {address:#x} cannot be read")
        self.address = address
        self.size = size


class Memory(Protocol):
    """Something whose bytes can be read by address."""

    def read(self, address: int, size: int) -> bytes:
        """Exactly `size` bytes at `address`; MemoryFault when not all of them can be read."""


class ProcessMemory:
    """The memory of a live process of ours, through /proc/PID/mem (a same-user child needs no ptrace)."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)

    def read(self, address: int, size: int) -> bytes:
        """Exactly `size` bytes at `address`; MemoryFault when not all of them can be read."""
        if not 0 <= address < 1 << 63:
            raise MemoryFault(address, size)
        parts: list[bytes] = []
        done = 0
        while done < size:
            try:
                part = os.pread(self._fd, size - done, address + done)
            except (OSError, ValueError):
                part = b""
            if not part:
                raise MemoryFault(address, size)
            parts.append(part)
            done += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Give the descriptor back; reading afterwards is an error."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class CachedMemory:
    """Memory that does not change while the cache lives (code and read-only data), kept by pages."""

    def __init__(self, memory: Memory, limit: int = 4096) -> None:
        self._memory = memory
        self._pages: dict[int, bytes] = {}
        self._limit = limit

    def read(self, address: int, size: int) -> bytes:
        """Exactly `size` bytes at `address`; MemoryFault when not all of them can be read."""
        first = address // PAGE
        last = (address + max(size, 1) - 1) // PAGE
        if first == last:
            start = address - first * PAGE
            return self._page(first)[start : start + size]
        whole = b"".join(self._page(number) for number in range(first, last + 1))
        start = address - first * PAGE
        return whole[start : start + size]

    def _page(self, number: int) -> bytes:
        page = self._pages.get(number)
        if page is None:
            if len(self._pages) >= self._limit:
                self._pages.clear()
            page = self._memory.read(number * PAGE, PAGE)
            self._pages[number] = page
        return page


def read_u64(memory: Memory, address: int) -> int:
    """The unsigned 64-bit word at `address`; MemoryFault when it cannot be read."""
    value: int = struct.unpack("<Q", memory.read(address, 8))[0]
    return value


def read_string(memory: Memory, address: int, limit: int = 4096) -> bytes:
    """The string at `address` without its NUL, at most `limit` bytes; MemoryFault at a hole."""
    parts: list[bytes] = []
    done = 0
    while done < limit:
        size = min(PAGE - (address + done) % PAGE, limit - done)
        part = memory.read(address + done, size)
        end = part.find(b"\0")
        if end >= 0:
            parts.append(part[:end])
            break
        parts.append(part)
        done += size
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class Mapping:
    """One line of /proc/PID/maps. Addresses and offset in bytes; `path` is empty for anonymous memory."""

    start: int
    end: int
    prot: str
    offset: int
    path: str

    @property
    def executable(self) -> bool:
        """Whether code can run in it."""
        return "x" in self.prot

    @property
    def writable(self) -> bool:
        """Whether the program can write to it."""
        return "w" in self.prot


class Mappings(Sequence[Mapping]):
    """The mappings of an address space, by address."""

    def __init__(self, mappings: Iterable[Mapping]) -> None:
        self._all = sorted(mappings, key=lambda mapping: mapping.start)
        self._starts = [mapping.start for mapping in self._all]

    @classmethod
    def parse(cls, text: str) -> Self:
        """From the text of a /proc/PID/maps file; lines that are not mappings are left out."""
        found = []
        for line in text.splitlines():
            fields = line.split(None, 5)
            if len(fields) < 5 or "-" not in fields[0]:
                continue
            start, end = fields[0].split("-")
            path = fields[5] if len(fields) > 5 else ""
            found.append(Mapping(int(start, 16), int(end, 16), fields[1], int(fields[2], 16), path))
        return cls(found)

    @classmethod
    def of(cls, pid: int) -> Self:
        """Of a live process; OSError when it is gone."""
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as file:
            return cls.parse(file.read())

    def at(self, address: int) -> Mapping | None:
        """The mapping that holds `address`, or None."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0 and address < self._all[index].end:
            return self._all[index]
        return None

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, index: int) -> Mapping: ...

    @overload
    def __getitem__(self, index: slice) -> list[Mapping]: ...

    def __getitem__(self, index: int | slice) -> Mapping | list[Mapping]:
        return self._all[index]
