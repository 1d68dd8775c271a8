"""Reading a trace: whole, cut short, damaged, or still being written.

`TraceReader.open` takes what is usable. A trace whose recorder was killed ends with its last whole chunk: not
an error, but `complete` is False and `stopped` says where and why. Damage does not prevent opening either:
`damage` holds the error, and what precedes the damaged place is there. Nothing is trusted: sizes are bounded
before anything is allocated, and whatever is inconsistent raises TraceFormatError with the offset in the
file.
"""

from __future__ import annotations

import bisect
import fcntl
import os
import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from tracefile.blobs import BlobTable
from tracefile.chunk import Chunk, EventView, events_from
from tracefile.codec import decompress
from tracefile.domains import DomainInfo, DomainStop
from tracefile.errors import TraceFormatError
from tracefile.fields import FieldError, Fields, Json, load_json
from tracefile.layout import FILE_HEADER, ChunkHeader, ChunkType, Codec, Row
from tracefile.records import DomainEnd, DomainStart, FileEntry, Report
from tracefile.repeats import RepeatError, literals_of, unfold
from tracefile.source import Source, Walk, read_index, walk_headers

__all__ = ["METADATA_MAX", "DomainInfo", "Totals", "TraceReader"]

METADATA_MAX = 256 << 20
"""Raw bytes of metadata (domains, files, reports) that a reader takes in; more is treated as damage."""
_CACHED_CHUNKS = 4
_CACHED_SECTIONS = 16
_EVENTS, _BLOB = int(ChunkType.EVENTS), int(ChunkType.BLOB)
_METADATA = frozenset(
    map(
        int,
        (
            ChunkType.META,
            ChunkType.DOMAIN_START,
            ChunkType.DOMAIN_END,
            ChunkType.FILE,
            ChunkType.REPORT,
            ChunkType.FINAL,
        ),
    )
)


class Totals:
    """Chunks of one type: how many, their raw and their stored bytes."""

    __slots__ = ("chunks", "raw", "stored")

    def __init__(self) -> None:
        self.chunks = 0
        self.raw = 0
        self.stored = 0


