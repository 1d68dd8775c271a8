"""Draining a ring: whatever the core publishes and whenever the recorder looks, the log comes out whole."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interfaces import abi
from interposer.shared import Ring
from recorder.drain import Drain, RingDamaged


class Sink:
    """Puts the chunks together again as a reader would."""

    def __init__(self) -> None:
        self.log: list[tuple[int, bytes]] = []
        self.chunks = 0

    def add_events(self, domain: int, first_event: int, events: bytes, payload: bytes) -> None:
        assert domain == 3
        assert first_event == len(self.log)
        assert events
        self.chunks += 1
        for at in range(0, len(events), abi.EVENT_SIZE):
            event = abi.Event.from_buffer_copy(events, at)
            assert event.payload_off + event.payload_len <= len(payload)
            self.log.append((event.task, payload[event.payload_off : event.payload_off + event.payload_len]))


class Core:
    """The writing side of a ring, as log.c does it."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self.log: list[tuple[int, bytes]] = []
        self._open()

    def _open(self) -> None:
        control = self.ring.control
        slot = self.ring.slot(control.sequence)
        assert slot.state == abi.SlotState.FREE
        slot.nevents = slot.payload_used = 0
        slot.first_event, slot.sequence = control.event_count, control.sequence
        slot.state = abi.SlotState.OPEN

    def publish(self, payload: bytes) -> None:
        control = self.ring.control
        slot = self.ring.slot(control.sequence)
        event = abi.Event(task=len(self.log), kind=1, payload_off=slot.payload_used, payload_len=len(payload))
        used = slot.payload_used
        self.ring.payload(control.sequence, used, used + len(payload))[:] = payload
        self.ring.events(control.sequence, slot.nevents, slot.nevents + 1)[:] = bytes(event)
        slot.payload_used = used + len(payload)
        slot.nevents += 1
        control.event_count += 1
        self.log.append((event.task, payload))

    def seal(self) -> bool:
        """Go on to the next slot; False where the recorder has not freed it yet."""
        control = self.ring.control
        if self.ring.slot(control.sequence + 1).state != abi.SlotState.FREE:
            return False
        self.ring.slot(control.sequence).state = abi.SlotState.SEALED
        control.sequence += 1
        self._open()
        return True


@pytest.fixture
def ring() -> Iterator[Ring]:
    made, fd = Ring.create()
    os.close(fd)
    yield made
    made.close()


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.one_of(st.binary(max_size=40), st.sampled_from(["seal", "partial", "sealed", "append"])),
        max_size=80,
    )
)
def test_the_log_comes_out_as_it_was_published(steps: list[bytes | str]) -> None:
    ring, fd = Ring.create()
    os.close(fd)
    core, sink = Core(ring), Sink()
    drain = Drain(3, ring, sink)
    for step in steps:
        if isinstance(step, bytes):
            core.publish(step)
        elif step == "seal":
            if not core.seal():
                drain.run(partial=False)
                assert core.seal()
        elif step == "append":
            assert drain.append(abi.Event(task=len(core.log), kind=15))
            core.log.append((len(core.log), b""))
        else:
            drain.run(partial=step == "partial")
            assert sink.log == core.log[: len(sink.log)]
            if step == "partial":
                assert sink.log == core.log
    drain.run(partial=True)
    assert sink.log == core.log
    assert drain.events == len(core.log)
    ring.close()


def test_nothing_new_writes_nothing(ring: Ring) -> None:
    core, sink = Core(ring), Sink()
    drain = Drain(3, ring, sink)
    assert not drain.run(partial=True)
    core.publish(b"x" * 8)
    assert drain.run(partial=True)
    assert not drain.run(partial=True)
    assert sink.chunks == 1


def test_a_sealed_slot_is_freed_only_when_it_is_handed_over(ring: Ring) -> None:
    core = Core(ring)
    core.publish(b"abcdefgh")
    assert core.seal()

    class Full(Sink):
        def add_events(self, domain: int, first_event: int, events: bytes, payload: bytes) -> None:
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        Drain(3, ring, Full()).run(partial=False)
    assert ring.slot(0).state == abi.SlotState.SEALED
    Drain(3, ring, Sink()).run(partial=False)
    assert ring.slot(0).state == abi.SlotState.FREE


def test_discarding_frees_every_sealed_slot_so_that_nobody_waits(ring: Ring) -> None:
    core = Core(ring)
    for _ in range(abi.SLOTS - 1):
        core.publish(b"")
        assert core.seal()
    core.publish(b"")
    assert not core.seal()
    Drain(3, ring, Sink()).discard()
    assert core.seal()


def test_no_event_is_appended_to_a_full_or_closed_slot(ring: Ring) -> None:
    core = Core(ring)
    drain = Drain(3, ring, Sink())
    ring.slot(0).nevents = abi.SLOT_EVENTS
    assert not drain.append(abi.Event(task=1))
    ring.slot(0).nevents = 1
    ring.slot(0).state = abi.SlotState.SEALED
    assert not drain.append(abi.Event(task=1))
    assert ring.control.event_count == len(core.log)


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        (abi.Slot.nevents.offset, abi.SLOT_EVENTS + 1),
        (abi.Slot.sequence.offset, 5),
        (abi.SLOT_EVENTS_OFF + abi.Event.payload_off.offset, 0xFFFFFFF0),
        (abi.SLOT_EVENTS_OFF + abi.Event.payload_len.offset, abi.SLOT_PAYLOAD_MAX + 8),
    ],
)
def test_a_program_that_scribbles_over_its_log_is_noticed(ring: Ring, offset: int, value: int) -> None:
    core, sink = Core(ring), Sink()
    core.publish(b"12345678")
    ring._view[abi.RING_CTL + offset : abi.RING_CTL + offset + 4] = struct.pack("<I", value)
    with pytest.raises(RingDamaged):
        Drain(3, ring, sink).run(partial=True)
    assert sink.chunks == 0
