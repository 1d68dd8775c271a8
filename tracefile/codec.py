"""Compression of chunk sections, with bounds that hold for hostile input.

Events compress twice as well and no slower when zstd sees them as byte planes of column differences instead
of records (measured with 4096 events on one core of a small VM):

| input | records, zstd 1 | planes, zstd 1 |
|---|---|---|
| one call repeated | 4.4 bytes an event, 2.2 GB/s | 0.9, 3 GB/s |
| 20 calls mixed | 18.9, 0.8 GB/s | 11.6, 1.3 GB/s |

The planes need numpy, whose import takes longer than a short recording: the first events of a recording are
stored as records, while a thread imports it. Plain zstd keeps up with the fastest program meanwhile.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import zstandard

from interfaces.arrays import numpy
from tracefile.layout import EVENT_SIZE, Codec

if TYPE_CHECKING:
    import numpy.typing as npt

LEVEL = 3
HURRY, RUSH = 1, -3
"""zstd's levels. 3 saves a sixth of 1 on what programs read, at the same speed; the others are for a writer
that lags."""
PLAIN_EVENTS = 65536
"""So many events are worth importing numpy for."""
_WORDS = EVENT_SIZE // 8


class CodecError(ValueError):
    """Stored bytes do not decode to what the chunk header promises."""


class EventShuffler:
    """Turns whole events into 12 columns of 64-bit differences to the previous event, each as 8 byte planes.

    Plane p of column c holds byte p of word c of every event, so that bytes that seldom change lie together.
    Keeps its arrays from one call to the next: fresh ones cost more in page faults than the work itself.
    """

    def __init__(self) -> None:
        self._np = numpy()
        self._size(0)

    def _size(self, count: int) -> None:
        np = self._np
        self._columns: npt.NDArray[Any] = np.empty((_WORDS, count), "<u8")
        self._delta: npt.NDArray[Any] = np.empty((_WORDS, count), "<u8")
        self._planes: npt.NDArray[Any] = np.empty((_WORDS, 8, count), np.uint8)

    def shuffle(self, events: bytes) -> memoryview:
        """The byte planes of at least one event; valid until the next call."""
        np = self._np
        count = len(events) // EVENT_SIZE
        if count != self._columns.shape[1]:
            self._size(count)
        columns, delta, planes = self._columns, self._delta, self._planes
        columns[:] = np.frombuffer(events, "<u8").reshape(count, _WORDS).T
        delta[:, 0] = columns[:, 0]
        np.subtract(columns[:, 1:], columns[:, :-1], out=delta[:, 1:])
        octets = delta.view(np.uint8).reshape(_WORDS, count, 8)
        planes.fill(0)
        planes[:, :, 0] = octets[:, 0, :]
        for column in np.flatnonzero(np.any(delta[:, 1:], axis=1)):
            planes[column] = octets[column].T
        return planes.reshape(-1).data


def unshuffle_events(planes: bytes) -> bytes:
    """The inverse of `EventShuffler.shuffle`. What a column costs grows with its planes that are not zero."""
    np = numpy()
    count = len(planes) // EVENT_SIZE
    shaped = np.frombuffer(planes, np.uint8).reshape(_WORDS, 8, count)
    raw = bytearray(shaped[:, :, 0].tobytes()) * count
    events = np.frombuffer(raw, "<i8").reshape(count, _WORDS)
    live = shaped[:, :, 1:].max(axis=2, initial=0) > 0
    for column in np.flatnonzero(live.any(axis=1)).tolist():
        octets = shaped[column]
        if live[column].all() and _is_sign_extension(octets.view(np.int8)):
            delta = octets[0].view(np.int8).astype("<i8")
        else:
            spread = np.zeros((count, 8), np.uint8)
            for plane in np.flatnonzero(live[column]).tolist():
                spread[:, plane] = octets[plane]
            delta = spread.view("<i8").reshape(count)
        delta[0] = events[0, column]
        np.add.accumulate(delta, out=events[:, column])
    return bytes(raw)


def _is_sign_extension(planes: npt.NDArray[Any]) -> bool:
    """Whether all differences but the first fit into the lowest of eight planes of signed octets."""
    high = planes[1, 1:]
    return bool((high == planes[0, 1:] >> 7).all()) and bool((planes[2:, 1:] == high).all())


class Compressor:
    """Compresses sections; one object belongs to one thread."""

    def __init__(self, level: int | None = None) -> None:
        level = LEVEL if level is None else level
        self._level = level
        self._made: dict[int, zstandard.ZstdCompressor] = {}
        self._zstd = self._of(level)
        self._shuffler: EventShuffler | None = None
        self._events = 0
        self._importing = False

    def _of(self, level: int) -> zstandard.ZstdCompressor:
        if level not in self._made:
            self._made[level] = zstandard.ZstdCompressor(
                level=level, write_checksum=False, write_content_size=True
            )
        return self._made[level]

    def adapt(self, lag: float) -> None:
        """Compress less thoroughly while more than a quarter of the queue is filled (0: empty, 1: full)."""
        self._zstd = self._of(min(self._level, LEVEL if lag < 0.25 else HURRY if lag < 0.75 else RUSH))

    def repeats(self, section: bytes) -> tuple[Codec, bytes]:
        """The same for table and literals of a section with repeats, whose pieces make room for any codec."""
        return Codec.ZSTD_REPEATS, self._zstd.compress(section)

    def section(self, raw: bytes) -> tuple[Codec, bytes]:
        """Codec and stored bytes; kept as it is where compression does not pay."""
        if not raw:
            return Codec.RAW, raw
        stored = self._zstd.compress(raw)
        return (Codec.ZSTD, stored) if len(stored) < len(raw) else (Codec.RAW, raw)

    def events(self, raw: bytes) -> tuple[Codec, bytes]:
        """Codec and stored bytes of a whole number of events."""
        if self._shuffler is None:
            if not self._want_planes(len(raw) // EVENT_SIZE):
                return self.section(raw)
            self._shuffler = EventShuffler()
        stored = self._zstd.compress(self._shuffler.shuffle(raw))
        return (Codec.ZSTD_EVENTS, stored) if len(stored) < len(raw) else (Codec.RAW, raw)

    def _want_planes(self, count: int) -> bool:
        """Whether numpy is there; it is sent for once there are enough events."""
        if self._importing:
            return _numpy_ready.is_set()
        if "numpy" in sys.modules:
            return True
        self._events += count
        if self._events >= PLAIN_EVENTS:
            self._importing = True
            threading.Thread(target=_import_numpy, name="import of numpy").start()
        return False


_numpy_ready = threading.Event()


def _import_numpy() -> None:
    numpy()
    _numpy_ready.set()


_of_thread = threading.local()


def _decompressor() -> zstandard.ZstdDecompressor:
    """The calling thread's own: making one takes longer than a chunk of alike events."""
    try:
        found: zstandard.ZstdDecompressor = _of_thread.decompressor
    except AttributeError:
        found = _of_thread.decompressor = zstandard.ZstdDecompressor()
    return found


