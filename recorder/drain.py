"""From a domain's ring into the trace.

The core fills the open slot and seals it when it is full. A sealed slot is handed over whole and freed; of
the open one, what is complete so far is handed over now and then, so that little is lost when the recorder
is killed.
"""

from __future__ import annotations

from typing import Protocol

from interfaces import abi
from interposer.shared import Ring

_U32_PER_EVENT = abi.EVENT_SIZE // 4
_PAYLOAD_OFF = abi.Event.payload_off.offset // 4


class EventSink(Protocol):
    """What takes the events: a TraceWriter."""

    def add_events(self, domain: int, first_event: int, events: bytes, payload: bytes) -> None: ...


class RingDamaged(Exception):
    """The program has overwritten its log: what was handed over before is good, nothing after it is."""


class Drain:
    """Reads one ring in order. `events` counts what was handed over."""

    def __init__(self, domain: int, ring: Ring, sink: EventSink) -> None:
        self.domain = domain
        self.events = 0
        self._ring = ring
        self._sink = sink
        self._sequence = 0
        self._asked_at = 0
        self._slot_events = 0
        self._slot_payload = 0

    def run(self, *, partial: bool) -> bool:
        """Hand over every sealed slot and, if `partial`, the whole events of the open one.

        Returns whether there was anything. Raises RingDamaged, and what the sink raises; then nothing of
        the slot counts as handed over.
        """
        any_new = False
        while True:
            slot = self._ring.slot(self._sequence)
            state = slot.state
            if state == abi.SlotState.FREE or (state == abi.SlotState.OPEN and not partial):
                return any_new
            count = slot.nevents
            if count > abi.SLOT_EVENTS or count < self._slot_events or slot.sequence != self._sequence:
                raise RingDamaged
            if count > self._slot_events:
                self._hand_over(slot.first_event, count)
                any_new = True
            if state != abi.SlotState.SEALED:
                return any_new
            self._free(slot)

    def resting(self) -> bool:
        """Whether no slot was handed over whole since the last time this was asked: then the open one holds
        events that have waited. Else it will soon be handed over by itself, which costs less."""
        rests = self._asked_at == self._sequence
        self._asked_at = self._sequence
        return rests

    def discard(self) -> None:
        """Free what is sealed without handing it over, so that nobody waits for room."""
        for sequence in range(self._sequence, self._sequence + abi.SLOTS):
            slot = self._ring.slot(sequence)
            if slot.state == abi.SlotState.SEALED:
                slot.state = abi.SlotState.FREE
            self._ring.wake_slot(sequence)

    def append(self, event: abi.Event) -> bool:
        """Write an event into the open slot in the core's place. Only while no task of the domain can write.

        The core leaves room for it; False where there is none after all, or no open slot.
        """
        control = self._ring.control
        slot = self._ring.slot(control.sequence)
        count = slot.nevents
        if slot.state != abi.SlotState.OPEN or count >= abi.SLOT_EVENTS:
            return False
        event.payload_off, event.payload_len = slot.payload_used, 0
        self._ring.events(control.sequence, count, count + 1)[:] = bytes(event)
        slot.nevents = count + 1
        control.event_count += 1
        return True

    def _hand_over(self, first_event: int, count: int) -> None:
        events = bytes(self._ring.events(self._sequence, self._slot_events, count))
        last = abi.Event.from_buffer_copy(events, len(events) - abi.EVENT_SIZE)
        start, end = self._slot_payload, last.payload_off + last.payload_len
        if not start <= end <= abi.SLOT_PAYLOAD_MAX:
            raise RingDamaged
        if start:
            events = _rebased(events, start)
        payload = bytes(self._ring.payload(self._sequence, start, end))
        self._sink.add_events(self.domain, first_event + self._slot_events, events, payload)
        self.events = first_event + count
        self._slot_events, self._slot_payload = count, end

    def _free(self, slot: abi.Slot) -> None:
        slot.state = abi.SlotState.FREE
        self._ring.wake_slot(self._sequence)
        self._sequence += 1
        self._slot_events = self._slot_payload = 0


def _rebased(events: bytes, start: int) -> bytes:
    """The events with payload offsets counted from byte `start` of the slot's payload."""
    new = bytearray(events)
    words = memoryview(new).cast("I")
    for at in range(_PAYLOAD_OFF, len(words), _U32_PER_EVENT):
        if words[at] < start:
            raise RingDamaged
        words[at] -= start
    return bytes(new)
