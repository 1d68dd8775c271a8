"""What decoders work with: fields, the style of the text, the memory that an event's regions hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from interfaces.abi import Region, RegionKind

ADDRESS, NUMBER, PROCESS, TIME = "<addr>", "<n>", "<pid>", "<time>"
"""What the deterministic form shows in place of what differs between recordings."""

PIECES = 256
"""Regions that are put together at the most: the core splits a large output into a few."""


@dataclass(frozen=True, slots=True)
class Field:
    """A decoded value: `value` is its text; `children` are its fields or elements."""

    name: str
    type: str
    value: str
    children: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Style:
    """How values are shown.

    `deterministic` hides addresses, process ids, times, inode numbers. Strings are cut after `strings`
    bytes and arrays after `elements`, each marked with "...".
    """

    deterministic: bool = False
    strings: int = 32
    elements: int = 32


class EventLike(Protocol):
    """What an event must have: `tracefile`'s EventView, `interfaces.abi.Event`, or the like."""

    @property
    def task(self) -> int: ...
    @property
    def kind(self) -> int: ...
    @property
    def nr(self) -> int: ...
    @property
    def args(self) -> Sequence[int]: ...
    @property
    def result(self) -> int: ...


@dataclass(frozen=True, slots=True)
class PlainEvent:
    """An event by itself, for callers that have a row of an EVENT_DTYPE array."""

    task: int
    kind: int
    nr: int
    args: tuple[int, ...]
    result: int


def plain(event: Any) -> EventLike:
    """`event`, made a PlainEvent where it is a row of a numpy array."""
    if hasattr(event, "dtype"):
        args = tuple(int(word) for word in event["args"])
        return PlainEvent(int(event["task"]), int(event["kind"]), int(event["nr"]), args,
        int(event["result"]))
    return event  # type: ignore[no-any-return]


class Memory:
    """The program's memory as far as an event's regions hold it."""

    def __init__(self, regions: Iterable[Region]) -> None:
        self._regions = [region for region in regions if region.kind in (RegionKind.OUT, RegionKind.IN)]

    def read(self, address: int, size: int, kind: RegionKind | None = None) -> bytes:
        """Up to `size` bytes at `address`, fewer where the regions end.

        With `kind` only from regions of that kind; without, output before input.
        """
        if not address:
            return b""
        if kind is None:
            return self.read(address, size, RegionKind.OUT) or self.read(address, size, RegionKind.IN)
        found = bytearray()
        for _ in range(PIECES):
            if len(found) >= size:
                break
            piece = self._piece(address + len(found), size - len(found), kind)
            if not piece:
                break
            found += piece
        return bytes(found)

    def _piece(self, address: int, size: int, kind: RegionKind) -> bytes:
        best = b""
        for region in self._regions:
            start = address - region.addr
            if region.kind == kind and 0 <= start < len(region.data):
                piece = region.data[start : start + size]
                if len(piece) > len(best):
                    best = piece
        return best

    def string(self, address: int, kind: RegionKind = RegionKind.IN) -> tuple[bytes, bool] | None:
        """The bytes of the string at `address` up to its NUL, and whether the NUL was there."""
        data = self.read(address, 4096, kind)
        if not data:
            return None
        text, end, _ = data.partition(b"\0")
        return text, bool(end)

    def strings(self, arg: int) -> list[tuple[bytes, bool] | None]:
        """The strings that were logged one by one as input of argument number `arg`."""
        found: list[tuple[bytes, bool] | None] = []
        for region in self._regions:
            if region.kind == RegionKind.IN and region.arg == arg:
                text, end, _ = region.data.partition(b"\0")
                found.append((text, bool(end)))
        return found
