"""Copies of a parked replaying process: with all threads, memory and its place in the log, on their own.

A copy is a checkpoint as long as it stays parked, and can be copied again. It has a supervisor, a ring, a
shared page and a process group of its own; the original is not changed.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import struct
import time

from interfaces import abi
from interposer.channel import Channel, Message, Received
from interposer.kernel import futex_wake
from interposer.shared import GlobalPage, Ring
from replayer.corelayout import hidden
from replayer.debugring import REQUEST_CLONE, debug_area
from replayer.domain import LiveDomain
from replayer.errors import CopyError
from replayer.feeder import Feeder
from replayer.launch import Group
from replayer.output import Turns
from replayer.supervisor import Supervisor

_TIME_LIMIT = 20.0
_MOST_SHARED = 1024


def copy_process(original: Supervisor, number: int, *, alone: bool) -> Supervisor:
    """A copy of the process of domain `number` that is parked; CopyError when it cannot be copied.

    `alone`: others that share its memory are left out, so that the copy cannot follow the log.
    """
    live = original.domains[number]
    if len(live.processes) > 1 and not alone:
        raise CopyError(
            f"{len(live.processes)} processes share memory here: they cannot be copied together",
            "Go to another event.",
        )
    copy = Supervisor(
        original.reader,
        original.scope,
        echo=original._echo,
        verify=False,
        timeout=original._timeout,
        contents=original.contents,
        debugging=True,
    )
    adoption = _Adoption(original, live, copy)
    original.adopter = adoption
    try:
        debug = debug_area(live.ring)
        debug.reply = 0
        debug.request = REQUEST_CLONE
        control = live.ring.control
        futex_wake(ctypes.addressof(control) + abi.Ring.stopped.offset)
        deadline = time.monotonic() + _TIME_LIMIT
        while not adoption.done:
            original._step()
            if debug.reply < 0 or original.over or time.monotonic() > deadline:
                raise CopyError(
                    "this process cannot be copied here: it shares its memory with another process",
                    "Go to another event.",
                )
        tid = int(control.stopped_tid)
        while tid not in copy.domains[number].tasks:
            copy._step()
            if copy.over or time.monotonic() > deadline:
                raise CopyError("the copy of the process broke down", "This is a defect: please report it.")
        return copy
    except BaseException:
        copy.close()
        raise
    finally:
        original.adopter = None


class _Adoption:
    """Answers the copy's first word with what is to be its own."""

    def __init__(self, original: Supervisor, live: LiveDomain, copy: Supervisor) -> None:
        self._original = original
        self._live = live
        self._copy = copy
        self._shared = _shared_ranges(min(live.processes))
        self.done = False

    def __call__(self, control: Channel, received: Received) -> None:
        copy, live = self._copy, self._live
        pid = received.sender or received.message.pid
        page = GlobalPage()
        assert self._original._page is not None
        ctypes.memmove(
            ctypes.addressof(page.fields),
            ctypes.addressof(self._original._page.fields),
            ctypes.sizeof(abi.Global),
        )
        copy._page, copy._turns = page, Turns(page)
        copy._hello, theirs = Channel.pair(credentials=True)
        copy._selector.register(copy._hello, selectors.EVENT_READ, copy._on_hello)
        domain = _copy_domain(copy, live)
        copy.domains[live.number] = copy._live[live.number] = domain
        reading, lifeline = os.pipe2(os.O_CLOEXEC)
        try:
            complaints = os.dup(self._original._groups[0]._complaints)
            copy._groups.append(Group.adopt(pid, reading, lifeline, complaints))
            control.send(
                Message(abi.Msg.NEED_RING, a=len(self._shared)),
                b"".join(struct.pack("<QQQ", *one) for one in self._shared),
                (domain.ring_fd, page.fd, theirs.fileno(), reading),
            )
        finally:
            os.close(reading)
            theirs.close()
        copy._join(domain, pid, 0, control)
        domain.tasks.clear()
        self.done = True


def _shared_ranges(pid: int) -> list[tuple[int, int, int]]:
    """Address, length and protection of the program's shared mappings, which a copy must have on its own.

    CopyError where two of them show the same memory: in a copy they would not.
    """
    found: list[tuple[int, int, int]] = []
    objects: set[str] = set()
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            place, prot, _offset, device, inode = line.split(None, 5)[:5]
            start, end = (int(word, 16) for word in place.split("-"))
            if prot[3] != "s" or hidden(start):
                continue
            if "w" in prot and f"{device} {inode}" in objects:
                raise CopyError("this process maps the same shared memory twice", "Go to another event.")
            objects.add(f"{device} {inode}")
            found.append((start, end - start, sum(1 << i for i in range(3) if prot[i] != "-")))
    if len(found) > _MOST_SHARED:
        raise CopyError(f"this process has {len(found)} shared mappings", "Go to another event.")
    return found


def _copy_domain(copy: Supervisor, live: LiveDomain) -> LiveDomain:
    """The domain with a ring that stands where the original's does."""
    ring, descriptor = Ring.create()
    ring._memory[: abi.RING_CTL] = live.ring._memory[: abi.RING_CTL]
    sequence = int(live.ring.control.sequence)
    first = int(live.ring.slot(sequence).first_event)
    feeder = Feeder(ring, copy.reader.chunks(live.number, first), copy.reader.path)
    feeder._sequence, feeder._next_event = sequence, first
    feeder.start()
    return LiveDomain(live.info, ring, descriptor, feeder)
