"""What each file descriptor of a recorded process stands for, as its calls tell.

`Tables` is fed the calls of all domains in the order of their numbers (a parent's number is lower than its
children's); between calls it answers what a descriptor is. What was open before the recording began is
"inherited" until a call says more.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

from hangscan.log import numbers
from interfaces.abi import Region, RegionKind
from interfaces.calls import CALLS

O_NONBLOCK, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_WRONLY, O_RDWR = 0o4000, 0o2000000, 0o100, 0o200000, 1, 2
O_TMPFILE = 0o20200000
SOCK_NONBLOCK, SOCK_CLOEXEC = 0o4000, 0o2000000
AT_FDCWD = -100
_F_DUPFD, _F_SETFD, _F_SETFL, _F_DUPFD_CLOEXEC = 0, 2, 4, 1030
_FIONBIO, _TCGETS, _FIOCLEX = 0x5421, 0x5401, 0x5451
_FAMILIES = {1: "unix", 2: "inet", 10: "inet6", 16: "netlink", 17: "packet", 40: "vsock"}
_EFD = {"eventfd2": (1, "eventfd"), "signalfd4": (3, "signalfd"), "inotify_init1": (0, "inotify"),
        "timerfd_create": (1, "timerfd"), "fanotify_init": (0, "fanotify")}  # fmt: skip
_PLAIN = {"eventfd": "eventfd", "signalfd": "signalfd", "inotify_init": "inotify", "epoll_create": "epoll",
          "epoll_create1": "epoll", "pidfd_open": "pidfd", "memfd_create": "memory",
          "userfaultfd": "userfaultfd", "perf_event_open": "perf"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Descriptor:
    """One open descriptor.

    `kind`: file, directory, socket, pipe, terminal, device, eventfd, timerfd, signalfd, inotify, epoll,
    pidfd, memory, inherited. `family` of a socket: unix, inet, inet6, netlink, ...; `peer` is whom it is
    connected to, as text.
    """

    kind: str
    path: str = ""
    nonblock: bool = False
    cloexec: bool = False
    family: str = ""
    peer: str = ""
    stream: bool = True
    listening: bool = False
    wrote: bool = False
    writable: bool = False


@dataclass(slots=True)
class Table:
    """Descriptors, working directory and children of one process."""

    cwd: str
    fds: dict[int, Descriptor] = field(default_factory=dict)
    watched: dict[int, set[int]] = field(default_factory=dict)

    def copy(self, after_exec: bool = False) -> Table:
        """What a child gets, or the program that an exec starts."""
        fds = {fd: one for fd, one in self.fds.items() if not (after_exec and one.cloexec)}
        watched = {fd: set(members) for fd, members in self.watched.items() if fd in fds}
        return Table(self.cwd, fds, watched)

    def get(self, fd: int) -> Descriptor:
        """A descriptor by its number."""
        return self.fds.get(fd, _INHERITED)

    def resolve(self, dirfd: int, path: str) -> str:
        """An absolute path from a path argument."""
        base = self.cwd
        if dirfd != AT_FDCWD and not path.startswith("/"):
            base = self.get(dirfd).path
            if not base:
                return path
        return joined(base, path)


_INHERITED = Descriptor("inherited")
_NAMES = {number: call.name for number, call in CALLS.items()}

OPENING = numbers("open", "openat", "openat2", "creat", "open_by_handle_at")
FD_CALLS = OPENING | numbers(
    "close", "close_range", "dup", "dup2", "dup3", "fcntl", "ioctl", "socket", "socketpair", "connect",
    "accept", "accept4", "listen", "pipe", "pipe2", "eventfd", "eventfd2", "signalfd", "signalfd4",
    "timerfd_create", "inotify_init", "inotify_init1", "epoll_create", "epoll_create1", "epoll_ctl",
    "pidfd_open", "memfd_create", "userfaultfd", "perf_event_open", "fanotify_init", "chdir", "fchdir",
    "clone", "clone3", "fork", "vfork",
)  # fmt: skip
"""Calls that change what descriptors stand for."""


def signed(value: int) -> int:
    """A 32-bit argument as the kernel takes it."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


class Regions(Protocol):
    """The payload of a call, read when asked for."""

    def __call__(self) -> list[Region]:
        """All regions."""

    def text(self, arg: int) -> str:
        """The string that an argument points at; "" where it was not recorded."""


@lru_cache(maxsize=65536)
def joined(base: str, path: str) -> str:
    """An absolute path from a folder and a path."""
    if path.startswith("/"):
        return os.path.normpath(path)
    return os.path.normpath(os.path.join(base, path)) if path else base


def bytes_of(regions: Sequence[Region], arg: int, kind: RegionKind = RegionKind.IN) -> bytes:
    """What argument `arg` points at; b"" where it was not recorded."""
    for region in regions:
        if region.arg == arg and region.kind == kind:
            return region.data
    return b""


