"""A new image: what the trace says of it, and the core put into it.

The same for the first program and for every later execve. The thread stands at its exec stop.
"""

import os
import stat
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from interposer import bootimage, cpuid_sites, inject, ptrace
from interposer.bootimage import ImageState
from interposer.errors import InjectError
from interposer.image import Image
from interposer.procfs import Mapping
from recorder.files import FileTable, Identity
from tracefile import BootImage, BootMapping, DomainStart

_PROT = {"r": 1, "w": 2, "x": 4}
_MAP_SHARED, _MAP_PRIVATE = 1, 2
_AT_EUID, _AT_EGID = 12, 14
_PIECE_MAX = 64 << 20


class Core(NamedTuple):
    """The core and where its descriptors are in every recorded process.

    `patch_cpuid`: CPUID instructions are replaced; `can_trap`: where one may be that is not certain, CPUID is
    made to trap.
    """

    image: Image
    fd_base: int
    image_fd: int
    patch_cpuid: bool
    can_trap: bool


class Parent(NamedTuple):
    """What executed the image: its domain (0: the recorder) and the number of the event that says so."""

    domain: int
    event: int | None


class NewImage(NamedTuple):
    """An image that has been looked at and may now carry the core."""

    pid: int
    registers: ptrace.Registers
    state: ImageState
    start: DomainStart
    patches: list[int]


def memory_of(pid: int) -> ptrace.Memory:
    """The memory of a process at its exec stop. Raises InjectError where the program may not be read."""
    try:
        return ptrace.Memory(pid)
    except PermissionError:
        raise InjectError(
            "its program file may be executed but not read, so it cannot be recorded",
            "Make the file readable, or record as root.",
        ) from None


def examine(
    pid: int,
    registers: ptrace.Registers,
    domain: int,
    parent: Parent,
    files: FileTable,
    core: Core,
    memory: ptrace.Memory,
) -> NewImage:
    """Read the image and put its files into the trace.

    Raises InjectError where it cannot be recorded, ptrace.Gone or OSError when it is gone, TraceWriteError.
    """
    if not inject.is_64bit(registers):
        raise InjectError(
            "a 32-bit program cannot be recorded", "Build it for x86-64; 32-bit programs are not supported."
        )
    state = bootimage.capture(pid, registers.rip, registers.rsp, memory)
    mappings: list[BootMapping] = []
    patches: list[int] = []
    sources = _Sources(pid, state.exe)
    try:
        for mapping in state.mappings:
            number, sites = _keep(mapping, sources, files, core, memory)
            patches += sites
            if core.can_trap and "wx" in mapping.prot:
                patches.append(cpuid_sites.TRAP)
            changed = tuple(page for page in state.changed if mapping.start <= page.address < mapping.end)
            mappings.append(_boot_mapping(mapping, number, changed))
    finally:
        sources.close()
    if cpuid_sites.TRAP in patches:
        patches = [cpuid_sites.TRAP, *(site for site in patches if site != cpuid_sites.TRAP)]
    boot = BootImage(
        mappings=mappings,
        stack_start=state.stack_pointer,
        stack=state.stack,
        regs={"rip": state.entry, "rsp": state.stack_pointer},
        auxv=state.auxv,
        brk=state.brk,
        patches=patches,
        stack_limit=state.stack_limit,
    )
    start = DomainStart(
        domain=domain,
        kind="exec",
        pid=pid,
        parent_domain=parent.domain,
        parent_event=parent.event,
        ppid=state.ppid,
        time=time.monotonic_ns(),
        comm=state.comm,
        exe=state.exe,
        cwd=state.cwd,
        argv=state.argv,
        envp=state.envp,
        boot=boot,
    )
    return NewImage(pid, registers, state, start, patches)


def carry(new: NewImage, core: Core, memory: ptrace.Memory) -> None:
    """Put the core into the image; it starts there once detached. Raises InjectError, ptrace.Gone."""
    pid, domain, traps = new.pid, new.start.domain, cpuid_sites.TRAP in new.patches
    descriptor = core.fd_base + core.image_fd
    patches = [inject.Patch(address, cpuid_sites.REPLACED) for address in new.patches if address]
    place = inject.is_sure(pid, new.state.mappings, core.image, memory) if new.start.parent_domain else 0
    if place:
        inject.inject_unwatched(
            pid, new.registers, core.image, descriptor,
            fd_base=core.fd_base, domain=domain, traps=traps, memory=memory, place=place, patches=patches,
        )  # fmt: skip
    else:
        inject.inject(
            pid, new.registers, core.image, descriptor,
            fd_base=core.fd_base, domain=domain, traps=traps, memory=memory, patches=patches,
        )  # fmt: skip


