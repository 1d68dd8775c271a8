"""Output in the recorded order, and only what is asked for.

Every echoed write of a recording has a number. A replaying task waits until its number is due, writes, and
makes the next one due. Numbers that nobody will write (their process was killed between taking the number
and the log, or the recording stops before it) are passed over once every replaying domain waits for output
or is at its end.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple

from interfaces.abi import EVENT_SIZE, REGION_HEADER, Event, EventFlag, Kind, RegionKind
from interposer.shared import GlobalPage
from tracefile import raw
from tracefile.chunk import Chunk

_ECHO = int(EventFlag.ECHO_OUT | EventFlag.ECHO_ERR)
_ECHO_MARKS = raw.marker(flags for flags in range(256) if flags & _ECHO)
_START_MARKS = raw.marker([Kind.TASK_START])
_SEQUENCE = struct.Struct("<Q")


def shown(echo: tuple[int, int]) -> int:
    """Which output anybody could see, as `replay_echo` has it: not what would go to /dev/null."""
    return sum(bit for bit, descriptor in zip((1, 2), echo, strict=True) if not _is_null(descriptor))


def _is_null(descriptor: int) -> bool:
    try:
        status = os.fstat(descriptor)
    except OSError:
        return False
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == os.makedev(1, 3)


class Waiting(NamedTuple):
    """What a domain does about output: the number it waits for, or whether it will never wait again."""

    domain: int
    events: int
    number: int | None
    finished: bool


class Turns:
    """Passes over output numbers that nobody will write."""

    def __init__(self, page: GlobalPage) -> None:
        self._page = page
        self._before: tuple[tuple[int, int, int | None], ...] = ()

    def look(self, domains: Iterable[Waiting], more_expected: Callable[[], bool], idle: bool) -> bool:
        """Look at all domains; True when the turn was moved.

        `more_expected`: whether processes are being made that have no ring yet. `idle`: nothing at all has
        happened for long. The same picture must be seen twice, since a domain may be just about to go on.
        """
        seen = list(domains)
        waiting = [one for one in seen if one.number is not None and not one.finished]
        picture = tuple((one.domain, one.events, one.number) for one in seen)
        same, self._before = picture == self._before, picture
        if not waiting or not same:
            return False
        all_wait = all(one.finished or one.number is not None for one in seen) and not more_expected()
        if not all_wait and not idle:
            return False
        lowest = min(one.number for one in waiting if one.number is not None)
        if lowest <= self._page.fields.output_seq:
            return False
        self._page.fields.output_seq = lowest
        self._page.wake_output()
        return True


class Numbering:
    """Gives out output numbers anew, without gaps, for a replay of one process."""

    def __init__(self) -> None:
        self._next = 0

    def take(self) -> int:
        """The next number."""
        self._next += 1
        return self._next - 1


class ProcessFilter:
    """A chunk filter: leaves the echo on for one process of a domain (None: all of it) and renumbers its
    output.

    `numbering` None turns all echo off.
    """

    def __init__(self, pid: int | None, numbering: Numbering | None, others_shown: bool = False) -> None:
        """`others_shown`: tasks that the log does not assign to a process belong to `pid`."""
        self._pid = pid
        self._numbering = numbering
        self._others_shown = others_shown
        self._tasks: dict[int, bool] = {}

    def __call__(self, chunk: Chunk) -> tuple[bytes, bytes]:
        """The events and payload to feed in the chunk's place."""
        events, payload = chunk.raw, chunk.payload
        for row in raw.rows(events, raw.KIND_AT, _START_MARKS):
            start = raw.event(events, row)
            self._tasks[start.task] = start.args[1] == self._pid
        echoed = list(raw.rows(events, raw.FLAGS_AT, _ECHO_MARKS))
        if not echoed:
            return events, payload
        silenced = bytearray(events)
        changed = bytearray(payload)
        for row in echoed:
            event = raw.event(events, row)
            if self._numbering is not None and self._shown(event.task):
                _renumber(changed, event, self._numbering)
            else:
                silenced[row * EVENT_SIZE + raw.FLAGS_AT] &= 0xFF & ~_ECHO
        return bytes(silenced), bytes(changed)

    def _shown(self, task: int) -> bool:
        return self._pid is None or self._tasks.get(task, self._others_shown)


def _renumber(payload: bytearray, event: Event, numbering: Numbering) -> None:
    """Put the next number into the event's SEQ region."""
    at = event.payload_off
    end = min(at + event.payload_len, len(payload))
    while at + REGION_HEADER.size <= end:
        _address, length, kind, _arg, _full = REGION_HEADER.unpack_from(payload, at)
        at += REGION_HEADER.size
        if kind == RegionKind.SEQ and length >= 8 and at + 8 <= end:
            _SEQUENCE.pack_into(payload, at, numbering.take())
            return
        at += (length + 7) & ~7
