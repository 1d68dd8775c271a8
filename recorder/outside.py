"""Memory that recorded processes share with processes outside of the recording, which may write it unseen.

What an unrecorded process writes into shared memory is in no call's result, so a replay cannot have it.
Nobody tells when that begins: the other side may map the object before or after the recorded one does. So it
is looked for in /proc: at once when a recorded process maps something shared, and again later, ever more
rarely. What /proc does not show (processes of other users, for who is not root) is not found.
"""

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from interfaces import abi

_SOON = 0.2
_RARELY = 60.0
_SHARED_WRITABLE = rb"(?m)^\w+-\w+ .w.s \w+ (\w+):(\w+) (\d+)"
_OUR_PAGE = rb"(?m)^\w+-\w+ \S+ \w+ \S+ (\d+) +/memfd:rr-global"
_THEIR_PAGE = rb"(?m)^%x-\w+ \S+ \w+ \S+ (\d+)" % abi.GLOBAL
_PAGE_NAME = "/memfd:rr-global"
_SYSV_DEVICE = 1

_Key = tuple[int, int]


class Shared(NamedTuple):
    """Who outside may write an object: `name` of the object, `pid` and `program` of the process."""

    domain: int
    process: int
    name: str
    pid: int
    program: str

    @property
    def text(self) -> str:
        return (
            f"{self.name} is shared with {self.program} (process {self.pid}), which is not recorded: "
            "what that writes there may be missing from a replay"
        )


class _Object(NamedTuple):
    domain: int
    process: int
    name: str
    in_memory: bool


class OutsideWatch:
    """The shared objects of a recording, and when to look again who else has them."""

    def __init__(self) -> None:
        self._objects: dict[_Key, _Object] = {}
        self._told: set[_Key] = set()
        self._next = 0.0
        self._pause = _SOON

    def mapped(self, domain: int, process: int, fds: Iterable[int], segment: int | None) -> None:
        """A recorded process maps a file (the first of `fds`), or attaches the System V segment `segment`.

        OSError: the file is gone.
        """
        if segment is not None:
            key, found = (_SYSV_DEVICE, segment), f"System V segment {segment}"
            in_memory = False
        else:
            fd = next(iter(fds), None)
            if fd is None:
                return
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or _sealed(fd):
                return
            key, found = (status.st_dev, status.st_ino), os.readlink(f"/proc/self/fd/{fd}")
            in_memory = found.startswith(("/memfd:", "/dev/shm/"))
        if key in self._objects or key in self._told:
            return
        self._objects[key] = _Object(domain, process, found, in_memory)
        self._next, self._pause = 0.0, _SOON

    def look(self, ending: int | None = None) -> list[Shared]:
        """What has turned out to be shared with a process outside; each object once.

        Cheap until it is time to look, or domain `ending` ends and had something that can be passed on.
        """
        due = time.monotonic() >= self._next
        last = any(known.domain == ending and known.in_memory for known in self._objects.values())
        if not self._objects or not (due or last):
            return []
        found = list(self._found())
        self._next = time.monotonic() + self._pause
        self._pause = min(_RARELY, self._pause * 2)
        return found

    def forget(self, domain: int) -> None:
        """The domain has ended."""
        for key in [key for key, known in self._objects.items() if known.domain == domain]:
            del self._objects[key]

    def _found(self) -> Iterator[Shared]:
        ours = _own_pages()
        for pid in _processes():
            for key in self._writable_by(pid, ours):
                if key not in self._objects or key not in self._writable_by(pid, ours):
                    continue
                known = self._objects.pop(key)
                self._told.add(key)
                program = _read(f"/proc/{pid}/comm").decode(errors="replace").strip()
                yield Shared(known.domain, known.process, known.name, pid, program)

    def _writable_by(self, pid: int, ours: set[bytes]) -> set[_Key]:
        """Our objects that the process can write, if it is not recorded.

        It may be on its way to its end, or to another program, so that one look proves nothing.
        """
        maps = _read(f"/proc/{pid}/maps")
        page = re.search(_THEIR_PAGE, maps)
        if not maps or (page and page[1] in ours):
            return set()
        keys = {
            (os.makedev(int(major, 16), int(minor, 16)), int(inode))
            for major, minor, inode in re.findall(_SHARED_WRITABLE, maps)
        }
        opened = dict[_Key, str]()
        if keys & self._objects.keys() or any(known.in_memory for known in self._objects.values()):
            opened = _open_for_writing(pid)
        if any(path == _PAGE_NAME and str(inode).encode() in ours for (_, inode), path in opened.items()):
            return set()
        return (keys | opened.keys()) & self._objects.keys()


def _sealed(fd: int) -> bool:
    """Whether nobody can write the object any more."""
    try:
        return bool(fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE)
    except OSError:
        return False


def _own_pages() -> set[bytes]:
    return set(re.findall(_OUR_PAGE, _read("/proc/self/maps")))


def _processes() -> Iterator[int]:
    own = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != own:
            yield int(name)


def _open_for_writing(pid: int) -> dict[_Key, str]:
    """The objects in memory that a process has open for writing, and their names."""
    found = dict[_Key, str]()
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{name}"
            with suppress(OSError):
                target = os.readlink(path)
                if target.startswith(("/memfd:", "/dev/shm/")) and os.lstat(path).st_mode & stat.S_IWUSR:
                    status = os.stat(path)
                    found[status.st_dev, status.st_ino] = target.removesuffix(" (deleted)")
    return found


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
