"""The feeder against an in-memory ring whose other side is a consumer as the core is one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from interfaces import abi
from interposer.shared import Ring
from replayer.feeder import Feeder
from tracefile import Chunk, DomainStart, TraceFormatError, TraceReader, TraceWriter
from tracefile.chunk import events_from


class Consumer(threading.Thread):
    """Reads a ring the way the core does; `events` are (slot sequence, event number, args[0], payload)."""

    def __init__(self, ring: Ring) -> None:
        super().__init__(daemon=True)
        self.ring = ring
        self.events: list[tuple[int, int, int, bytes]] = []
        self.most_sealed = 0

    def run(self) -> None:
        sequence = 0
        while True:
            slot = self.ring.slot(sequence)
            while slot.state != abi.SlotState.SEALED:
                pass
            self.most_sealed = max(self.most_sealed, sum(one.state == 2 for one in self.ring.slots))
            assert slot.sequence == sequence
            raw = bytes(self.ring.events(sequence, 0, slot.nevents))
            for index, event in enumerate(np.frombuffer(raw, abi.EVENT_DTYPE)):
                start = int(event["payload_off"])
                payload = bytes(self.ring.payload(sequence, start, start + int(event["payload_len"])))
                number = int(slot.first_event) + index
                self.events.append((sequence, number, int(event["args"][0]), payload))
            if slot.last:
                return
            slot.state = abi.SlotState.FREE
            self.ring.wake_slot(sequence)
            sequence += 1


def some_events(first: int, count: int, size: int = 8) -> tuple[bytes, bytes]:
    """Events whose first argument is their number, each with `size` bytes of payload that repeat it."""
    events = np.zeros(count, abi.EVENT_DTYPE)
    events["kind"] = abi.Kind.SYSCALL
    events["args"][:, 0] = np.arange(first, first + count)
    events["payload_len"] = size
    events["payload_off"] = np.arange(count) * size
    payload = b"".join((number & 0xFF).to_bytes(1, "little") * size for number in range(first, first + count))
    return events.tobytes(), payload


def write_trace(path: Path, chunks: list[tuple[int, int]]) -> Path:
    with TraceWriter.create(path, {}) as writer:
        writer.add_domain(DomainStart(domain=1, kind="exec", pid=10))
        for first, count in chunks:
            writer.add_events(1, first, *some_events(first, count))
        writer.close({})
    return path


@pytest.fixture
def ring() -> Iterator[Ring]:
    ring, descriptor = Ring.create()
    os.close(descriptor)
    yield ring
    ring.close()


def test_many_chunks_come_out_whole_and_in_order(ring: Ring, tmp_path: Path) -> None:
    """GIVEN more chunks than slots WHEN fed THEN every event arrives once, in order, with its payload."""
    sizes = [4096, 1, 17, 4000, 1, 1, 1, 1, 1, 1, 300, 4096, 5, 5, 5, 5, 5, 5, 5, 5, 5, 2]
    firsts = [sum(sizes[:index]) for index in range(len(sizes))]
    path = write_trace(tmp_path / "t.bin", list(zip(firsts, sizes, strict=True)))
    with TraceReader.open(path) as reader:
        feeder = Feeder(ring, reader.chunks(1), str(path))
        consumer = Consumer(ring)
        feeder.start()
        consumer.start()
        consumer.join()
        feeder.close()
    numbers = [number for _sequence, number, _argument, _payload in consumer.events]
    assert numbers == list(range(sum(sizes)))
    assert all(number == argument for _sequence, number, argument, _payload in consumer.events)
    assert all(
        payload == bytes([number & 0xFF]) * 8 for _sequence, number, _argument, payload in consumer.events
    )
    assert consumer.most_sealed <= abi.SLOTS
    assert feeder.failure is None


def test_one_chunk_needs_no_thread(ring: Ring, tmp_path: Path) -> None:
    """GIVEN a log of one chunk WHEN started THEN the slot is there at once, marked as the last."""
    path = write_trace(tmp_path / "t.bin", [(0, 3)])
    with TraceReader.open(path) as reader:
        before = threading.active_count()
        feeder = Feeder(ring, reader.chunks(1), str(path))
        feeder.start()
        assert threading.active_count() == before
        assert (ring.slot(0).state, ring.slot(0).nevents, ring.slot(0).last) == (abi.SlotState.SEALED, 3, 1)
        feeder.close()


def test_empty_log_is_one_empty_last_slot(ring: Ring, tmp_path: Path) -> None:
    """GIVEN a domain without events WHEN started THEN the reader is told that the log ends."""
    path = write_trace(tmp_path / "t.bin", [])
    with TraceReader.open(path) as reader:
        feeder = Feeder(ring, reader.chunks(1), str(path))
        feeder.start()
        assert (ring.slot(0).state, ring.slot(0).nevents, ring.slot(0).last) == (abi.SlotState.SEALED, 0, 1)
        feeder.close()


def test_close_ends_a_feeder_that_waits_for_room(ring: Ring, tmp_path: Path) -> None:
    """GIVEN nobody reads WHEN the ring is full and the feeder is closed THEN its thread ends."""
    path = write_trace(tmp_path / "t.bin", [(number, 1) for number in range(20)])
    with TraceReader.open(path) as reader:
        feeder = Feeder(ring, reader.chunks(1), str(path))
        feeder.start()
        while ring.slot(7).state != abi.SlotState.SEALED:
            pass
        feeder.close()
    assert [slot.state for slot in ring.slots] == [abi.SlotState.SEALED] * 8
    assert ring.slot(7).sequence == 7


TOO_MUCH = bytes(abi.SLOT_PAYLOAD_MAX + 1)


def fail(what: str) -> Exception:
    return TraceFormatError("t", 0, what)


@pytest.mark.parametrize(
    ("chunk", "problem"),
    [
        (Chunk(1, 5, events_from(some_events(5, 1)[0]), lambda: bytes(8), fail), "event 0 is missing"),
        (Chunk(1, 0, events_from(some_events(0, 5000)[0]), lambda: bytes(40000), fail), "too large"),
        (Chunk(1, 0, events_from(some_events(0, 2)[0]), lambda: bytes(15), fail), "points outside"),
        (Chunk(1, 0, events_from(some_events(0, 1)[0]), lambda: TOO_MUCH, fail), "too large"),
    ],
    ids=["gap", "too-many-events", "payload-cut", "too-much-payload"],
)  # fmt: skip
def test_hostile_chunks_never_reach_the_core(ring: Ring, chunk: Chunk, problem: str) -> None:
    """GIVEN a chunk that lies about itself WHEN fed THEN one error, and no slot is handed over."""
    feeder = Feeder(ring, iter([chunk]), "t.bin")
    with pytest.raises(TraceFormatError, match=problem):
        feeder.start()
    assert ring.slot(0).state == abi.SlotState.FREE
    feeder.close()


def test_damage_later_ends_the_log_there(ring: Ring) -> None:
    """GIVEN a fourth chunk that cannot be read WHEN fed THEN the log ends before it, and says why."""

    def chunks() -> Iterator[Chunk]:
        for first in (0, 1, 2):
            events, payload = some_events(first, 1)
            yield Chunk(1, first, events_from(events), lambda payload=payload: payload, fail)  # type: ignore[misc]
        raise fail("checksum")

    feeder = Feeder(ring, chunks(), "t.bin")
    consumer = Consumer(ring)
    feeder.start()
    consumer.start()
    consumer.join()
    feeder.close()
    assert [number for _sequence, number, _argument, _payload in consumer.events] == [0, 1, 2]
    assert "checksum" in str(feeder.failure)
