"""The trace file: written once, append-only; read in pieces; recovered when cut short.

`TraceWriter` makes one, `TraceReader` reads it, `pack_trace` copies it with everything it refers to. The
format is described byte by byte in docs/trace-format.md.
"""

from tracefile.blobs import blob_digest, new_digest
from tracefile.chunk import Chunk, EventView
from tracefile.domains import DomainInfo, DomainStop
from tracefile.errors import (
    FileChangedError,
    TraceError,
    TraceExistsError,
    TraceFormatError,
    TraceMissingError,
    TraceWriteError,
)
from tracefile.pack import pack_trace
from tracefile.paths import newest_trace, next_trace_path
from tracefile.reader import TraceReader
from tracefile.records import BootImage, BootMapping, DomainEnd, DomainStart, FileEntry, Report
from tracefile.writer import TraceWriter

__all__ = [
    "BootImage",
    "BootMapping",
    "Chunk",
    "DomainEnd",
    "DomainInfo",
    "DomainStart",
    "DomainStop",
    "EventView",
    "FileChangedError",
    "FileEntry",
    "Report",
    "TraceError",
    "TraceExistsError",
    "TraceFormatError",
    "TraceMissingError",
    "TraceReader",
    "TraceWriteError",
    "TraceWriter",
    "blob_digest",
    "new_digest",
    "newest_trace",
    "next_trace_path",
    "pack_trace",
]
