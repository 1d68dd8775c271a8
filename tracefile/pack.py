"""Making a trace stand on its own: every file it refers to is copied into it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tracefile.digest import new_digest
from tracefile.errors import FileChangedError
from tracefile.layout import BLOB_PIECE, ChunkType
from tracefile.reader import TraceReader
from tracefile.records import FileEntry
from tracefile.writer import TraceWriter


@dataclass(frozen=True, slots=True)
class Packed:
    """What `pack_trace` did: files stored, bytes of them, bytes of the new trace."""

    files: int
    file_bytes: int
    trace_bytes: int


def pack_trace(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    progress: Callable[[FileEntry], None] | None = None,
) -> Packed:
    """Copy the trace `source` to the new file `target` and store every 'system' file in it.

    `progress` is called with each file before it is read. An incomplete trace gives an incomplete copy that
    ends at the same place. Raises FileChangedError when a file is missing or not what was recorded,
    TraceFormatError for a damaged trace, TraceWriteError; then no target is left behind.
    """
    with TraceReader.open(source) as reader:
        if reader.damage is not None:
            raise reader.damage
        writer = TraceWriter.create_copy(target)
        try:
            return _copy(reader, writer, progress)
        except BaseException:
            writer.abandon()
            with contextlib.suppress(OSError):
                os.unlink(target)
            raise


def _copy(reader: TraceReader, writer: TraceWriter, progress: Callable[[FileEntry], None] | None) -> Packed:
    files = file_bytes = 0
    done: set[int] = set()
    for header, section_a, section_b in reader.raw_chunks():
        if header.type != ChunkType.FILE:
            writer.copy_chunk(header, section_a, section_b)
            continue
        number = reader.file_number(header, section_a)
        if number in done:
            continue
        done.add(number)
        entry = reader.files[number]
        if entry.kind == "system":
            if progress is not None:
                progress(entry)
            entry = _store(reader, writer, entry)
            files += 1
            file_bytes += entry.size
        writer.add_file(entry)
    writer.finish_copy()
    return Packed(files, file_bytes, writer.bytes_written)


def _store(reader: TraceReader, writer: TraceWriter, entry: FileEntry) -> FileEntry:
    """Store the whole file, read twice: to check and name its content, and to copy it."""
    try:
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise _changed(entry, f"cannot be read: {error.strerror}") from error
    try:
        digest = _check(descriptor, entry)
        found = new_digest()

        def pieces() -> Iterator[bytes]:
            for piece in _read(descriptor, entry):
                found.update(piece)
                yield piece

        stored = not reader.has_blob(digest) and writer.add_blob(digest, pieces())
        if stored and found.hexdigest() != digest:
            raise _changed(entry, "changes while it is read")
    except OSError as error:
        raise _changed(entry, f"cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)
    return entry._replace(kind="stored", blob=digest, offset=0, length=entry.size)


def _check(descriptor: int, entry: FileEntry) -> str:
    """The blob digest of a file that is what the entry says."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise _changed(entry, "is no regular file any more")
    if status.st_size != entry.size:
        raise _changed(entry, f"has {status.st_size} bytes now, {entry.size} when it was recorded")
    if entry.sha256 is None and status.st_mtime_ns != entry.mtime_ns:
        raise _changed(entry, "was modified since, and the trace holds no checksum of it to compare")
    sha256 = hashlib.sha256()
    found = new_digest()
    size = 0
    for piece in _read(descriptor, entry):
        sha256.update(piece)
        found.update(piece)
        size += len(piece)
    if size != entry.size:
        raise _changed(entry, f"has {size} bytes now, {entry.size} when it was recorded")
    if entry.sha256 is not None and sha256.hexdigest() != entry.sha256:
        raise _changed(entry, f"has SHA-256 {sha256.hexdigest()} now, {entry.sha256} when it was recorded")
    return found.hexdigest()


def _read(descriptor: int, entry: FileEntry) -> Iterator[bytes]:
    offset = 0
    while offset < entry.size and (
        piece := os.pread(descriptor, min(BLOB_PIECE, entry.size - offset), offset)
    ):
        offset += len(piece)
        yield piece


def _changed(entry: FileEntry, what: str) -> FileChangedError:
    return FileChangedError(
        f"{entry.path} {what}",
        "Put back the file as it was when the trace was recorded, or record again and pack at once.",
    )
