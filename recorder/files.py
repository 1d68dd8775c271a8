"""The files a program maps: which can be expected at replay, and what must be kept of the others.

A *system* file belongs to the machine (root's, writable by nobody else, in a system folder); it is named,
with size, time and hash. Of any other file the content is stored, whole where it is small, else the range
that is mapped.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from interposer.filecache import FileCache
from tracefile import FileEntry, blob_digest, new_digest

PROT_WRITE, PROT_EXEC = 2, 4
MAP_PRIVATE = 2
MAP_TYPE = 0x0F

_SYSTEM = (
    "/usr/",
    "/lib/",
    "/lib64/",
    "/lib32/",
    "/libx32/",
    "/bin/",
    "/sbin/",
    "/opt/",
    "/nix/store/",
)
_WHOLE_MAX = 32 << 20
_PIECE = 1 << 20
_SETTLED_NS = 50_000_000
"""A file that changed so long ago has another time of change when it changes again, however coarse the
clock."""
_MEMORY_ONLY = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})


class FileSink(Protocol):
    """What takes files: a TraceWriter."""

    def add_file(self, entry: FileEntry) -> None: ...

    def add_blob(self, digest: str, chunks: Iterable[bytes]) -> object: ...


class _Content(NamedTuple):
    """Content that does not change without one of these changing, for a file on a disk."""

    dev: int
    ino: int
    mtime_ns: int
    ctime_ns: int
    size: int
    offset: int
    length: int
    shared: bool


class Identity(NamedTuple):
    """A file whose content has not changed as long as none of these has."""

    dev: int
    ino: int
    mtime_ns: int
    ctime_ns: int
    size: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Identity":
        return cls(status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)


class Mapped(NamedTuple):
    """Answer for one mapping: the number of its file (0: nothing to keep), and whether the number stands for
    every private mapping of that file."""

    number: int
    whole: bool


class FileTable:
    """Numbers the mapped files of a recording, and puts them into the trace."""

    def __init__(self, sink: FileSink, owner: int = 0) -> None:
        """Files of user `owner` (root; a test has its own) in system folders count as the system's."""
        self._sink = sink
        self._owner = owner
        self._known: dict[_Content, int] = {}
        self._settled: set[int] = set()
        self._lasting: set[int] = set()
        self._unhashed: dict[int, tuple[str, os.stat_result, FileEntry]] = {}
        self._segments: dict[int, int] = {}
        self._count = 0
        self._hashes = FileCache("sha256-1")
        self._disks: frozenset[int] | None = None

    def mapped(self, fd: int, offset: int, length: int, prot: int, flags: int, path: str = "") -> Mapped:
        """The file of which [offset, offset + length) is mapped.

        Devices have nothing to keep. Raises OSError when the content cannot be read, and what the sink
        raises.
        """
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return Mapped(0, False)
        shared = flags & MAP_TYPE != MAP_PRIVATE
        path = path or os.readlink(f"/proc/self/fd/{fd}")
        if not (shared and prot & PROT_WRITE) and self._is_system(path, status):
            number = self._system(path, status, shared)
            if number:
                return Mapped(number, not shared)
        return Mapped(self._stored(fd, path, status, offset, length, shared), False)

    def lasting(self, number: int) -> bool:
        """Whether what `mapped` answered holds as long as the file's status is the same: for a system file,
        and for one of the program's own that is stored whole and was asked for again."""
        return number in self._lasting

    def from_memory(self, path: str, offset: int, content: bytes) -> int:
        """Number for what a mapping shows of a file that cannot be opened."""
        digest = blob_digest(content)
        self._sink.add_blob(digest, iter([content]))
        return self._add(
            FileEntry(
                number=self._next(),
                path=path,
                size=offset + len(content),
                offset=offset,
                length=len(content),
                kind="stored",
                blob=digest,
            )
        )

    def segment(self, identifier: int, size: int) -> int:
        """Number of a System V segment: an object without content, what it holds is in the log."""
        number = self._segments.get(identifier)
        if number is None:
            digest = blob_digest(b"")
            self._sink.add_blob(digest, iter([b""]))
            number = self._segments[identifier] = self._add(
                FileEntry(
                    number=self._next(),
                    path=f"/SYSV{identifier}",
                    size=size,
                    length=size,
                    kind="stored",
                    blob=digest,
                    object=f"sysv:{identifier}",
                    shared=True,
                )
            )
        return number

    def finish(self) -> None:
        """Add the hashes of the system files. Reads them, unless the hash is known from earlier."""
        for path, status, entry in self._unhashed.values():
            digest = self._hash(path, status)
            if digest is not None:
                self._sink.add_file(
                    FileEntry(
                        number=entry.number,
                        path=entry.path,
                        dev=entry.dev,
                        ino=entry.ino,
                        size=entry.size,
                        mtime_ns=entry.mtime_ns,
                        length=entry.length,
                        sha256=digest,
                        kind="system",
                        object=entry.object,
                        shared=entry.shared,
                    )
                )
        self._unhashed.clear()

    def belongs_to_system(self, fd: int) -> bool:
        """Whether this is a file of the system's, which nobody is expected to change. OSError: it is gone."""
        return self._is_system(os.readlink(f"/proc/self/fd/{fd}"), os.fstat(fd))

    def _is_system(self, path: str, status: os.stat_result) -> bool:
        return (
            status.st_uid == self._owner
            and not status.st_mode & 0o022
            and status.st_nlink > 0
            and path.startswith(_SYSTEM)
        )

    def _system(self, path: str, status: os.stat_result, shared: bool) -> int:
        """The number of a system file; 0 where its path, seen from here, names another file or none."""
        key = _content(status, 0, status.st_size, shared)
        number = self._known.get(key)
        if number is None:
            try:
                here = os.stat(path)
            except OSError:
                return 0
            if (here.st_dev, here.st_ino) != (status.st_dev, status.st_ino):
                return 0
            digest = self._hashes.get(status)
            entry = FileEntry(
                number=self._next(),
                path=path,
                dev=status.st_dev,
                ino=status.st_ino,
                size=status.st_size,
                mtime_ns=status.st_mtime_ns,
                length=status.st_size,
                sha256=digest,
                kind="system",
                object=_object(status) if shared else None,
                shared=shared,
            )
            number = self._known[key] = self._add(entry)
            self._lasting.add(number)
            if digest is None:
                self._unhashed[number] = (path, status, entry)
        return number

    def _stored(
        self, fd: int, path: str, status: os.stat_result, offset: int, length: int, shared: bool
    ) -> int:
        if status.st_size <= _WHOLE_MAX:
            start, end = 0, status.st_size
        else:
            start, end = min(offset, status.st_size), min(offset + length, status.st_size)
        key = _content(status, start, end - start, shared)
        lasting = not shared and self._on_disk(status.st_dev)
        if lasting and key in self._known:
            number = self._known[key]
            if number in self._settled and status.st_size <= _WHOLE_MAX:
                self._lasting.add(number)
            return number
        settled = time.time_ns() - status.st_ctime_ns > _SETTLED_NS
        digest, chunks = _snapshot(fd, start, end)
        self._sink.add_blob(digest, chunks())
        number = self._add(
            FileEntry(
                number=self._next(),
                path=path,
                dev=status.st_dev,
                ino=status.st_ino,
                size=status.st_size,
                mtime_ns=status.st_mtime_ns,
                offset=start,
                length=end - start,
                kind="stored",
                blob=digest,
                object=_object(status) if shared else None,
                shared=shared,
            )
        )
        if lasting:
            self._known[key] = number
            if settled:
                self._settled.add(number)
        return number

    def _hash(self, path: str, status: os.stat_result) -> str | None:
        try:
            with open(path, "rb") as file:
                now = os.fstat(file.fileno())
                same = (now.st_ino, now.st_size, now.st_mtime_ns) == (
                    status.st_ino,
                    status.st_size,
                    status.st_mtime_ns,
                )
                if not same:
                    return None
                import hashlib

                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return None
        self._hashes.put(status, digest)
        return digest

    def _on_disk(self, dev: int) -> bool:
        """Whether the time of change tells of every change: not so in memory, where mappings write unseen."""
        if self._disks is None:
            self._disks = _disks()
        return dev in self._disks

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _add(self, entry: FileEntry) -> int:
        self._sink.add_file(entry)
        return entry.number


