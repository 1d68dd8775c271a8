"""Feeding one domain's ring: the trace's chunks become slots, decompressed ahead of the program that reads
them.

The first chunk is put in when the ring is made; a thread does the rest if there is more, so that short
processes cost no thread. A slot is filled only while it is FREE and is then SEALED; the core frees it
again and wakes who waits for that. Where all are sealed the thread sleeps until half of them are free: waking
it takes longer than decompressing one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import NoReturn, Protocol

from interfaces import abi
from interposer.shared import Ring
from tracefile import raw
from tracefile.chunk import Chunk
from tracefile.errors import TraceFormatError
from tracefile.planes import survey

_POLL = 0.1
_CLOSE_POLL = 0.01
_AHEAD = abi.SLOTS // 2 - 1
CLONES = frozenset((56, 57, 58, 435))
"""The calls that make tasks and processes; `planes.survey` finds them."""
_CLONE_MARKS = raw.marker(number & 0xFF for number in CLONES)


class ChunkFilter(Protocol):
    """Changes a chunk before it is fed (whose output is echoed, say)."""

    def __call__(self, chunk: Chunk) -> tuple[bytes, bytes]:
        """The events and the payload to feed in the chunk's place; of the same lengths."""


class Feeder:
    """Keeps a domain's ring filled until the log ends. `close` ends its thread.

    Damage behind the first chunk ends the log there; `failure` then holds the error.
    """

    def __init__(
        self,
        ring: Ring,
        chunks: Iterator[Chunk],
        path: str,
        chunk_filter: ChunkFilter | None = None,
    ) -> None:
        """`path` names the trace in errors."""
        self._ring = ring
        self._chunks = chunks
        self._path = path
        self._filter = chunk_filter
        self._sequence = 0
        self._next_event = 0
        self._next: Chunk | None = None
        self._closing = False
        self._thread: threading.Thread | None = None
        self.failure: Exception | None = None
        self.children: dict[int, int] = {}
        """Domains that the log makes by forking, and the number of the event; complete up to what is fed."""

    def start(self) -> None:
        """Fill the first slot now, and go on in a thread if there is more. Raises TraceFormatError."""
        self._next = next(self._chunks, None)
        if self._next is None:
            self._publish(0, 0, last=True)
            return
        self._advance()
        if self._next is not None:
            self._thread = threading.Thread(target=self._run, name="rr-feeder", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop feeding and wait for the thread; the ring may be unmapped afterwards."""
        self._closing = True
        thread, self._thread = self._thread, None
        while thread is not None and thread.is_alive():
            self._ring.wake_slot(self._sequence + _AHEAD)
            thread.join(_CLOSE_POLL)

    def _run(self) -> None:
        try:
            while self._next is not None and self._wait_free():
                self._advance()
        except Exception as error:
            self.failure = error
            with suppress(Exception):  # the ring is gone when the tool is interrupted
                if self._wait_free():
                    self._publish(0, 0, last=True)

    def _wait_free(self) -> bool:
        """Wait until the next slot is free; False when the feeder is being closed."""
        slot = self._ring.slot(self._sequence)
        while slot.state != abi.SlotState.FREE and not self._closing:
            self._ring.await_slot(self._sequence + _AHEAD, _POLL)
        return not self._closing

    def _advance(self) -> None:
        """Publish the chunk at hand, having looked whether another one follows."""
        count = payload = 0
        if self._next is not None:
            count, payload = self._put(self._next)
        try:
            self._next = next(self._chunks, None)
        except TraceFormatError as error:
            self._next = None
            self.failure = error
        self._publish(count, payload, last=self._next is None)

    def _put(self, chunk: Chunk) -> tuple[int, int]:
        """Put a chunk into the next slot, which is free, once nothing in it can lead the core outside the
        slot. Returns its events and the bytes of its payload."""
        count, ring = len(chunk), self._ring
        if chunk.first_event != self._next_event:
            self._fail(chunk, f"event {self._next_event} is missing, event {chunk.first_event} follows")
        if self._filter is None:
            payload = chunk.payload
            self._check_size(chunk, count, payload)
            events = ring.events(self._sequence, 0, count)
            chunk.copy_events(events)
        else:
            changed, payload = self._filter(chunk)
            self._check_size(chunk, count, payload)
            events = ring.events(self._sequence, 0, count)
            events[:] = changed
        found = survey(events)
        if found.payload_end > len(payload):
            self._fail(chunk, "an event points outside of its chunk's payload")
        if payload:
            ring.payload(self._sequence, 0, len(payload))[:] = payload
        if found.clone < count:
            self._note_forks(chunk, bytes(events), payload)
        self._next_event = chunk.end_event
        return count, len(payload)

    def _check_size(self, chunk: Chunk, count: int, payload: bytes) -> None:
        if count > abi.SLOT_EVENTS or len(payload) > abi.SLOT_PAYLOAD_MAX:
            self._fail(chunk, f"a chunk of {count} events and {len(payload)} bytes of payload is too large")

    def _fail(self, chunk: Chunk, problem: str) -> NoReturn:
        raise TraceFormatError(self._path, 0, f"domain {chunk.domain}: {problem}")

    def _note_forks(self, chunk: Chunk, events: bytes, payload: bytes) -> None:
        for row in raw.rows(events, raw.NR_AT, _CLONE_MARKS):
            event = raw.event(events, row)
            if event.nr not in CLONES or event.kind != abi.Kind.SYSCALL or event.result <= 0:
                continue
            try:
                regions = list(
                    abi.iter_regions(payload[event.payload_off : event.payload_off + event.payload_len])
                )
            except ValueError as error:
                self._fail(chunk, str(error))
            for region in regions:
                if region.kind == abi.RegionKind.DOMAIN and len(region.data) == 8:
                    domain = int.from_bytes(region.data, "little")
                    if domain != chunk.domain:
                        self.children[domain] = chunk.first_event + row

    def _publish(self, count: int, payload: int, *, last: bool) -> None:
        """Hand over the next slot, which holds so many events and bytes of payload."""
        sequence, ring = self._sequence, self._ring
        slot = ring.slot(sequence)
        slot.payload_used = payload
        slot.first_event = self._next_event - count
        slot.sequence = sequence
        slot.last = int(last)
        slot.nevents = count
        slot.state = abi.SlotState.SEALED
        ring.wake_slot(sequence)
        self._sequence = sequence + 1
