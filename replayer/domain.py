"""One domain that is being replayed: its ring, what feeds it, and the processes that live in it."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from typing import NamedTuple

from interfaces import abi
from interposer.channel import Channel
from interposer.kernel import futex_wake
from interposer.shared import Ring
from replayer.feeder import ChunkFilter, Feeder
from replayer.output import Waiting
from tracefile import DomainInfo, TraceReader

NEVER = (1 << 64) - 1


class Task(NamedTuple):
    """A replaying task: recorded ids, and the ids the kernel knows it by now."""

    tid: int
    pid: int
    real_tid: int
    real_pid: int


class LiveDomain:
    """A domain that has a ring. `processes` are real process ids; `finished`: nothing more comes."""

    def __init__(self, info: DomainInfo, ring: Ring, ring_fd: int, feeder: Feeder) -> None:
        self.info = info
        self.ring = ring
        self.ring_fd = ring_fd
        self.feeder = feeder
        self.processes: set[int] = set()
        self.tasks: dict[int, Task] = {}
        self.channels: set[Channel] = set()
        self.finished = False
        self.events = 0

    @classmethod
    def create(
        cls, reader: TraceReader, info: DomainInfo, chunk_filter: ChunkFilter | None, stop_at: int
    ) -> LiveDomain:
        """A domain whose ring holds the start of its log; TraceFormatError for a damaged first chunk."""
        ring, descriptor = Ring.create()
        control = ring.control
        control.magic, control.version = abi.RING_MAGIC, abi.ABI_VERSION
        control.domain, control.state = info.domain, abi.RingState.REPLAYING
        control.ntasks = 1
        control.stop_at = stop_at
        feeder = Feeder(ring, reader.chunks(info.domain), reader.path, chunk_filter)
        try:
            feeder.start()
        except BaseException:
            with suppress(BufferError):
                ring.close()
            os.close(descriptor)
            raise
        return cls(info, ring, descriptor, feeder)

    @property
    def number(self) -> int:
        """The domain's number."""
        return self.info.domain

    @property
    def total(self) -> int:
        """Events in its log."""
        return self.info.event_count

    @property
    def paused(self) -> bool:
        """Whether a task is parked at the event the ring was told to stop at."""
        return not self.finished and bool(self.ring.control.stopped)

    def count(self) -> int:
        """Events consumed so far; kept when the ring is gone."""
        if not self.finished:
            self.events = int(self.ring.control.event_count)
        return self.events

    def waiting(self) -> Waiting:
        """What it does about output."""
        control = self.ring.control if not self.finished else None
        waits = control is not None and bool(control.waiting_output)
        halted = control is None or bool(control.diverged) or bool(control.stopped)
        number = int(control.waiting_seq) if waits and control is not None else None
        return Waiting(self.number, self.count(), number, halted or not self.processes)

    def recorded_gap(self) -> float:
        """Seconds the recorded program took from the last event consumed to the next; 0 where unknown."""
        if self.finished:
            return 0.0
        control = self.ring.control
        slot = self.ring.slot(control.sequence)
        index = int(control.event_count) - int(slot.first_event)
        if not 0 < index < slot.nevents:
            return 0.0
        before = abi.Event.from_buffer_copy(self.ring.events(control.sequence, index - 1, index))
        after = abi.Event.from_buffer_copy(self.ring.events(control.sequence, index, index + 1))
        return max(int(after.time_in) - int(before.time_out), 0) / 1e9

    def go_on(self, stop_at: int) -> None:
        """Release the task that is parked at an event; the next pause is after `stop_at` events."""
        control = self.ring.control
        control.stop_at = stop_at
        control.stopped = 0
        futex_wake(ctypes.addressof(control) + abi.Ring.stopped.offset)

    def finish(self) -> None:
        """Nothing more comes from it: give thread, memory and descriptor back. Again does nothing."""
        if self.finished:
            return
        self.count()
        self.finished = True
        self.feeder.close()
        with suppress(BufferError):
            self.ring.close()
        os.close(self.ring_fd)