def decompress_repeats(stored: bytes, raw_size: int) -> bytes:
    """Table and literals of a section of `raw_size` bytes that has repeats, which are fewer bytes than that.

    Raises CodecError when they do not decode.
    """
    try:
        claimed = zstandard.get_frame_parameters(stored).content_size
    except zstandard.ZstdError as error:
        raise CodecError(f"the compressed data does not decode ({error})") from None
    if claimed >= raw_size:
        raise CodecError(f"the compressed data claims {claimed} bytes for less than {raw_size}")
    return decompress(Codec.ZSTD, stored, claimed)


def decompress(codec: int, stored: bytes, raw_size: int) -> bytes:
    """The raw bytes of a section.

    Never allocates more than `raw_size`, whatever the stored bytes claim. Raises CodecError when they do not
    decode to exactly `raw_size` bytes.
    """
    if codec == Codec.RAW:
        raw = stored
    elif codec in (Codec.ZSTD, Codec.ZSTD_EVENTS):
        try:
            claimed = zstandard.get_frame_parameters(stored).content_size
            if claimed != raw_size:
                raise CodecError(f"the compressed data claims {claimed} bytes, the header {raw_size}")
            raw = _decompressor().decompress(stored, max_output_size=raw_size, allow_extra_data=False)
        except zstandard.ZstdError as error:
            raise CodecError(f"the compressed data does not decode ({error})") from None
    else:
        raise CodecError(f"unknown codec {codec}")
    if len(raw) != raw_size:
        raise CodecError(f"{len(raw)} bytes decoded, the header promises {raw_size}")
    return unshuffle_events(raw) if codec == Codec.ZSTD_EVENTS else raw