def _content(status: os.stat_result, offset: int, length: int, shared: bool) -> _Content:
    return _Content(
        status.st_dev,
        status.st_ino,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_size,
        offset,
        length,
        shared,
    )


def _object(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"


def _disks() -> frozenset[int]:
    found = set()
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                fields = line.split()
                if fields[fields.index("-") + 1] not in _MEMORY_ONLY:
                    major, _, minor = fields[2].partition(":")
                    found.add(os.makedev(int(major), int(minor)))
    except (OSError, ValueError, IndexError):
        return frozenset()
    return frozenset(found)


def _read(fd: int, start: int, end: int) -> Iterator[bytes]:
    while start < end and (piece := os.pread(fd, min(_PIECE, end - start), start)):
        yield piece
        start += len(piece)


def _snapshot(fd: int, start: int, end: int) -> tuple[str, Callable[[], Iterator[bytes]]]:
    """The digest of the bytes [start, end), and a way to get them once.

    Small content is kept from the one reading, so that a file that changes meanwhile cannot contradict its
    digest.
    """
    digest = new_digest()
    kept: list[bytes] = []
    small = end - start <= _WHOLE_MAX
    for piece in _read(fd, start, end):
        digest.update(piece)
        if small:
            kept.append(piece)
    return digest.hexdigest(), (lambda: iter(kept)) if small else (lambda: _read(fd, start, end))
