"""What a reader hands out: chunks of events as numpy arrays, and single events as plain objects."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from interfaces.abi import EVENT_DTYPE, Region, parse_regions

EventArray = npt.NDArray[np.void]


_EVENT = struct.Struct("<IBBHQ6QqQQII")


@dataclass(slots=True)
class EventView:
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

    `events` is a read-only array of EVENT_DTYPE. The payload is read from the file when it is first asked
    for, so that going through headers alone stays fast. `fail` makes the TraceFormatError for events that
    point outside it.
    """

    __slots__ = ("_fail", "_payload", "domain", "events", "first_event")

    def __init__(
        self,
        domain: int,
        first_event: int,
        events: EventArray,
        payload: Callable[[], bytes],
        fail: Callable[[str], Exception],
    ) -> None:
        self.domain = domain
        self.first_event = first_event
        self.events = events
        self._payload = payload
        self._fail = fail

    def __len__(self) -> int:
        return len(self.events)

    def __repr__(self) -> str:
        return f"<Chunk domain {self.domain}, events {self.first_event}..{self.end_event - 1}>"

    @property
    def end_event(self) -> int:
        """The number of the event that follows this chunk's last one."""
        return self.first_event + len(self.events)

    @property
    def payload(self) -> bytes:
        """The payload of the whole chunk; offsets in events count from its beginning. May raise
        TraceFormatError."""
        return self._payload()

    def starting_at(self, number: int) -> Chunk:
        """The same chunk without the events before `number`; the payload stays whole."""
        skip = number - self.first_event
        return (
            self if skip <= 0 else Chunk(self.domain, number, self.events[skip:], self._payload, self._fail)
        )

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
        for fields in _EVENT.iter_unpack(self.events[start:stop].tobytes()):
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
    return np.frombuffer(raw, EVENT_DTYPE)
