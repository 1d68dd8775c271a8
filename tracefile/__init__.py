"""The trace file: written once, append-only; read in pieces; recovered when cut short.

`TraceWriter` makes one, `TraceReader` reads it, `pack_trace` copies it with everything it refers to. The
format is described byte by byte in docs/trace-format.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracefile.chunk import Chunk, EventView
    from tracefile.digest import blob_digest, new_digest
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

_HOMES = {
    "BootImage": "records",
    "BootMapping": "records",
    "Chunk": "chunk",
    "DomainEnd": "records",
    "DomainInfo": "domains",
    "DomainStart": "records",
    "DomainStop": "domains",
    "EventView": "chunk",
    "FileChangedError": "errors",
    "FileEntry": "records",
    "Report": "records",
    "TraceError": "errors",
    "TraceExistsError": "errors",
    "TraceFormatError": "errors",
    "TraceMissingError": "errors",
    "TraceReader": "reader",
    "TraceWriteError": "errors",
    "TraceWriter": "writer",
    "blob_digest": "digest",
    "new_digest": "digest",
    "newest_trace": "paths",
    "next_trace_path": "paths",
    "pack_trace": "pack",
}
"""Which module has which name: only what is asked for is imported, since recording needs no reader."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
        return value
