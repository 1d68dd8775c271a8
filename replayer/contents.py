"""The content of mapped files: from a number of the trace's file table to a descriptor that can be mapped.

A system file is taken from the disk if it still is what was recorded (size and modification time, else the
hash of its content); everything else comes out of the trace, in a memfd, or in an unlinked temporary file
when large. What a domain maps shared and writable is one object per domain, so that its mappings see each
other.
"""

from __future__ import annotations

import os
import re
import stat
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from interfaces.abi import OFFERS_MAX
from replayer.errors import ContentError
from tracefile.errors import FileChangedError
from tracefile.reader import TraceReader
from tracefile.records import FileEntry

_PAGE = 4096
_LARGE = 256 << 20
_OPEN_MAX = 128
_PACK = "Install the recorded version, or record again and use `rr-py pack` to put all files into the trace."
_NAME = re.compile(r"[/:]rr-file-(\d+)(?:-\w+)?(?: \(deleted\))?$")


class Content(NamedTuple):
    """A descriptor (the provider keeps it open) and the offset at which the wanted bytes lie in it.

    `lasting`: the same descriptor, as far from the file's own offsets, for whoever wants this file, and open
    as long as the provider is.
    """

    fd: int
    offset: int
    lasting: bool = False


class Contents:
    """Provides the content of the files of one trace for one replay."""

    def __init__(self, reader: TraceReader) -> None:
        self._reader = reader
        self._open: OrderedDict[int, int] = OrderedDict()
        self._lasting: set[int] = set()
        self._objects: dict[tuple[int, str], int] = {}
        self._verified: set[int] = set()
        self._hashes: dict[tuple[int, int, int, int], str] = {}

    @property
    def files(self) -> Mapping[int, FileEntry]:
        """The trace's file table."""
        return self._reader.files

    def check_all(self) -> None:
        """Look at every system file before anything runs; FileChangedError for the first wrong one."""
        for number in sorted(self._reader.files):
            entry = self._reader.files[number]
            if entry.kind == "system" and not self._in_trace(entry):
                os.close(self._open_system(entry))

    def get(self, number: int, domain: int, offset: int, shared: bool, as_it_is: bool = False) -> Content:
        """The content of file `number` at byte `offset` of the file.

        `as_it_is`: of what is mapped shared, the file without putting its recorded content into it again.

        Raises FileChangedError for a system file that is not what was recorded, ContentError for content
        that is missing in the trace.
        """
        entry = self._reader.files.get(number)
        if entry is None:
            raise ContentError(f"the trace has no file {number}", "The trace is damaged: record again.")
        if entry.shared and entry.object is not None and shared and self._in_trace(entry):
            known = self._objects.get((domain, entry.object)) if as_it_is else None
            return Content(self._shared(entry, domain) if known is None else known, offset)
        descriptor = self._open.get(number)
        if descriptor is None:
            descriptor = self._fill(entry) if self._in_trace(entry) else self._open_system(entry)
            self._open[number] = descriptor
            if len(self._lasting) < OFFERS_MAX:
                self._lasting.add(number)
            elif len(self._open) > _OPEN_MAX:
                self._close_oldest()
        elif number not in self._lasting:
            self._open.move_to_end(number)
        at = offset - entry.offset if self._in_trace(entry) else offset
        return Content(descriptor, at, number in self._lasting)

    def _close_oldest(self) -> None:
        oldest = next(number for number in self._open if number not in self._lasting)
        os.close(self._open.pop(oldest))

    def path_of(self, mapped: str) -> str:
        """The recorded path behind the name that a mapping has in a replaying process."""
        match = _NAME.search(mapped)
        entry = self._reader.files.get(int(match[1])) if match else None
        return entry.path if entry is not None else mapped

    def close(self) -> None:
        """Close every descriptor."""
        for descriptor in [*self._open.values(), *self._objects.values()]:
            os.close(descriptor)
        self._open.clear()
        self._lasting.clear()
        self._objects.clear()

    @staticmethod
    def _in_trace(entry: FileEntry) -> bool:
        return entry.blob is not None

    def _open_system(self, entry: FileEntry) -> int:
        """A descriptor of the file on the disk, once it is known to be the recorded one."""
        try:
            descriptor = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            raise FileChangedError(
                f"{entry.path}, which the recorded program maps, cannot be opened: {error.strerror}", _PACK
            ) from None
        try:
            self._verify(entry, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _verify(self, entry: FileEntry, descriptor: int) -> None:
        if entry.number in self._verified:
            return
        now = os.fstat(descriptor)
        if not stat.S_ISREG(now.st_mode):
            raise FileChangedError(f"{entry.path}, which the program maps, is no regular file now", _PACK)
        if now.st_size != entry.size:
            raise FileChangedError(
                f"{entry.path} has changed since the recording: it had {entry.size} bytes, now {now.st_size}",
                _PACK,
            )
        if now.st_mtime_ns != entry.mtime_ns:
            if entry.sha256 is None:
                raise FileChangedError(
                    f"{entry.path} was modified since the recording, and its hash was not recorded", _PACK
                )
            if self._hash(descriptor, now) != entry.sha256:
                raise FileChangedError(
                    f"{entry.path} has changed since the recording: same size, other content", _PACK
                )
        self._verified.add(entry.number)

    def _hash(self, descriptor: int, now: os.stat_result) -> str:
        key = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns)
        if key not in self._hashes:
            import hashlib

            with os.fdopen(os.dup(descriptor), "rb") as file:
                file.seek(0)
                self._hashes[key] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._hashes[key]

    def _fill(self, entry: FileEntry) -> int:
        """A new file with the recorded range of an entry, from its first byte on."""
        descriptor = _anonymous(f"rr-file-{entry.number}", entry.length)
        try:
            self._write_blob(entry, descriptor, 0, fresh=True)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _shared(self, entry: FileEntry, domain: int) -> int:
        """The domain's one file for a shared object, with the content it had when this entry was recorded."""
        assert entry.object is not None
        key = (domain, entry.object)
        if key not in self._objects:
            self._objects[key] = _anonymous(f"rr-file-{entry.number}", max(entry.size, entry.length))
        descriptor = self._objects[key]
        end = entry.offset + entry.length
        if os.fstat(descriptor).st_size < end:
            os.ftruncate(descriptor, _up(end))
        if entry.blob is not None:
            self._write_blob(entry, descriptor, entry.offset, fresh=False)
        return descriptor

    def _write_blob(self, entry: FileEntry, descriptor: int, at: int, fresh: bool) -> None:
        assert entry.blob is not None
        try:
            pieces = self._reader.blob(entry.blob)
        except KeyError:
            raise ContentError(
                f"the content of {entry.path} is missing in the trace", "The trace is damaged: record again."
            ) from None
        end = _write(descriptor, at, pieces, sparse=fresh)
        if os.fstat(descriptor).st_size < _up(end):
            os.ftruncate(descriptor, _up(end))


def _up(size: int) -> int:
    return (size + _PAGE - 1) & -_PAGE


def _anonymous(name: str, size: int) -> int:
    """A file without a place in any folder: in memory, or on the disk when large."""
    if size <= _LARGE:
        return os.memfd_create(name, os.MFD_CLOEXEC)
    import tempfile

    descriptor, path = tempfile.mkstemp(prefix=name + "-")
    with suppress(OSError):
        os.unlink(path)
    return descriptor


def _write(descriptor: int, at: int, pieces: Iterable[bytes], sparse: bool) -> int:
    """Write the pieces one behind the other from offset `at` on; the offset behind them.

    `sparse`: nothing was written there before, so pieces of zeros become holes.
    """
    for piece in pieces:
        if sparse and piece.count(0) == len(piece):
            at += len(piece)
            os.ftruncate(descriptor, max(os.fstat(descriptor).st_size, at))
            continue
        view = memoryview(piece)
        while view:
            done = os.pwrite(descriptor, view, at)
            at += done
            view = view[done:]
    return at