def address_text(data: bytes) -> str:
    """A socket address as text: a path, `@name`, `host:port`; "" for others."""
    if len(data) < 2:
        return ""
    family: int = struct.unpack_from("<H", data)[0]
    if family == 1:
        name = data[2:110]
        if name[:1] == b"\0":
            return "@" + name[1:].split(b"\0", 1)[0].decode("utf-8", "replace")
        return name.split(b"\0", 1)[0].decode("utf-8", "replace")
    if family == 2 and len(data) >= 8:
        return f"{'.'.join(map(str, data[4:8]))}:{struct.unpack_from('>H', data, 2)[0]}"
    if family == 10 and len(data) >= 24:
        import ipaddress

        return f"[{ipaddress.IPv6Address(data[8:24])}]:{struct.unpack_from('>H', data, 2)[0]}"
    return ""


class Tables:
    """The descriptor tables of the processes of one domain."""

    def __init__(self, first: Table, pid: int, tasks: dict[int, int]) -> None:
        """`first` is the table of process `pid`; `tasks` maps each thread to its process."""
        self._tables: dict[int, Table] = {pid: first}
        self._pid = pid
        self._tasks = tasks

    def of(self, task: int) -> Table:
        """The table of a thread's process."""
        pid = self._tasks.get(task, self._pid)
        table = self._tables.get(pid)
        if table is None:
            table = self._tables[pid] = self._tables[self._pid].copy()
        return table

    def fork(self, task: int, child: int) -> None:
        """A process that shares the domain begins with a copy of its creator's table."""
        self._tables[child] = self.of(task).copy()

    def apply(self, task: int, nr: int, args: Sequence[int], result: int, regions: Regions) -> None:
        """Take in a completed call of `FD_CALLS`."""
        if result < 0:
            if result == -115 and _NAMES[nr] == "connect":
                self._connect(self.of(task), args, regions())
            return
        name = _NAMES[nr]
        table = self.of(task)
        handler = getattr(self, f"_on_{name}", None) if nr not in OPENING else None
        if handler is not None:
            handler(table, args, result, regions)
        elif nr in OPENING:
            _opened(table, name, args, result, regions)
        elif name in _EFD:
            index, kind = _EFD[name]
            flags = int(args[index])
            table.fds[result] = Descriptor(kind, "", bool(flags & O_NONBLOCK), bool(flags & O_CLOEXEC))
        elif name in _PLAIN:
            path = f"memfd:{regions.text(0)}" if name == "memfd_create" else ""
            table.fds[result] = Descriptor(_PLAIN[name], path, cloexec=bool(args[0] & O_CLOEXEC))

    # ---- one method a call; found by name ----

    def _on_close(self, table: Table, args: Sequence[int], result: int, regions: object) -> None:
        table.fds.pop(signed(args[0]), None)
        table.watched.pop(signed(args[0]), None)

    def _on_close_range(self, table: Table, args: Sequence[int], result: int, regions: object) -> None:
        first, last = int(args[0]) & 0xFFFFFFFF, int(args[1]) & 0xFFFFFFFF
        for fd in [fd for fd in table.fds if first <= fd <= last]:
            if args[2] & 4:
                table.fds[fd] = replace(table.fds[fd], cloexec=True)
            else:
                del table.fds[fd]

    def _on_dup(self, table: Table, args: Sequence[int], result: int, regions: object) -> None:
        table.fds[result] = replace(table.get(signed(args[0])), cloexec=False)

    _on_dup2 = _on_dup

    def _on_dup3(self, table: Table, args: Sequence[int], result: int, regions: object) -> None:
        table.fds[result] = replace(table.get(signed(args[0])), cloexec=bool(args[2] & O_CLOEXEC))

    def _on_fcntl(self, table: Table, args: Sequence[int], result: int, regions: object) -> None:
        fd, command = signed(args[0]), int(args[1]) & 0xFFFFFFFF
        one = table.get(fd)
        if command in (_F_DUPFD, _F_DUPFD_CLOEXEC):
            table.fds[result] = replace(one, cloexec=command == _F_DUPFD_CLOEXEC)
        elif command == _F_SETFL:
            table.fds[fd] = replace(one, nonblock=bool(args[2] & O_NONBLOCK))
        elif command == _F_SETFD:
            table.fds[fd] = replace(one, cloexec=bool(args[2] & 1))

    def _on_ioctl(self, table: Table, args: Sequence[int], result: int, regions: Regions) -> None:
        fd, request = signed(args[0]), int(args[1]) & 0xFFFFFFFF
        one = table.get(fd)
        if request == _FIONBIO:
            value = bytes_of(regions(), 2)
            table.fds[fd] = replace(one, nonblock=value[:4] not in (b"", b"\0\0\0\0"))
        elif request == _FIOCLEX:
            table.fds[fd] = replace(one, cloexec=True)
        elif request == _TCGETS and one.kind in ("inherited", "device", "file"):
            table.fds[fd] = replace(one, kind="terminal")

    def _on_socket(self, table: Table, args: Sequence[int], result: int, regions: object) -> None:
        table.fds[result] = _socket(args)

    def _on_socketpair(self, table: Table, args: Sequence[int], result: int, regions: Regions) -> None:
        data = bytes_of(regions(), 3, RegionKind.OUT)
        if len(data) >= 8:
            for fd in struct.unpack_from("<2i", data):
                table.fds[fd] = replace(_socket(args), kind="pipe", peer="(socket pair)")

    def _on_pipe(self, table: Table, args: Sequence[int], result: int, regions: Regions) -> None:
        self._pipe(table, 0, regions())

    def _on_pipe2(self, table: Table, args: Sequence[int], result: int, regions: Regions) -> None:
        self._pipe(table, int(args[1]), regions())

    def _pipe(self, table: Table, flags: int, regions: Sequence[Region]) -> None:
        data = bytes_of(regions, 0, RegionKind.OUT)
        if len(data) >= 8:
            for fd in struct.unpack_from("<2i", data):
                table.fds[fd] = Descriptor("pipe", "", bool(flags & O_NONBLOCK), bool(flags & O_CLOEXEC))

    def _on_connect(self, table: Table, args: Sequence[int], result: int, regions: Regions) -> None:
        self._connect(table, args, regions())

    def _connect(self, table: Table, args: Sequence[int], regions: Sequence[Region]) -> None:
        peer = address_text(bytes_of(regions, 1))
        fd = signed(args[0])
        table.fds[fd] = replace(table.get(fd), kind="socket", peer=peer)

    def _on_listen(self, table: Table, args: Sequence[int], result: int, regions: object) -> None:
        fd = signed(args[0])
        table.fds[fd] = replace(table.get(fd), listening=True)

    def _on_accept(self, table: Table, args: Sequence[int], result: int, regions: Regions) -> None:
        self._accepted(table, args, result, 0, regions())

    def _on_accept4(self, table: Table, args: Sequence[int], result: int, regions: Regions) -> None:
        self._accepted(table, args, result, int(args[3]), regions())

    def _accepted(
        self, table: Table, args: Sequence[int], result: int, flags: int, regions: Sequence[Region]
    ) -> None:
        listening = table.get(signed(args[0]))
        table.fds[result] = Descriptor(
            "socket", "", bool(flags & SOCK_NONBLOCK), bool(flags & SOCK_CLOEXEC), listening.family,
            address_text(bytes_of(regions, 1, RegionKind.OUT)),
        )  # fmt: skip

    def _on_epoll_ctl(self, table: Table, args: Sequence[int], result: int, regions: object) -> None:
        members = table.watched.setdefault(signed(args[0]), set())
        if args[1] == 2:
            members.discard(signed(args[2]))
        else:
            members.add(signed(args[2]))

    def _on_chdir(self, table: Table, args: Sequence[int], result: int, regions: Regions) -> None:
        table.cwd = table.resolve(AT_FDCWD, regions.text(0))

    def _on_fchdir(self, table: Table, args: Sequence[int], result: int, regions: object) -> None:
        path = table.get(signed(args[0])).path
        if path:
            table.cwd = path

    def _on_clone(self, table: Table, args: Sequence[int], result: int, regions: object) -> None:
        """A new process's first event says what it shares (see `fork`)."""

    _on_clone3 = _on_fork = _on_vfork = _on_clone