def lost_privilege(new: NewImage) -> str | None:
    """What to tell of a set-user-ID program that runs without the rights its file would give it."""
    try:
        status = os.stat(f"/proc/{new.pid}/exe")
    except OSError:
        return None
    auxv = dict(new.state.auxv)
    user = status.st_mode & stat.S_ISUID and auxv.get(_AT_EUID) != status.st_uid
    group = (
        status.st_mode & stat.S_ISGID
        and status.st_mode & stat.S_IXGRP
        and auxv.get(_AT_EGID) != status.st_gid
    )
    if user or group:
        kind = "user" if user else "group"
        return f"{new.state.exe} is a set-{kind}-ID program: it is recorded without that privilege"
    return None


class _Sources:
    """Opens the files an image shows, each once, and remembers the numbers that stand for a whole file."""

    def __init__(self, pid: int, exe: str) -> None:
        self.numbers: dict[str, int] = {}
        self._pid = pid
        self._exe = exe
        self._fds: dict[str, int | None] = {}
        self._identities: dict[str, Identity | None] = {}

    def identity(self, mapping: Mapping) -> Identity | None:
        """What tells that the file a mapping shows is still the same; None where its path names another."""
        if mapping.path not in self._identities:
            try:
                status = os.stat(mapping.path)
            except OSError:
                self._identities[mapping.path] = None
            else:
                self._identities[mapping.path] = Identity.of(status)
        identity = self._identities[mapping.path]
        return identity if identity is not None and identity.ino == mapping.inode else None

    def fd(self, mapping: Mapping) -> int | None:
        """The file of a mapping; None where what its path names now is another one."""
        if mapping.path not in self._fds:
            self._fds[mapping.path] = self._open(mapping)
        return self._fds[mapping.path]

    def _open(self, mapping: Mapping) -> int | None:
        places = [mapping.path, f"/proc/{self._pid}/root{mapping.path}"]
        if mapping.path == self._exe:
            places.insert(0, f"/proc/{self._pid}/exe")
        for path in places:
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            except OSError:
                continue
            if os.fstat(fd).st_ino == mapping.inode:
                return fd
            os.close(fd)
        return None

    def close(self) -> None:
        for fd in self._fds.values():
            if fd is not None:
                os.close(fd)


def _keep(
    mapping: Mapping, sources: _Sources, files: FileTable, core: Core, memory: ptrace.Memory
) -> tuple[int, list[int]]:
    """The file number of a mapping (0: anonymous), and the addresses of the CPUID instructions in it, with
    TRAP where it may have others."""
    if not mapping.is_file:
        return 0, []
    identity = sources.identity(mapping)
    known = files.images.get((mapping, identity)) if identity is not None else None
    if known is not None:
        return known
    length = mapping.end - mapping.start
    search = mapping.executable and core.patch_cpuid
    fd = sources.fd(mapping)
    if fd is None:
        content = memory.read(mapping.start, min(length, _PIECE_MAX))
        offsets = cpuid_sites.find(content, core.can_trap) if search else []
        number = files.from_memory(mapping.path, mapping.offset, content)
        return number, _addresses(offsets, mapping.start)
    flags = _MAP_SHARED if mapping.prot[3] == "s" else _MAP_PRIVATE
    number = sources.numbers.get(mapping.path, 0)
    if not number:
        number, whole = files.mapped(fd, mapping.offset, length, prot_bits(mapping.prot), flags, mapping.path)
        if whole:
            sources.numbers[mapping.path] = number
    offsets = cpuid_sites.in_mapping(fd, mapping.offset, length, core.can_trap) if search else []
    found = number, _addresses(offsets, mapping.start - mapping.offset)
    if identity is not None and mapping.path in sources.numbers:
        files.images[mapping, identity] = found
    return found


def _addresses(sites: Iterable[int], base: int) -> list[int]:
    return [site if site == cpuid_sites.TRAP else site + base for site in sites]


def prot_bits(prot: str) -> int:
    """PROT_* bits of the letters of /proc/PID/maps."""
    return sum(_PROT[letter] for letter in prot[:3] if letter != "-")


@lru_cache(maxsize=256)
def _boot_mapping(mapping: Mapping, number: int, changed: tuple[tuple[int, bytes], ...]) -> BootMapping:
    """What the trace says of a mapping; kept, as without random addresses the same programs look the same."""
    return BootMapping(
        start=mapping.start,
        end=mapping.end,
        prot=prot_bits(mapping.prot),
        flags=mapping.prot[3],
        offset=mapping.offset,
        dev=os.makedev(*mapping.device),
        ino=mapping.inode,
        path=mapping.path,
        file=number,
        data=changed,
    )
