"""Events as byte planes of differences, and back: the compiled part of the trace format (`native/planes.c`).

Taking 4096 events apart and putting them together again takes 10 to 50 us there and ten times that in numpy;
it is most of what recording and replaying cost beside the program itself. docs/trace-format.md has the
layouts. Calls of ctypes let other threads run meanwhile.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tracefile.errors import CodecMissingError
from tracefile.layout import EVENT_SIZE, Codec

WORDS = EVENT_SIZE // 8
_HEAD = EVENT_SIZE + WORDS


class StoredEvents(NamedTuple):
    """Decompressed planes of so many `events`; `codec` says which of the two layouts they have."""

    codec: int
    planes: bytes
    events: int

    @property
    def fits(self) -> bool:
        """Whether there are as many bytes as so many events have; nothing else can be wrong with them."""
        if self.codec == Codec.ZSTD_EVENTS:
            return self.events > 0 and len(self.planes) == self.events * EVENT_SIZE
        live = int.from_bytes(self.planes[EVENT_SIZE:_HEAD], "little").bit_count()
        return self.events > 0 and len(self.planes) == _HEAD + live * (self.events - 1)

    def copy_to(self, target: memoryview) -> None:
        """Put the events together in `target`, of exactly their size and writable. ValueError: not `fits`."""
        if len(target) != self.events * EVENT_SIZE:
            raise ValueError(f"{self.events} events do not fit into {len(target)} bytes")
        decode = _library().rr_unpack_events
        if self.codec == Codec.ZSTD_EVENTS:
            decode = _library().rr_unshuffle_events
        _done(decode(self.planes, len(self.planes), self.events, _of(target)))

    def raw(self) -> bytes:
        """The bytes of the events. ValueError: not `fits`."""
        target = bytearray(self.events * EVENT_SIZE)
        self.copy_to(memoryview(target))
        return bytes(target)

    def column(self, word: int) -> bytearray:
        """Word `word` (0 to 11) of each event, 8 bytes each. ValueError: not `fits`."""
        target = bytearray(self.events * 8)
        decode = _library().rr_unpack_column
        if self.codec == Codec.ZSTD_EVENTS:
            decode = _library().rr_unshuffle_column
        _done(decode(self.planes, len(self.planes), self.events, word, _of(memoryview(target))))
        return target


class Packer:
    """Takes events apart. Keeps its memory from one call to the next: fresh pages cost more than the work."""

    def __init__(self) -> None:
        self._room = bytearray()

    def pack(self, events: bytes) -> memoryview:
        """The planes of at least one event, whole events; valid until the next call."""
        count, rest = divmod(len(events), EVENT_SIZE)
        if rest or not count:
            raise ValueError(f"{len(events)} bytes are no events")
        if len(self._room) < len(events) + WORDS:
            self._room = bytearray(len(events) + WORDS)
        view = memoryview(self._room)
        return view[: _library().rr_pack_events(events, count, _of(view))]


class Survey(ctypes.Structure):
    """`payload_end`: payload bytes that at least one event's payload needs. `longest`: bytes of the longest
    payload of an event. `clone`: the number of the first event that made a task or a process, that of all
    events where none did."""

    _fields_ = (
        ("payload_end", ctypes.c_uint64),
        ("longest", ctypes.c_uint64),
        ("clone", ctypes.c_uint64),
    )
    payload_end: int
    longest: int
    clone: int


def survey(events: bytes | memoryview) -> Survey:
    """Look through whole events: bytes, or writable memory."""
    found = Survey()
    where = events if isinstance(events, bytes) else _of(events) if len(events) else None
    _library().rr_survey_events(where, len(events) // EVENT_SIZE, ctypes.byref(found))
    return found


def check_library() -> None:
    """Raises CodecMissingError where the compiled part is not there or cannot be loaded."""
    _library()


@cache
def _library() -> ctypes.CDLL:
    path = Path(__file__).resolve().parent / "_native" / "planes.so"
    try:
        library = ctypes.CDLL(str(path))
        size, pointer, word = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32
        library.rr_pack_events.argtypes = (pointer, size, pointer)
        library.rr_pack_events.restype = size
        library.rr_survey_events.argtypes = (pointer, size, pointer)
        library.rr_survey_events.restype = None
        for name in ("rr_unpack_events", "rr_unshuffle_events"):
            getattr(library, name).argtypes = (pointer, size, size, pointer)
        for name in ("rr_unpack_column", "rr_unshuffle_column"):
            getattr(library, name).argtypes = (pointer, size, size, word, pointer)
    except (OSError, AttributeError) as error:
        raise CodecMissingError(str(path), str(error)) from error
    return library


def _of(view: memoryview) -> ctypes.Array[ctypes.c_char]:
    return (ctypes.c_char * len(view)).from_buffer(view)


def _done(decoded: int) -> None:
    if not decoded:
        raise ValueError("these are not the planes of so many events")
