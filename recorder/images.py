"""A new image: what the trace says of it, and the core put into it.

The same for the first program and for every later execve. The thread stands at its exec stop.
"""

import os
import stat
import time
from collections.abc import Iterable
from typing import NamedTuple

from interposer import bootimage, cpuid_sites, inject, procfs, ptrace
from interposer.bootimage import ImageState, Layout
from interposer.errors import InjectError
from interposer.image import Image
from interposer.procfs import Mapping
from recorder.files import FileTable, Identity
from tracefile import BootImage, BootMapping, DomainStart

_PROT = {"r": 1, "w": 2, "x": 4}
_MAP_SHARED, _MAP_PRIVATE = 1, 2
_AT_EUID, _AT_EGID = 12, 14
_PIECE_MAX = 64 << 20
_PROGRAMS_MAX = 256


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


class Program(NamedTuple):
    """What is the same whenever the same files are executed at the same addresses.

    `files`: what tells that they still are the same, by path; None where that is not certain. `patches`:
    addresses of CPUID instructions, with TRAP first where there may be others; `writes` put the replacements
    there. `place`: where instructions can be put that map the core, or 0. `set_id`: its file is to give it
    the rights of a user or a group.
    """

    layout: Layout
    mappings: tuple[BootMapping, ...]
    files: tuple[tuple[str, Identity], ...] | None
    patches: tuple[int, ...]
    writes: tuple[inject.Patch, ...]
    place: int
    set_id: bool

    def is_as_before(self) -> bool:
        """Whether its files still are what they were."""
        try:
            return self.files is not None and all(
                Identity.of(os.stat(path)) == identity for path, identity in self.files
            )
        except OSError:
            return False


Programs = dict[bytes, Program]
"""By the text of /proc/PID/maps at the exec stop: without random addresses it is the same each time."""


class NewImage(NamedTuple):
    """An image that has been looked at and may now carry the core."""

    pid: int
    registers: ptrace.Registers
    state: ImageState
    program: Program
    domain: int
    parent: Parent
    time: int

    def start(self) -> DomainStart:
        """What the trace says of it. That takes as long as the rest: the program may run meanwhile."""
        state = self.state
        return DomainStart(
            domain=self.domain,
            kind="exec",
            pid=self.pid,
            parent_domain=self.parent.domain,
            parent_event=self.parent.event,
            ppid=state.ppid,
            time=self.time,
            comm=state.comm,
            exe=state.exe,
            cwd=state.cwd,
            argv=state.argv,
            envp=state.envp,
            boot=BootImage(
                mappings=self.program.mappings,
                stack_start=state.stack_pointer,
                stack=state.stack,
                regs={"rip": state.entry, "rsp": state.stack_pointer},
                auxv=state.auxv,
                brk=state.brk,
                patches=self.program.patches,
                stack_limit=state.stack_limit,
            ),
        )


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
    programs: Programs,
) -> NewImage:
    """Read the image and put its files into the trace. `programs` are those that were seen before.

    Raises InjectError where it cannot be recorded, ptrace.Gone or OSError when it is gone, TraceWriteError.
    """
    if not inject.is_64bit(registers):
        raise InjectError(
            "a 32-bit program cannot be recorded", "Build it for x86-64; 32-bit programs are not supported."
        )
    maps = procfs.maps(pid)
    program = programs.get(maps)
    if program is None or not program.is_as_before():
        program = _look(pid, maps, files, core, memory)
        if len(programs) >= _PROGRAMS_MAX:
            programs.clear()
        programs[maps] = program
    state = bootimage.capture(pid, registers.rip, registers.rsp, memory, program.layout)
    return NewImage(pid, registers, state, program, domain, parent, time.monotonic_ns())


def _look(pid: int, maps: bytes, files: FileTable, core: Core, memory: ptrace.Memory) -> Program:
    """What has not been seen before: its files go into the trace, their code is searched."""
    layout = bootimage.look(pid, maps, memory)
    mappings: list[BootMapping] = []
    patches: list[int] = []
    identities: dict[str, Identity] | None = {}
    sources = _Sources(pid, procfs.link(pid, "exe"))
    try:
        for mapping in layout.mappings:
            number, sites = _keep(mapping, sources, files, core, memory)
            patches += sites
            if core.can_trap and "wx" in mapping.prot:
                patches.append(cpuid_sites.TRAP)
            changed = tuple(page for page in layout.changed if mapping.start <= page.address < mapping.end)
            mappings.append(_boot_mapping(mapping, number, changed))
            if identities is not None and mapping.is_file:
                identity = sources.identity(mapping) if files.lasting(number) else None
                if identity is None:
                    identities = None
                else:
                    identities[mapping.path] = identity
    finally:
        sources.close()
    if cpuid_sites.TRAP in patches:
        patches = [cpuid_sites.TRAP, *(site for site in patches if site != cpuid_sites.TRAP)]
    writes = [inject.Patch(address, cpuid_sites.REPLACED) for address in patches if address]
    return Program(
        layout,
        tuple(mappings),
        None if identities is None else tuple(identities.items()),
        tuple(patches),
        tuple(inject.together(writes, memory)),
        inject.place_in(layout.mappings, core.image, memory),
        _is_set_id(pid),
    )


def _is_set_id(pid: int) -> bool:
    try:
        return bool(os.stat(f"/proc/{pid}/exe").st_mode & (stat.S_ISUID | stat.S_ISGID))
    except OSError:
        return False


def carry(new: NewImage, core: Core, memory: ptrace.Memory) -> None:
    """Put the core into the image; it starts there once detached. Raises InjectError, ptrace.Gone."""
    pid, traps = new.pid, cpuid_sites.TRAP in new.program.patches
    descriptor = core.fd_base + core.image_fd
    if new.parent.domain and new.program.place and not inject.is_limited(pid):
        inject.inject_unwatched(
            pid, new.registers, core.image, descriptor, fd_base=core.fd_base, domain=new.domain, traps=traps,
            memory=memory, place=new.program.place, patches=new.program.writes,
        )  # fmt: skip
    else:
        inject.inject(
            pid, new.registers, core.image, descriptor, fd_base=core.fd_base, domain=new.domain, traps=traps,
            memory=memory, patches=new.program.writes,
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
    return number, _addresses(offsets, mapping.start - mapping.offset)


def _addresses(sites: Iterable[int], base: int) -> list[int]:
    return [site if site == cpuid_sites.TRAP else site + base for site in sites]


def prot_bits(prot: str) -> int:
    """PROT_* bits of the letters of /proc/PID/maps."""
    return sum(_PROT[letter] for letter in prot[:3] if letter != "-")


def _boot_mapping(mapping: Mapping, number: int, changed: tuple[tuple[int, bytes], ...]) -> BootMapping:
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
