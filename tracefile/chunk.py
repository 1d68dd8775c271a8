"""What a reader hands out: chunks of events as numpy arrays, and single events as plain objects."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from interfaces import abi
from interfaces.abi import EVENT_SIZE, Region, parse_regions
from interfaces.arrays import numpy
from tracefile.planes import StoredEvents

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

EventArray: TypeAlias = "npt.NDArray[np.void]"

_EVENT = struct.Struct("<IBBHQ6QqQQII")


class EventView(NamedTuple):
    """One event. `number` counts from 0 in its domain; times are CLOCK_MONOTONIC nanoseconds."""

    domain: int
    number: int
    task: int
    kind: int
    flags: int
    nr: int
    ip: int
    args: tuple[int, ...]
    result: int
    time_in: int
    time_out: int
    payload: bytes

    @property
    def regions(self) -> list[Region]:
        """The regions of the payload; ValueError where a hostile trace has none there."""
        return parse_regions(self.payload)


class Chunk:
    """Consecutive events of one domain.

    `events` is a read-only array of EVENT_DTYPE, made when it is first asked for; `raw` are its bytes, put
    together from the planes they are stored as when they are first asked for. The payload is read from the
    file when it is first asked for, so that going through headers alone stays fast.
    `fail` makes the TraceFormatError for events that point outside it.
    """

    __slots__ = ("_events", "_fail", "_payload", "_raw", "_stored", "domain", "first_event")

    def __init__(
        self,
        domain: int,
        first_event: int,
        events: EventArray | bytes | StoredEvents,
        payload: Callable[[], bytes],
        fail: Callable[[str], Exception],
    ) -> None:
        self.domain = domain
        self.first_event = first_event
        self._raw = events if isinstance(events, bytes) else None
        self._stored = events if isinstance(events, StoredEvents) else None
        self._events = None if isinstance(events, bytes | StoredEvents) else events
        self._payload = payload
        self._fail = fail

    def __len__(self) -> int:
        if self._stored is not None:
            return self._stored.events
        return len(self._raw) // EVENT_SIZE if self._raw is not None else len(self.events)

    @property
    def events(self) -> EventArray:
        """The events as an array."""
        if self._events is None:
            self._events = events_from(self.raw)
        return self._events

    @property
    def raw(self) -> bytes:
        """The events as the bytes of struct rr_event."""
        if self._raw is None:
            self._raw = self._stored.raw() if self._stored is not None else self.events.tobytes()
        return self._raw

    def copy_events(self, target: memoryview) -> None:
        """Write the events into `target`, of exactly their size: quicker than asking for `raw`."""
        if self._raw is None and self._stored is not None:
            self._stored.copy_to(target)
        else:
            target[:] = self.raw

    def __repr__(self) -> str:
        return f"<Chunk domain {self.domain}, events {self.first_event}..{self.end_event - 1}>"

    @property
    def end_event(self) -> int:
        """The number of the event that follows this chunk's last one."""
        return self.first_event + len(self)

    @property
    def payload(self) -> bytes:
        """The payload of the whole chunk; offsets in events count from its beginning. May raise
        TraceFormatError."""
        return self._payload()

    def starting_at(self, number: int) -> Chunk:
        """The same chunk without the events before `number`; the payload stays whole."""
        skip = number - self.first_event
        if skip <= 0:
            return self
        return Chunk(self.domain, number, self.raw[skip * EVENT_SIZE :], self._payload, self._fail)

    def event_payload(self, i: int) -> bytes:
        """The payload of the chunk's event `i`, counted from 0 within the chunk."""
        event = self.events[i]
        return self._cut(self.first_event + i, int(event["payload_off"]), int(event["payload_len"]))

    def regions(self, i: int) -> list[Region]:
        """The payload regions of the chunk's event `i`."""
        try:
            return parse_regions(self.event_payload(i))
        except ValueError as error:
            raise self._fail(f"event {self.first_event + i}: {error}") from None

    def view(self, i: int) -> EventView:
        """The chunk's event `i` as a plain object."""
        return next(self.views(i, i + 1))

    def views(self, start: int = 0, stop: int | None = None) -> Iterator[EventView]:
        """The chunk's events [start, stop) as plain objects, counted from 0 within the chunk."""
        number = self.first_event + start
        raw = self.raw
        end = len(raw) if stop is None else stop * EVENT_SIZE
        for fields in _EVENT.iter_unpack(raw[start * EVENT_SIZE : end]):
            task, kind, flags, nr, ip = fields[:5]
            result, begin, end, offset, size = fields[11:]
            payload = self._cut(number, offset, size) if size else b""
            # fmt: off
            yield EventView(
                self.domain, number, task, kind, flags, nr, ip, fields[5:11], result, begin, end, payload
            )
            # fmt: on
            number += 1

    def _cut(self, number: int, offset: int, size: int) -> bytes:
        if size == 0:
            return b""
        payload = self.payload
        if offset + size > len(payload):
            raise self._fail(
                f"event {number} points at bytes {offset}..{offset + size} of {len(payload)} of payload"
            )
        return payload[offset : offset + size]


def events_from(raw: bytes) -> EventArray:
    """A read-only array over whole events."""
    array: EventArray = numpy().frombuffer(raw, abi.EVENT_DTYPE)
    return array
