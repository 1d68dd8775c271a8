"""Feeding one domain's ring: the trace's chunks become slots, decompressed ahead of the program that reads
them.

The first chunk is put in when the ring is made; a thread does the rest if there is more, so that short
processes cost no thread. A slot is filled only while it is FREE and is then SEALED; the core frees it
again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

from interfaces import abi
from interposer.shared import Ring
from tracefile import raw
from tracefile.chunk import Chunk
from tracefile.errors import TraceFormatError

_POLL = 0.1
_CLONES = frozenset((56, 57, 58, 435))
_CLONE_MARKS = raw.marker(number & 0xFF for number in _CLONES)


class ChunkFilter(Protocol):
    """May change a chunk before it is fed (whose output is echoed, say)."""

    def __call__(self, chunk: Chunk) -> tuple[bytes, bytes]:
        """The events and the payload to feed in the chunk's place; of the same lengths."""


def unchanged(chunk: Chunk) -> tuple[bytes, bytes]:
    """The filter that changes nothing."""
    return chunk.raw, chunk.payload


class Feeder:
    """Keeps a domain's ring filled until the log ends. `close` ends its thread.

    Damage behind the first chunk ends the log there; `failure` then holds the error.
    """

    def __init__(
        self,
        ring: Ring,
        chunks: Iterator[Chunk],
        path: str,
        chunk_filter: ChunkFilter = unchanged,
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
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self.failure: Exception | None = None
        self.children: dict[int, int] = {}
        """Domains that the log makes by forking, and the number of the event; complete up to what is fed."""

    def start(self) -> None:
        """Fill the first slot now, and go on in a thread if there is more. Raises TraceFormatError."""
        self._next = next(self._chunks, None)
        if self._next is None:
            self._publish(b"", last=True)
            return
        self._advance()
        if self._next is not None:
            self._thread = threading.Thread(target=self._run, name="rr-feeder", daemon=True)
            self._thread.start()

    def freed(self) -> None:
        """The core has freed a slot."""
        with self._changed:
            self._changed.notify()

    def close(self) -> None:
        """Stop feeding and wait for the thread; the ring may be unmapped afterwards."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            while self._next is not None and self._wait_free():
                self._advance()
        except Exception as error:
            self.failure = error
            with suppress(Exception):  # the ring is gone when the tool is interrupted
                if self._wait_free():
                    self._publish(b"", last=True)

    def _wait_free(self) -> bool:
        """Wait until the next slot is free; False when the feeder is being closed."""
        slot = self._ring.slot(self._sequence)
        with self._changed:
            while slot.state != abi.SlotState.FREE and not self._closing:
                self._changed.wait(_POLL)
            return not self._closing

    def _advance(self) -> None:
        """Publish the chunk at hand, having looked whether another one follows."""
        chunk = self._next
        events, payload = self._checked(chunk) if chunk is not None else (b"", b"")
        try:
            self._next = next(self._chunks, None)
        except TraceFormatError as error:
            self._next = None
            self.failure = error
        self._publish(events, payload, last=self._next is None)

    def _checked(self, chunk: Chunk) -> tuple[bytes, bytes]:
        """A chunk's parts, once nothing in it can lead the core outside the slot."""
        events, payload = self._filter(chunk)
        problem = ""
        if chunk.first_event != self._next_event:
            problem = f"event {self._next_event} is missing, event {chunk.first_event} follows"
        elif len(chunk) > abi.SLOT_EVENTS or len(payload) > abi.SLOT_PAYLOAD_MAX:
            problem = f"a chunk of {len(chunk)} events and {len(payload)} bytes of payload is too large"
        elif raw.payload_end(events) > len(payload):
            problem = "an event points outside of its chunk's payload"
        if problem:
            raise TraceFormatError(self._path, 0, f"domain {chunk.domain}: {problem}")
        try:
            self._note_forks(chunk, events, payload)
        except ValueError as error:
            raise TraceFormatError(self._path, 0, f"domain {chunk.domain}: {error}") from None
        self._next_event = chunk.end_event
        return events, payload

    def _note_forks(self, chunk: Chunk, events: bytes, payload: bytes) -> None:
        for row in raw.rows(events, raw.NR_AT, _CLONE_MARKS):
            event = raw.event(events, row)
            if event.nr not in _CLONES or event.kind != abi.Kind.SYSCALL or event.result <= 0:
                continue
            start = event.payload_off
            for region in abi.iter_regions(payload[start : start + event.payload_len]):
                if region.kind == abi.RegionKind.DOMAIN and len(region.data) == 8:
                    domain = int.from_bytes(region.data, "little")
                    if domain != chunk.domain:
                        self.children[domain] = chunk.first_event + row

    def _publish(self, events: bytes, payload: bytes = b"", *, last: bool) -> None:
        """Fill the next slot, which is free, and hand it over."""
        sequence, ring = self._sequence, self._ring
        slot = ring.slot(sequence)
        count = len(events) // abi.EVENT_SIZE
        if events:
            ring.events(sequence, 0, count)[:] = events
        if payload:
            ring.payload(sequence, 0, len(payload))[:] = payload
        slot.payload_used = len(payload)
        slot.first_event = self._next_event - count
        slot.sequence = sequence
        slot.last = int(last)
        slot.nevents = count
        slot.state = abi.SlotState.SEALED
        ring.wake_slot(sequence)
        self._sequence = sequence + 1