class TraceReader:
    """An open trace. Use as a context manager or call `close`. Reading is safe from several threads."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.path = source.path
        self.meta: dict[str, Json] = {}
        self.final: dict[str, Json] | None = None
        self.domains: dict[int, DomainInfo] = {}
        self.files: dict[int, FileEntry] = {}
        self.reports: list[Report] = []
        self.damage: TraceFormatError | None = None
        self.truncated = 0
        self.from_index = False
        self.totals: dict[int, Totals] = {}
        self._final_complete = False
        self._final_reason = ""
        self._metadata = 0
        self._blobs = BlobTable(source)
        self._end = FILE_HEADER.size
        self._sequence = 0
        self._cache: OrderedDict[tuple[int, int], Chunk] = OrderedDict()
        self._repeated: OrderedDict[int, bytes] = OrderedDict()
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a trace.

        Raises TraceMissingError when it cannot be opened, TraceFormatError when it is no trace of this
        version. Everything else that is wrong with it is told by `damage`, `complete` and `stopped`.
        """
        source = Source(path)
        try:
            reader = cls(source)
            found = read_index(source)
            if isinstance(found, Walk):
                reader._absorb(found)
            else:
                reader._note(found)
                reader._absorb(walk_headers(source, FILE_HEADER.size, 0))
        except BaseException:
            source.close()
            raise
        if "library" in reader.meta:
            from interfaces.libspec import naming

            naming.remember(reader.meta)
        return reader

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def complete(self) -> bool:
        """Whether recording ended by itself and nothing is missing up to there."""
        return self._final_complete and not any(info.cut for info in self.domains.values())

    @property
    def live(self) -> bool:
        """Whether a recorder is still writing this file."""
        if self.final is not None:
            return False
        try:
            fcntl.flock(self._source.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        fcntl.flock(self._source.fd, fcntl.LOCK_UN)
        return False

    @property
    def stops(self) -> list[DomainStop]:
        """The domains whose log breaks off; empty for a complete trace."""
        why = "" if self.final is not None and not self._final_reason else self._why_incomplete()
        found = []
        latest = {info.pid: number for number, info in sorted(self.domains.items())}
        for number in sorted(self.domains):
            info = self.domains[number]
            pid = info.pid
            if info.cut is not None:
                reason = str(info.cut.message)
            elif info.end is not None:
                reason = "the program went on unrecorded" if info.end.status == "lost" else ""
                gone = [end.pid for end in info.ends if _unfollowed(end, latest)]
                if gone:
                    reason, pid = "it became another program, which was not recorded", gone[0]
            else:
                reason = why or "its end was not recorded"
            if reason:
                found.append(DomainStop(number, pid, info.comm, info.event_count, reason))
        return found

    @property
    def stopped(self) -> str:
        """A sentence that says where recording stops and why; empty for a complete trace."""
        stops = self.stops
        if self.complete and not stops:
            return ""
        why = self._why_incomplete() if not self.complete else "recording is complete, but not every process"
        if not stops:
            return f"{why}."
        shown = "; ".join(stop.place if stop.why == why else str(stop) for stop in stops[:4])
        more = f"; and {len(stops) - 4} more domains" if len(stops) > 4 else ""
        return f"{why}; {shown}{more}."

    @property
    def total_events(self) -> int:
        """Events of all domains."""
        return sum(info.event_count for info in self.domains.values())

    @property
    def size(self) -> int:
        """Bytes of the file now."""
        return self._source.size()

    def event_count(self, domain: int) -> int:
        """Usable events of a domain; KeyError for an unknown domain."""
        return self.domains[domain].event_count

    def first_time(self, domain: int) -> int:
        """When the first event of a domain that has any began, CLOCK_MONOTONIC nanoseconds."""
        return self._source.header(self.domains[domain].offsets[0]).time_first

    def last_time(self, domain: int) -> int:
        """When the last event of a domain that has any ended, CLOCK_MONOTONIC nanoseconds."""
        return self._source.header(self.domains[domain].offsets[-1]).time_last

    def chunks(self, domain: int, start_event: int = 0) -> Iterator[Chunk]:
        """The chunks of a domain in order; the first one begins with event `start_event`.

        Chunks that `refresh` finds while the iterator is in use are included. Raises KeyError for an unknown
        domain, TraceFormatError at a damaged chunk.
        """
        info = self.domains[domain]
        position = max(bisect.bisect_right(info.firsts, start_event) - 1, 0)
        while position < len(info.offsets):
            chunk = self._load(info, position).starting_at(start_event)
            if len(chunk):
                yield chunk
            position += 1

    def event(self, domain: int, number: int) -> EventView:
        """One event; KeyError for an unknown domain, IndexError for an event that is not there."""
        info = self.domains[domain]
        if not 0 <= number < info.event_count:
            raise IndexError(f"domain {domain} has {info.event_count} events, there is no event {number}")
        position = bisect.bisect_right(info.firsts, number) - 1
        key = (domain, position)
        with self._lock:
            chunk = self._cache.get(key)
            if chunk is None:
                chunk = self._cache[key] = self._load(info, position)
                if len(self._cache) > _CACHED_CHUNKS:
                    self._cache.popitem(last=False)
            else:
                self._cache.move_to_end(key)
            return chunk.view(number - chunk.first_event)

    def merged_runs(self) -> Iterator[tuple[Chunk, int, int]]:
        """Runs of events of all domains in the order of time: see `tracefile.merge.merged_runs`."""
        from tracefile.merge import merged_runs

        return merged_runs(self)

    def merged(self) -> Iterator[EventView]:
        """The events of all domains in the order in which they ended."""
        for chunk, start, stop in self.merged_runs():
            yield from chunk.views(start, stop)

    def has_blob(self, digest: str) -> bool:
        """Whether the whole content of that digest is in the trace."""
        with self._lock:
            return self._blobs.has(digest)

    def blob(self, digest: str) -> Iterator[bytes]:
        """The content of that digest, piece by piece (1 MiB at the most each).

        Raises KeyError at once when it is not in the trace; TraceFormatError while reading when it is
        damaged, also after the last piece when the whole does not match the digest.
        """
        with self._lock:
            return self._blobs.pieces(digest)

    def refresh(self) -> bool:
        """Take in what was appended since; whether there was anything new."""
        with self._lock:
            if self.final is not None or self.damage is not None:
                return False
            before = self._sequence
            self._absorb(walk_headers(self._source, self._end, self._sequence))
            return self._sequence != before

    def raw_chunks(self) -> Iterator[tuple[ChunkHeader, bytes, bytes]]:
        """All usable chunks in the order of the file: header and stored bytes, which match their
        checksums."""
        offset = FILE_HEADER.size
        for _ in range(self._sequence):
            header = self._source.header(offset)
            yield header, self._source.stored_a(offset, header), self._source.stored_b(offset, header)
            offset += header.size

    def file_number(self, header: ChunkHeader, stored_a: bytes) -> int:
        """The number of the file table that a raw FILE chunk defines."""
        return FileEntry.decode(decompress(header.codec_a, stored_a, header.raw_a)).number

    def section_b(self, offset: int, header: ChunkHeader) -> bytes:
        """The payload of the chunk at `offset`, with what it repeats of earlier ones."""
        if header.codec_b != Codec.ZSTD_REPEATS:
            return self._source.section_b(offset, header)
        section = self._source.repeats_b(offset, header)
        try:
            return unfold(section, header.raw_b, self._literals)
        except RepeatError as error:
            self._source.fail(offset, f"section B: {error}")

    def verify(self) -> int:
        """Read everything and return the number of chunks; TraceFormatError names the first damaged place."""
        if self.damage is not None:
            raise self.damage
        offset = FILE_HEADER.size
        for _ in range(self._sequence):
            header = self._source.header(offset)
            raw = self._source.section_a(offset, header)
            payload = self.section_b(offset, header)
            if header.type == ChunkType.EVENTS:
                events = events_from(raw)
                ends = events["payload_off"].astype("u8") + events["payload_len"]
                if ((ends > len(payload)) & (events["payload_len"] > 0)).any():
                    self._source.fail(offset, "an event points outside of its chunk's payload")
            offset += header.size
        for info in self.domains.values():
            info.load()
        for digest in self._blobs.digests():
            for _ in self.blob(digest):
                pass
        return self._sequence

    def _why_incomplete(self) -> str:
        if self.damage is not None:
            return f"the trace is damaged: {self.damage.problem} (at offset {self.damage.offset})"
        if self._final_reason:
            return f"recording stopped: {self._final_reason}"
        if self.live:
            return "it is still being recorded"
        if self.truncated:
            return f"the recorder was killed and left {self.truncated} bytes of an unfinished chunk"
        return "the recorder was killed or did not finish the trace"

    def _load(self, info: DomainInfo, position: int) -> Chunk:
        offset = info.offsets[position]
        first = info.firsts[position]
        end = info.firsts[position + 1] if position + 1 < len(info.firsts) else info.event_count
        source = self._source
        header = source.header(offset)
        if (header.type, header.domain, header.first, header.count) != (
            ChunkType.EVENTS,
            info.domain,
            first,
            end - first,
        ):
            source.fail(offset, f"events {first} to {end - 1} of domain {info.domain} should be here")
        payload: list[bytes] = []

        def load_payload() -> bytes:
            if not payload:
                payload.append(self.section_b(offset, header))
            return payload[0]

        events = source.events_a(offset, header)
        return Chunk(
            info.domain, first, events, load_payload, lambda what: TraceFormatError(self.path, offset, what)
        )

    def _literals(self, domain: int, first: int) -> bytes:
        """What later chunks can repeat of the chunk of `domain` that begins with event `first`."""
        info = self.domains.get(domain)
        position = bisect.bisect_left(info.firsts, first) if info is not None else 0
        if info is None or position >= len(info.firsts) or info.firsts[position] != first:
            raise ValueError(f"no chunk of domain {domain} begins with event {first}, which it repeats")
        offset = info.offsets[position]
        with self._lock:
            found = self._repeated.get(offset)
            if found is None:
                header = self._source.header(offset)
                if header.codec_b == Codec.ZSTD_REPEATS:
                    found = literals_of(self._source.repeats_b(offset, header))
                else:
                    found = self._source.section_b(offset, header)
                self._repeated[offset] = found
                if len(self._repeated) > _CACHED_SECTIONS:
                    self._repeated.popitem(last=False)
            else:
                self._repeated.move_to_end(offset)
            return found

    def _note(self, damage: TraceFormatError | None) -> None:
        """Keep the first damage that is met."""
        if self.damage is None:
            self.damage = damage

    def _absorb(self, walk: Walk) -> None:
        """Take in chunks behind those that are known already."""
        events: list[Row] = []
        blobs = array("Q")
        totals = self.totals
        for row in walk:
            kind = row.type
            total = totals.get(kind)
            if total is None:
                total = totals[kind] = Totals()
            total.chunks += 1
            total.raw += row.raw_a + row.raw_b
            total.stored += row.stored_a + row.stored_b
            if kind == _EVENTS:
                events.append(row)
            elif kind == _BLOB:
                blobs.append(row.offset)
            elif kind in _METADATA:
                self._take_or_note(row.offset)
        self._take_events(events)
        self._blobs.add(blobs)
        self._end = walk.end
        self._sequence = walk.sequence
        self.truncated = walk.truncated
        self.from_index = walk.from_index
        self._note(walk.damage)

    def _take_or_note(self, offset: int) -> None:
        try:
            self._take(offset)
        except FieldError as error:
            self._note(TraceFormatError(self.path, offset, str(error)))
        except TraceFormatError as error:
            self._note(error)

    def _take(self, offset: int) -> None:
        """Take in one chunk of metadata."""
        source = self._source
        header = source.header(offset)
        self._metadata += header.raw_a
        if self._metadata > METADATA_MAX:
            source.fail(offset, f"more than {METADATA_MAX} bytes of metadata")
        data = source.section_a(offset, header)
        if header.type == ChunkType.META:
            self.meta = load_json(data)
        elif header.type == ChunkType.DOMAIN_START:
            start = DomainStart.decode(data, None)
            if start.domain in self.domains:
                raise FieldError(f"domain {start.domain} begins a second time")
            self.domains[start.domain] = DomainInfo(start, lambda: self._load_start(offset, start))
        elif header.type == ChunkType.DOMAIN_END:
            end = DomainEnd.decode(data)
            if end.domain not in self.domains:
                raise FieldError(f"domain {end.domain} ends without having begun")
            self.domains[end.domain].ends.append(end)
        elif header.type == ChunkType.FILE:
            entry = FileEntry.decode(data)
            self.files[entry.number] = entry
        elif header.type == ChunkType.REPORT:
            self.reports.append(Report.decode(data))
        elif header.type == ChunkType.FINAL:
            fields = Fields(load_json(data), "final record")
            self._final_complete = fields.boolean("complete")
            self._final_reason = fields.text("reason", 1024)
            self.final = fields.object("final")

    def _load_start(self, offset: int, start: DomainStart) -> DomainStart:
        source = self._source
        try:
            return start.detailed(source.section_b(offset, source.header(offset)))
        except FieldError as error:
            source.fail(offset, str(error))

    def _take_events(self, rows: list[Row]) -> None:
        """Sort chunks of events by domain, each up to the first that does not continue its domain."""
        for row in rows:
            number = row.domain
            info = self.domains.get(number)
            if info is None:
                self._note(
                    TraceFormatError(self.path, row.offset, f"events of domain {number}, which has not begun")
                )
            elif info.cut is not None:
                continue
            elif row.first != info.event_count:
                what = f"event {row.first} of domain {number} where event {info.event_count} should be"
                info.cut = TraceFormatError(self.path, row.offset, what)
                self._note(info.cut)
            else:
                info.offsets.append(row.offset)
                info.firsts.append(row.first)
                info.event_count += row.items


def _unfollowed(end: DomainEnd, latest: dict[int, int]) -> bool:
    """Whether a process became a program that is in no domain; `latest`: the last domain of each process."""
    return end.status == "execed" and not end.code and latest.get(end.pid, 0) <= end.domain
