"""Shared memory between the tool and the core: the page of the whole recording, and a ring a domain.

The layouts are those of abi.h. Single 32- and 64-bit fields are read and written whole; x86 keeps the
order of stores, so what the core published before a counter is there once the counter is read.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence

from interfaces import abi
from interposer.errors import InterposerError
from interposer.kernel import futex_wait, futex_wake

_NSEC = 1_000_000_000


class GlobalPage:
    """The memfd every process of a recording or a replay maps. `fields` is live."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("rr-global", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, abi.GLOBAL_SIZE)
        self._memory = mmap.mmap(self.fd, abi.GLOBAL_SIZE)
        self.fields = abi.Global.from_buffer(self._memory)
        self.fields.magic, self.fields.version = abi.GLOBAL_MAGIC, abi.ABI_VERSION
        self._files = abi.KnownFiles.from_buffer(self._memory, abi.FILES - abi.GLOBAL)
        self._offers = abi.Offers.from_buffer(self._memory, abi.FILES - abi.GLOBAL)

    def remember(
        self, status: os.stat_result, number: int, flags: abi.KnownFlag, sites: Sequence[int]
    ) -> None:
        """Let every process know that file `number` is what this status tells, as long as there is room.

        `sites` are the file offsets of its CPUID instructions. Half of the room is kept for the system's
        files: a build may map any number of its own.
        """
        known = self._files
        room = abi.FILES_MAX // 2 if flags & abi.KnownFlag.OWN else abi.FILES_MAX
        if known.count >= room or known.nsites + len(sites) > abi.FILE_SITES_MAX:
            return
        file = known.files[known.count]
        file.dev, file.ino, file.size = status.st_dev, status.st_ino, status.st_size
        file.mtime, file.mtime_nsec = divmod(status.st_mtime_ns, _NSEC)
        file.ctime, file.ctime_nsec = divmod(status.st_ctime_ns, _NSEC)
        file.file, file.flags, file.nsites, file.first_site = number, flags, len(sites), known.nsites
        known.sites[known.nsites : known.nsites + len(sites)] = sites
        known.nsites += len(sites)
        known.count += 1

    def withdraw(self, device: int, inode: int) -> None:
        """From now on who maps this file shared asks again."""
        for at in range(self._files.count):
            file = self._files.files[at]
            if (file.dev, file.ino) == (device, inode) and file.flags & abi.KnownFlag.SHARED:
                file.ino = 0

    def offer(self, number: int, fd: int, shift: int) -> None:
        """Replaying: let every process know that file `number` is behind our descriptor `fd`.

        It must stay open. `shift`: what is to be added to an offset in the file.
        """
        offers = self._offers
        if offers.count < abi.OFFERS_MAX:
            offer = offers.offers[offers.count]
            offer.file, offer.fd, offer.shift = number, fd, shift & (1 << 64) - 1
            offers.count += 1

    def wake_output(self) -> None:
        """Wake who waits for the output number to change."""
        futex_wake(ctypes.addressof(self.fields) + abi.Global.output_seq.offset)

    def close(self) -> None:
        del self.fields, self._files, self._offers
        self._memory.close()
        os.close(self.fd)


class Ring:
    """One domain's ring, mapped. `control` and `slots` are live; event and payload bytes come as views.

    Views and structures must be dropped before `close`.
    """

    def __init__(self, fd: int) -> None:
        """Map the ring behind `fd`, which stays the caller's. Raises InterposerError when it is not one."""
        size = os.fstat(fd).st_size
        if size < abi.RING_SIZE:
            raise InterposerError(f"a ring has {abi.RING_SIZE} bytes, this one {size}")
        self._memory = mmap.mmap(fd, abi.RING_SIZE)
        self._view = memoryview(self._memory)
        self.control = abi.Ring.from_buffer(self._memory)
        self.slots = [
            abi.Slot.from_buffer(self._memory, abi.RING_CTL + i * abi.SLOT_SIZE) for i in range(abi.SLOTS)
        ]

    @classmethod
    def create(cls) -> tuple[Ring, int]:
        """A new ring full of zeros, and the memfd behind it."""
        fd = os.memfd_create("rr-ring", os.MFD_CLOEXEC)
        os.ftruncate(fd, abi.RING_SIZE)
        return cls(fd), fd

    def slot(self, sequence: int) -> abi.Slot:
        return self.slots[sequence % abi.SLOTS]

    def events(self, sequence: int, first: int, end: int) -> memoryview:
        """The bytes of events [first, end) of the slot."""
        at = abi.RING_CTL + sequence % abi.SLOTS * abi.SLOT_SIZE + abi.SLOT_EVENTS_OFF
        return self._view[at + first * abi.EVENT_SIZE : at + end * abi.EVENT_SIZE]

    def payload(self, sequence: int, first: int, end: int) -> memoryview:
        """Bytes [first, end) of the slot's payload area."""
        at = abi.RING_CTL + sequence % abi.SLOTS * abi.SLOT_SIZE + abi.SLOT_PAYLOAD_OFF
        return self._view[at + first : at + end]

    def wake_slot(self, sequence: int) -> None:
        """Wake who waits for the slot's state to change."""
        futex_wake(ctypes.addressof(self.slot(sequence)))

    def await_slot(self, sequence: int, seconds: float) -> None:
        """Sleep until the slot may have become free, for so long at the most."""
        slot = self.slot(sequence)
        state = slot.state
        if state != abi.SlotState.FREE:
            futex_wait(ctypes.addressof(slot), state, seconds)

    def free_baton(self) -> None:
        """Take the baton from a task that is gone, and wake the tasks that wait for it."""
        self.control.baton = 0
        futex_wake(ctypes.addressof(self.control) + abi.Ring.baton.offset)

    def close(self) -> None:
        del self.control
        self.slots.clear()
        self._view.release()
        self._memory.close()
