"""Which calls can block on something outside the thread, and on what: the trace's calls as operations."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hangscan.descriptors import AT_FDCWD, Descriptor, Regions, Table, address_text, bytes_of, signed
from hangscan.log import numbers
from hangscan.model import Resource
from hangscan.places import Places
from interfaces.abi import RegionKind
from interfaces.calls import BY_NAME, CALLS

AT_EMPTY_PATH = 0x1000
_MSG_DONTWAIT = 0x40
_WNOHANG = 1
_F_SETLKW, _F_OFD_SETLKW = 7, 38
_LOCK_NB = 4
_FUTEX_WAITS = (0, 9, 6, 11, 13)
FUTEX_WAKES = (1, 3, 4, 5, 7, 10)

PATH_CALLS: dict[str, tuple[str, int, int | None]] = {
    "open": ("open", 0, None), "openat": ("open", 1, 0), "openat2": ("open", 1, 0),
    "creat": ("open", 0, None),
    "stat": ("stat", 0, None), "lstat": ("stat", 0, None), "newfstatat": ("stat", 1, 0),
    "statx": ("stat", 1, 0), "access": ("stat", 0, None), "faccessat": ("stat", 1, 0),
    "faccessat2": ("stat", 1, 0), "readlink": ("stat", 0, None), "readlinkat": ("stat", 1, 0),
    "statfs": ("statfs", 0, None), "chdir": ("stat", 0, None), "getxattr": ("stat", 0, None),
    "lgetxattr": ("stat", 0, None), "listxattr": ("stat", 0, None), "llistxattr": ("stat", 0, None),
    "inotify_add_watch": ("stat", 1, None),
    "unlink": ("change", 0, None), "unlinkat": ("change", 1, 0), "rename": ("change", 0, None),
    "renameat": ("change", 1, 0), "renameat2": ("change", 1, 0), "mkdir": ("change", 0, None),
    "mkdirat": ("change", 1, 0), "rmdir": ("change", 0, None), "link": ("change", 0, None),
    "linkat": ("change", 1, 0), "symlink": ("change", 1, None), "symlinkat": ("change", 2, 1),
    "chmod": ("change", 0, None), "fchmodat": ("change", 1, 0), "chown": ("change", 0, None),
    "lchown": ("change", 0, None), "fchownat": ("change", 1, 0), "utime": ("change", 0, None),
    "utimes": ("change", 0, None), "utimensat": ("change", 1, 0), "truncate": ("change", 0, None),
    "setxattr": ("change", 0, None), "lsetxattr": ("change", 0, None), "mknod": ("change", 0, None),
    "mknodat": ("change", 1, 0),
}  # fmt: skip
"""Calls that take a path: operation, argument of the path, argument of the directory descriptor."""

FD_OPERATIONS: dict[str, str] = {
    "read": "read", "pread64": "read", "readv": "read", "preadv": "read", "preadv2": "read",
    "write": "write", "pwrite64": "write", "writev": "write", "pwritev": "write", "pwritev2": "write",
    "fsync": "fsync", "fdatasync": "fsync", "sync_file_range": "fsync", "syncfs": "fsync",
    "fstat": "fstat", "fstatfs": "statfs", "getdents": "readdir", "getdents64": "readdir",
    "ftruncate": "change", "fallocate": "change", "fchmod": "change", "fchown": "change",
    "flock": "flock", "fcntl": "flock", "close": "close",
    "sendfile": "read", "copy_file_range": "read", "splice": "read",
    "connect": "connect", "accept": "accept", "accept4": "accept",
    "recvfrom": "receive", "recvmsg": "receive", "recvmmsg": "receive",
    "sendto": "send", "sendmsg": "send", "sendmmsg": "send",
}  # fmt: skip
"""Calls whose first argument is the descriptor they work on (the second of sendfile: what it reads)."""

POLLS = numbers("poll", "ppoll")
SELECTS = numbers("select", "pselect6")
EPOLLS = numbers("epoll_wait", "epoll_pwait", "epoll_pwait2")
WAITS = POLLS | SELECTS | EPOLLS
CHILDREN = numbers("wait4", "waitid")
NAPS = numbers("nanosleep", "clock_nanosleep")
SLEEPS = numbers("nanosleep", "clock_nanosleep", "pause", "rt_sigsuspend", "rt_sigtimedwait")
FUTEX = BY_NAME["futex"].number
IPC = numbers("msgrcv", "msgsnd", "semop", "semtimedop", "mq_timedreceive", "mq_timedsend")
SYNC = numbers("sync", "msync")
MMAP = numbers("mmap")
CANDIDATES = (
    numbers(*PATH_CALLS, *FD_OPERATIONS) | WAITS | CHILDREN | SLEEPS | frozenset({FUTEX}) | IPC | SYNC | MMAP
)
"""Numbers of all calls that may become operations."""

_FILE_KINDS = ("file", "directory")
_ALWAYS_READY = ("eventfd", "timerfd", "signalfd", "inotify", "fanotify", "memory", "pidfd", "epoll", "perf",
                 "userfaultfd")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judged:
    """What a call works on. `whole` says that it can take time even where the kernel never puts it to
    sleep (so that a model may slow it)."""

    name: str
    resource: Resource
    size: int = 0
    path_key: str = ""


_NAMES = {number: call.name for number, call in CALLS.items()}


class Judge:
    """Turns calls into operations, knowing the descriptor tables."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._of_path: dict[str, Resource] = {}
        self._judged: dict[tuple[str, str], Judged | None] = {}

    def judge(
        self, table: Table, nr: int, args: Sequence[int], result: int, regions: Regions
    ) -> Judged | None:
        """The operation of a call, None for one that cannot block a thread noticeably."""
        name = _NAMES[nr]
        if name in PATH_CALLS:
            return self._path(table, name, args, regions)
        if name in FD_OPERATIONS:
            return self._descriptor(table, name, args, result, regions)
        if nr in WAITS:
            return self._wait(table, nr, args, regions)
        if nr in CHILDREN:
            options = int(args[2 if name == "wait4" else 3])
            if options & _WNOHANG:
                return None
            pid = signed(args[0] if name == "wait4" else args[1])
            return Judged("wait", Resource("child", command=f"pid {pid if pid > 0 else result}"))
        if nr in SLEEPS:
            return Judged("sleep" if "sleep" in name else "wait for a signal", Resource("sleep"))
        if nr == FUTEX:
            if int(args[1]) & 127 not in _FUTEX_WAITS:
                return None
            return Judged("wait", Resource("lock", address=int(args[0])))
        if nr in IPC:
            return Judged("wait", Resource("lock"))
        if nr in SYNC:
            return Judged("fsync", Resource("file", scope="user"))
        if nr in MMAP:
            return self._mapped(table, args, result)
        return None

    def of_path(self, path: str) -> Resource:
        """The resource that a path names."""
        found = self._of_path.get(path)
        if found is None:
            place = self._places.of(path)
            found = Resource("file", path, place.scope, place.filesystem, place.mount)
            self._of_path[path] = found
        return found

    def of_descriptor(self, one: Descriptor) -> Resource:
        """The resource behind a descriptor."""
        if one.kind in _FILE_KINDS:
            return self.of_path(one.path) if one.path else Resource("file")
        if one.kind == "socket":
            return Resource(socket_kind(one), peer=one.peer, remote_peer=is_remote(one))
        if one.kind in ("terminal", "pipe"):
            return Resource(one.kind, one.path)
        return Resource("pipe", one.path)

    def _path(self, table: Table, name: str, args: Sequence[int], regions: Regions) -> Judged | None:
        operation, at, dirfd = PATH_CALLS[name]
        text = regions.text(at)
        folder = signed(args[dirfd]) if dirfd is not None else AT_FDCWD
        if not text:
            if dirfd is None or folder == AT_FDCWD or operation != "stat":
                return None
            one = table.get(folder)
            if one.kind not in _FILE_KINDS or not one.path:
                return None
            resource = self.of_path(one.path)
            return None if resource.scope == "memory" else Judged("fstat", resource)
        path = table.resolve(folder, text)
        key = (operation, path)
        if key not in self._judged:
            resource = self.of_path(path)
            moot = resource.scope == "memory" or not path.startswith("/")
            self._judged[key] = None if moot else Judged(operation, resource, path_key=path)
        return self._judged[key]

    def _descriptor(
        self, table: Table, name: str, args: Sequence[int], result: int, regions: Regions
    ) -> Judged | None:
        operation = FD_OPERATIONS[name]
        fd = signed(args[1 if name == "sendfile" else 0])
        one = table.get(fd)
        if name == "fcntl" and int(args[1]) & 0xFFFFFFFF not in (_F_SETLKW, _F_OFD_SETLKW):
            return None
        if name == "flock" and int(args[1]) & _LOCK_NB:
            return None
        size = max(result, 0) if operation in ("read", "write", "send", "receive") else 0
        if one.kind in _FILE_KINDS:
            if not one.path:
                return None
            resource = self.of_path(one.path)
            if resource.scope == "memory":
                return None
            if operation == "flock":
                return Judged("lock", Resource("filelock", one.path, resource.scope, resource.filesystem))
            if operation == "close" and not one.wrote:
                return None
            if operation == "write" and not one.wrote:
                table.fds[fd] = replace(one, wrote=True)
            return Judged(operation, resource, size, one.path)
        if operation in ("fsync", "fstat", "statfs", "readdir", "change", "close", "flock"):
            return None
        if one.nonblock or one.kind in _ALWAYS_READY:
            return None
        if operation in ("receive", "send") and name not in ("recvmmsg", "sendmmsg"):
            flags = int(args[3] if name in ("recvfrom", "sendto") else args[2])
            if flags & _MSG_DONTWAIT:
                return None
        if operation == "connect":
            one = replace(one, kind="socket", peer=address_text(bytes_of(regions(), 1)) or one.peer)
        return Judged(operation, self.of_descriptor(one), size)

    def _wait(self, table: Table, nr: int, args: Sequence[int], regions: Regions) -> Judged | None:
        fds: list[int] = []
        if nr in EPOLLS:
            fds = sorted(table.watched.get(signed(args[0]), ()))
        elif nr in POLLS:
            count = int(args[1])
            data = bytes_of(regions(), 0, RegionKind.OUT) or bytes_of(regions(), 0)
            fds = [struct.unpack_from("<i", data, at)[0] for at in range(0, min(len(data), 8 * count), 8)]
            if count == 0:
                return Judged("sleep", Resource("sleep"))
        else:
            known = regions()
            for arg in (1, 2, 3):
                data = bytes_of(known, arg) or bytes_of(known, arg, RegionKind.OUT)
                word = int.from_bytes(data, "little")
                fds.extend(bit for bit in range(min(int(args[0]) & 0xFFFF, 1024)) if word >> bit & 1)
            if not any(args[1:4]):
                return Judged("sleep", Resource("sleep"))
        found = [self.of_descriptor(table.get(fd)) for fd in fds if table.get(fd).kind not in _ALWAYS_READY]
        order = ("dns", "bus", "display", "socket", "pipe", "terminal", "file")
        found.sort(key=lambda one: order.index(one.kind) if one.kind in order else len(order))
        return Judged("wait", found[0] if found else Resource("pipe"))

    def _mapped(self, table: Table, args: Sequence[int], result: int) -> Judged | None:
        """A mapped file is read when it is touched: page faults, which no call shows."""
        fd = signed(args[4])
        if fd < 0 or -4096 < result < 0:
            return None
        one = table.get(fd)
        if one.kind != "file" or not one.path:
            return None
        place = self._places.of(one.path)
        if place.scope == "memory":
            return None
        resource = Resource("fault", one.path, place.scope, place.filesystem, place.mount)
        return Judged("page faults", resource, int(args[1]), one.path)


def socket_kind(one: Descriptor) -> str:
    """dns, bus, display or socket, by whom the socket is connected to."""
    peer = one.peer
    if one.family in ("inet", "inet6") and peer.endswith((":53", ":853")):
        return "dns"
    if peer.endswith(("/nscd/socket", "/systemd/resolve/io.systemd.Resolve", "avahi-daemon/socket")):
        return "dns"
    if ".X11-unix/" in peer or "/wayland-" in peer or peer.endswith((":6000", ":6001", ":6010")):
        return "display"
    if "dbus" in peer or peer.endswith(("/bus", "/system_bus_socket")) or "/at-spi/" in peer:
        return "bus"
    return "socket"


def is_remote(one: Descriptor) -> bool:
    """Whether a socket's peer is another machine."""
    if one.family not in ("inet", "inet6"):
        return False
    return not one.peer.startswith(("127.", "[::1]", "0.0.0.0:", "[::]")) and bool(one.peer)
