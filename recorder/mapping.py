"""A recorded process maps a file: which one that is in the trace, and where in it CPUID instructions are.

What holds for the next who maps it as well is told to all, so that they need not ask.
"""

import os
from collections.abc import Sequence
from typing import Protocol

from interfaces import abi
from interposer import cpuid_sites
from interposer.channel import Message
from recorder.files import MAP_PRIVATE, MAP_TYPE, PROT_EXEC, FileTable
from recorder.images import Core
from recorder.sharing import Sharing

_PATCHES_MAX = 2048


class KnownFiles(Protocol):
    """What tells every process of files that need not be asked about: the page of the whole recording."""

    def remember(
        self, status: os.stat_result, number: int, flags: abi.KnownFlag, sites: Sequence[int]
    ) -> None: ...

    def withdraw(self, device: int, inode: int) -> None: ...


class Mappings:
    """Answers RR_M_MAP_FILE."""

    def __init__(self, files: FileTable, core: Core, page: KnownFiles, sharing: Sharing) -> None:
        self._files = files
        self._core = core
        self._page = page
        self._sharing = sharing

    def answer(self, message: Message, fd: int) -> tuple[Message, bytes]:
        """The answer and the sites behind it. Raises OSError where the file cannot be read, and
        TraceWriteError."""
        length, offset = message.b, message.c
        prot, flags = message.d & 0xFFFFFFFF, message.d >> 32
        mapped = self._files.mapped(fd, offset, length, prot, flags)
        private = flags & MAP_TYPE == MAP_PRIVATE
        lasting = self._files.lasting(mapped.number)
        elf = mapped.number != 0 and cpuid_sites.is_elf(fd)
        sites: list[int] = []
        if self._core.patch_cpuid and private:
            if elf and lasting:
                sites = cpuid_sites.sites(fd, self._core.can_trap)
            elif mapped.number and prot & PROT_EXEC:
                sites = cpuid_sites.in_mapping(fd, offset, length, self._core.can_trap)
        if self._core.can_trap and (len(sites) > _PATCHES_MAX or any(site >= 1 << 32 for site in sites)):
            sites = [cpuid_sites.TRAP]
        sites = [site for site in sites[:_PATCHES_MAX] if site < 1 << 32]
        own = mapped.number != 0 and not mapped.whole
        if lasting:
            self._remember(os.fstat(fd), mapped.number, elf, private, own, sites)
        packed = b"".join(site.to_bytes(4, "little") for site in sites)
        return Message(abi.Msg.MAP_FILE, a=mapped.number, b=len(sites), d=own), packed

    def _remember(
        self, status: os.stat_result, number: int, elf: bool, private: bool, own: bool, sites: list[int]
    ) -> None:
        flags = abi.KnownFlag.CODE if elf or not private else abi.KnownFlag(0)
        if not private:
            if self._sharing.may_go_unasked(status):
                self._page.remember(status, number, flags | abi.KnownFlag.SHARED, ())
        else:
            flags |= abi.KnownFlag.OWN if own else abi.KnownFlag(0)
            self._page.remember(status, number, flags, sites if elf else ())
