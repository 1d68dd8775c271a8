"""Writing a trace: append-only, compressed by one background thread, safe against the recorder's death.

Every chunk reaches the kernel with a single write, so that a killed recorder leaves a file that ends at most
in the middle of one chunk. Nothing is synced to the disk. Calls return as soon as their data is copied into a
bounded queue; when the queue is full they wait, and so slow down whoever records. An error of the worker is
raised by the next call.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from interfaces.errors import RrPyError
from tracefile.errors import TraceExistsError, TraceWriteError
from tracefile.fields import dump_json, load_json
from tracefile.layout import (
    BLOB_PIECE,
    EVENT_SIZE,
    INDEX_ROWS_PER_CHUNK,
    ROW,
    SECTION_MAX,
    TRAILER,
    ChunkFlag,
    ChunkHeader,
    ChunkType,
    Codec,
    pack_file_header,
    pack_trailer,
)
from tracefile.paths import numbered_trace
from tracefile.records import DomainEnd, DomainStart, FileEntry, Report
from tracefile.repeats import Repeats

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from tracefile.codec import Compressor

QUEUE_BYTES = 8 << 20
"""Raw bytes that may wait for the worker before calls block; one larger piece is still accepted alone.
So much is lost at the most when the recorder is killed."""
_BATCH_BYTES = 256 << 10
_BATCH_SECONDS = 0.03
"""The worker waits so long for so much more before it begins: its turns cost the recording thread time."""
_HURRIED = 0.25
"""With so much of the queue filled the worker does not look for repeats."""
_HASTE = {ChunkType.EVENTS: 1.0, ChunkType.BLOB: 0.5}
"""How much a full queue hurries the compression of a chunk: documents are too small to make a difference."""
_TIME_IN_AT = 72
_TIME_OUT_AT = 80


class _Job(NamedTuple):
    """One chunk to be compressed and written."""

    type: ChunkType
    a: bytes
    b: bytes = b""
    domain: int = 0
    count: int = 0  # type: ignore[assignment]
    first: int = 0
    flags: int = 0
    copied: ChunkHeader | None = None
    """Set for a chunk of another trace: then `a` and `b` are stored bytes as they are."""

    @property
    def size(self) -> int:
        return len(self.a) + len(self.b)


class TraceWriter:
    """Appends to one new trace. Methods may be called from several threads; chunks keep the order of the
    calls.

    While it lives it holds an advisory lock on the file, by which readers tell a trace that is still being
    written from one whose recorder was killed. Used as a context manager it closes the trace; without a final
    record when an exception passes through. `events` counts those that were added; `pids` are the processes
    of the domains that were.
    """

    def __init__(self, path: Path, descriptor: int, level: int | None) -> None:
        self.path = path
        self._fd = descriptor
        self._end = 0
        self._sequence = 0
        self._rows = bytearray()
        self.events = 0
        self.pids: set[int] = set()
        self._domains: set[int] = set()
        self._blobs: set[str] = set()
        self._repeats = Repeats()
        self._hurried = False
        self._lock = threading.Condition()
        self._jobs: deque[_Job] = deque()
        self._queued = 0
        self._busy = False
        self._waiters = 0
        self._stopping = False
        self._closed = False
        self._copied_final = False
        self._error: Exception | None = None
        self._told = False
        self._worker: threading.Thread | None = None
        self._level = level
        self._made: Compressor | None = None

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], meta: Mapping[str, Any], *, level: int | None = None
    ) -> Self:
        """Create a trace that must not exist yet, mode 0600, and write `meta` (any JSON object) to it.

        `level` is zstd's, None for what `codec` thinks best.
        Raises TraceExistsError or TraceWriteError, and FieldError for a `meta` that no reader would accept;
        no file of ours is left behind.
        """
        return cls._create(path, _Job(ChunkType.META, _document(meta)), level)

    @classmethod
    def create_copy(cls, path: str | os.PathLike[str]) -> Self:
        """Create a trace to be filled by `copy_chunk`, META included. Raises as `create` does."""
        return cls._create(path, None, None)

    @classmethod
    def _create(cls, path: str | os.PathLike[str], meta: _Job | None, level: int | None) -> Self:
        target = Path(path)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(target, flags, 0o600)
        except FileExistsError:
            raise TraceExistsError(str(target)) from None
        except OSError as error:
            raise TraceWriteError(str(target), error.errno or errno.EIO, "cannot create the trace") from error
        writer = cls(target, descriptor, level)
        try:
            with contextlib.suppress(OSError):
                os.fchmod(descriptor, 0o600)
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            writer._append([pack_file_header()])
            if meta is not None:
                writer._write(meta)
        except BaseException as error:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                target.unlink()
            if isinstance(error, OSError):
                raise TraceWriteError(
                    str(target), error.errno or errno.EIO, "cannot create the trace"
                ) from error
            raise
        return writer

    @classmethod
    def create_numbered(
        cls, folder: str | os.PathLike[str], meta: Mapping[str, Any], *, level: int | None = None
    ) -> Self:
        """Create trace.bin, or trace-2.bin, trace-3.bin, ... the first that is free, however many do so at
        once."""
        number = 1
        while True:
            path = numbered_trace(folder, number)
            if not os.path.lexists(path):
                with contextlib.suppress(TraceExistsError):
                    return cls.create(path, meta, level=level)
            number += 1

    @property
    def bytes_written(self) -> int:
        """Size of the file so far, whole chunks only."""
        return self._end

    def add_events(self, domain: int, first_event: int, events: Buffer, payload: Buffer) -> None:
        """Append whole events (n times 96 bytes) that begin at number `first_event` of `domain`, and their
        payload.

        Payload offsets in the events count from the beginning of `payload`. Both buffers are copied before
        the call returns. Nothing is written for zero events. Raises TraceWriteError.
        """
        raw = bytes(events)
        count, rest = divmod(len(raw), EVENT_SIZE)
        if rest:
            raise ValueError(f"{len(raw)} bytes are no whole number of {EVENT_SIZE}-byte events")
        if domain not in self._domains:
            raise ValueError(f"events of domain {domain}, which was not added")
        if count:
            self.events += count
            self._put(_Job(ChunkType.EVENTS, raw, bytes(payload), domain, count, first_event))

    def add_domain(self, start: DomainStart) -> None:
        """Declare a domain; must precede its events. Like all methods that take a record, raises FieldError
        for one that no reader would accept; only the image is believed, since checking it takes long."""
        if start.domain in self._domains:
            raise ValueError(f"domain {start.domain} was added before")
        start.check()
        section_a, section_b = start.encode()
        self._put(_Job(ChunkType.DOMAIN_START, section_a, section_b, start.domain))
        self._domains.add(start.domain)
        self.pids.add(start.pid)

    def end_domain(self, end: DomainEnd) -> None:
        """Say how a process of a domain ended. A domain of several processes has several of these."""
        end.check()
        section = end.encode()
        self._put(_Job(ChunkType.DOMAIN_END, section, b"", end.domain))

    def add_file(self, entry: FileEntry) -> None:
        """Add a file to the table, or replace the entry of the same number."""
        section = entry.encode()
        FileEntry.decode(section)
        self._put(_Job(ChunkType.FILE, section))

    def add_blob(self, digest: str, chunks: Iterable[Buffer]) -> bool:
        """Store content under its digest (`blob_digest`); False if it is there already and `chunks` was not
        touched.

        The digest is believed; a reader checks it. The content counts as stored once its last piece is
        written.
        """
        if digest in self._blobs:
            return False
        key = bytes.fromhex(digest)
        if len(key) != 32:
            raise ValueError(f"a digest has 64 hexadecimal digits, not {len(digest)}")
        pending = bytearray()
        offset = number = 0
        for chunk in chunks:
            pending += chunk
            while len(pending) > BLOB_PIECE:
                piece = bytes(pending[:BLOB_PIECE])
                del pending[:BLOB_PIECE]
                self._put(_Job(ChunkType.BLOB, key, piece, 0, number, offset))
                offset += len(piece)
                number += 1
        self._put(_Job(ChunkType.BLOB, key, bytes(pending), 0, number, offset, ChunkFlag.LAST_PIECE))
        self._blobs.add(digest)
        return True

    def add_report(self, report: Report) -> None:
        """Note something that the user should know."""
        section = report.encode()
        Report.decode(section)
        self._put(_Job(ChunkType.REPORT, section, b"", report.domain))

    def flush(self) -> None:
        """Wait until all that was added is in the file (in the kernel's memory: not necessarily on the
        disk)."""
        with self._lock:
            with self._waiting():
                self._lock.notify_all()
                while (self._jobs or self._busy) and self._error is None:
                    self._lock.wait()
            self._check()

    def close(self, final: Mapping[str, Any]) -> None:
        """Write what is queued, `final` (any JSON object), and the index. Closing again does nothing.

        After a write error the final record is tried nevertheless, marked incomplete with the reason, so that
        a reader can tell it. Raises TraceWriteError for an error that no call has raised yet; the file is
        closed in any case.
        """
        if self._closed:
            return
        _document(final)
        self._stop_worker()
        why = self._why()
        document = _document({"complete": not why, "reason": why, "final": dict(final)})
        self._finish(_Job(ChunkType.FINAL, document))

    def copy_chunk(self, header: ChunkHeader, stored_a: bytes, stored_b: bytes) -> None:
        """Append a chunk of another trace as it is stored there."""
        kind = ChunkType(header.type)
        self._put(
            _Job(kind, stored_a, stored_b, header.domain, header.count, header.first, header.flags, header)
        )
        self._copied_final = kind == ChunkType.FINAL

    def finish_copy(self) -> None:
        """Close a copy: with an index if its last chunk was a FINAL one, else as incomplete as the
        original."""
        self.flush()
        self._stop_worker()
        if self._copied_final:
            self._finish(None)
        else:
            self.abandon()

    def _finish(self, final: _Job | None) -> None:
        """Write the last record and the index; a reader can do without the index."""
        try:
            if final is not None:
                self._write(final)
            with contextlib.suppress(OSError):
                self._write_index()
        except OSError as error:
            self._error = self._error or error
        try:
            os.close(self._fd)
        except OSError as error:
            self._error = self._error or error
        self._closed = True
        if not self._told:
            self._check()

    def abandon(self) -> None:
        """Write what is queued and close the file without a final record: the trace stays incomplete."""
        if not self._closed:
            self._stop_worker()
            self._closed = True
            os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close({})
        else:
            self.abandon()

    def _why(self) -> str:
        """What the worker met, in words; empty when nothing."""
        if isinstance(self._error, OSError):
            return os.strerror(self._error.errno or errno.EIO)
        return "" if self._error is None else repr(self._error)[:200]

    def _check(self) -> None:
        if self._error is not None:
            self._told = True
            if isinstance(self._error, RrPyError):
                raise self._error
            code = (self._error.errno or errno.EIO) if isinstance(self._error, OSError) else errno.EIO
            raise TraceWriteError(str(self.path), code) from self._error

    def _put(self, job: _Job) -> None:
        if len(job.a) > SECTION_MAX or len(job.b) > SECTION_MAX:
            raise ValueError(f"a {job.type.name} chunk of {job.size} bytes; a section holds {SECTION_MAX}")
        with self._lock:
            self._check()
            if self._closed or self._stopping:
                raise ValueError("the trace is closed")
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="trace writer", daemon=True)
                self._worker.start()
            if self._queued and self._queued + job.size > QUEUE_BYTES:
                self._wait_for_room(job.size)
            before = self._queued
            self._jobs.append(job)
            self._queued += job.size
            if not before or before < _BATCH_BYTES <= self._queued:
                self._lock.notify_all()

    def _wait_for_room(self, size: int) -> None:
        with self._waiting():
            self._lock.notify_all()
            while self._queued and self._queued + size > QUEUE_BYTES and self._error is None:
                self._lock.wait()
        self._check()

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[None]:
        """Meanwhile the worker tells of every job it has done, and does not wait for more."""
        self._waiters += 1
        try:
            yield
        finally:
            self._waiters -= 1

    def _stop_worker(self) -> None:
        with self._lock:
            self._stopping = True
            self._lock.notify_all()
        if self._worker is not None:
            self._worker.join()

    @property
    def _compressor(self) -> Compressor:
        """Made when first asked for: the worker imports zstandard while the recorded program starts."""
        if self._made is None:
            from tracefile.codec import Compressor

            self._made = Compressor(self._level)
        return self._made

    def _work(self) -> None:
        try:
            self._compressor.adapt(0.0)
        except (ImportError, RrPyError) as error:
            self._failed(error)
        while self._await_jobs():
            while (job := self._next_job()) is not None:
                failure: Exception | None = None
                try:
                    self._write(job)
                except Exception as error:
                    failure = error
                self._done(job, failure)

    def _await_jobs(self) -> bool:
        """Wait until there is a batch of jobs, or some for long enough; False when no more will come."""
        with self._lock:
            while not self._jobs and not self._stopping:
                self._lock.wait()
            if self._queued < _BATCH_BYTES and not self._stopping and not self._waiters:
                self._lock.wait(_BATCH_SECONDS)
            return bool(self._jobs)

    def _next_job(self) -> _Job | None:
        with self._lock:
            if not self._jobs:
                return None
            self._busy = True
            job = self._jobs.popleft()
            lag = self._queued / QUEUE_BYTES
            self._hurried = lag >= _HURRIED
            self._compressor.adapt(lag * _HASTE.get(job.type, 0.0))
            return job

    def _done(self, job: _Job, failure: Exception | None) -> None:
        with self._lock:
            self._busy = False
            self._queued -= job.size
            if failure is not None:
                self._failed(failure)
            if self._waiters or self._stopping:
                self._lock.notify_all()

    def _failed(self, error: Exception) -> None:
        """Nothing more is written; whoever adds to the trace is told."""
        with self._lock:
            self._error = error
            self._jobs.clear()
            self._queued = 0
            self._stopping = True
            self._lock.notify_all()

    def _write(self, job: _Job) -> None:
        """Compress and append one chunk; only ever called by one thread at a time."""
        if job.copied is None:
            header, stored_a, stored_b = self._compress(job)
        else:
            header, stored_a, stored_b = job.copied._replace(sequence=self._sequence), job.a, job.b
        packed = header.pack()
        offset = self._end
        self._append([packed, stored_a, stored_b])
        self._sequence += 1
        if job.type != ChunkType.INDEX:
            self._rows += packed + offset.to_bytes(8, "little")

    def _compress(self, job: _Job) -> tuple[ChunkHeader, bytes, bytes]:
        time_first = time_last = 0
        if job.type == ChunkType.EVENTS:
            codec_a, stored_a = self._compressor.events(job.a)
            last = len(job.a) - EVENT_SIZE
            time_first = int.from_bytes(job.a[_TIME_IN_AT : _TIME_IN_AT + 8], "little")
            time_last = int.from_bytes(job.a[last + _TIME_OUT_AT : last + _TIME_OUT_AT + 8], "little")
        elif job.type in (ChunkType.BLOB, ChunkType.META):
            codec_a, stored_a = Codec.RAW, job.a
        else:
            codec_a, stored_a = self._compressor.section(job.a)
        repeats = None
        if job.type == ChunkType.EVENTS and not self._hurried:
            repeats = self._repeats.split(job.domain, job.first, job.a, job.b)
        if repeats is None:
            codec_b, stored_b = self._compressor.section(job.b) if job.b else (Codec.RAW, b"")
        else:
            codec_b, stored_b = self._compressor.repeats(repeats)
        header = ChunkHeader(
            job.type,
            self._sequence,
            job.domain,
            job.count,
            job.first,
            time_first,
            time_last,
            len(job.a),
            len(stored_a),
            len(job.b),
            len(stored_b),
            zlib.crc32(stored_a),
            zlib.crc32(stored_b),
            codec_a,
            codec_b,
            job.flags,
        )
        return header, stored_a, stored_b

    def _append(self, parts: list[bytes]) -> None:
        """Append whole or not at all."""
        total = sum(map(len, parts))
        try:
            written = os.writev(self._fd, parts)
            if written < total:
                rest = memoryview(b"".join(parts))
                while written < total:
                    written += os.write(self._fd, rest[written:])
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._end)
            raise
        self._end += total

    def _write_index(self) -> None:
        start = self._end
        step = INDEX_ROWS_PER_CHUNK * ROW.size
        rows = bytes(self._rows)
        pieces = [rows[i : i + step] for i in range(0, len(rows), step)]
        for number, piece in enumerate(pieces):
            self._write(_Job(ChunkType.INDEX, piece, b"", 0, number))
        self._append([pack_trailer(start, self._end + TRAILER.size, len(pieces))])


def _document(document: Mapping[str, Any]) -> bytes:
    """An object of any content as JSON that a reader will accept; FieldError when it would not."""
    data = dump_json(document)
    load_json(data)
    return data