def _socket(args: Sequence[int]) -> Descriptor:
    kind = int(args[1])
    return Descriptor(
        "socket", "", bool(kind & SOCK_NONBLOCK), bool(kind & SOCK_CLOEXEC),
        _FAMILIES.get(int(args[0]), str(args[0])), stream=kind & 0xF == 1,
    )  # fmt: skip


def _opened(table: Table, name: str, args: Sequence[int], result: int, regions: Regions) -> None:
    at = 1 if name in ("openat", "openat2") else 0
    path = table.resolve(signed(args[0]) if at else AT_FDCWD, regions.text(at))
    if name == "openat2":
        how = bytes_of(regions(), 2)
        flags = struct.unpack_from("<Q", how)[0] if len(how) >= 8 else 0
    else:
        flags = O_WRONLY if name == "creat" else int(args[at + 1])
    kind = "file"
    if path.startswith("/dev/"):
        kind = "terminal" if path.startswith(("/dev/pts/", "/dev/tty")) else "device"
        if path.startswith(("/dev/shm/", "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")):
            kind = "memory"
    elif flags & O_DIRECTORY and flags & O_TMPFILE != O_TMPFILE:
        kind = "directory"
    table.fds[result] = Descriptor(
        kind, path, bool(flags & O_NONBLOCK), bool(flags & O_CLOEXEC),
        writable=bool(flags & (O_WRONLY | O_RDWR)),
    )  # fmt: skip
