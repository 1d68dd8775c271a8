"""Compression of chunk sections, with bounds that hold for hostile input.

Events compress twice as well and no slower when zstd sees them as byte planes of column differences instead
of records (measured with 4096 events on one core of a small VM):

| input | records, zstd 1 | planes, zstd 1 |
|---|---|---|
| one call repeated | 4.4 bytes an event, 2.2 GB/s | 0.9, 3 GB/s |
| 20 calls mixed | 18.9, 0.8 GB/s | 11.6, 1.3 GB/s |

Planes that hold only zeros are left out before zstd sees them (`planes`): it would need longer to look at
them than all the rest takes.
"""

from __future__ import annotations

import threading

import zstandard

from tracefile.layout import EVENT_SIZE, Codec
from tracefile.planes import WORDS, Packer, StoredEvents

LEVEL = 3
HURRY, RUSH = 1, -3
"""zstd's levels. 3 saves a sixth of 1 on what programs read, at the same speed; the others are for a writer
that lags."""
_EVENT_CODECS = (Codec.ZSTD_EVENTS, Codec.ZSTD_PACKED)


class CodecError(ValueError):
    """Stored bytes do not decode to what the chunk header promises."""


class Compressor:
    """Compresses sections; one object belongs to one thread."""

    def __init__(self, level: int | None = None) -> None:
        level = LEVEL if level is None else level
        self._level = level
        self._made: dict[int, zstandard.ZstdCompressor] = {}
        self._zstd = self._of(level)
        self._packer = Packer()

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
        stored = self._zstd.compress(self._packer.pack(raw))
        return (Codec.ZSTD_PACKED, stored) if len(stored) < len(raw) else (Codec.RAW, raw)


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

    Never allocates more than `raw_size` and a few bytes, whatever the stored bytes claim. Raises CodecError
    when they do not decode to exactly `raw_size` bytes.
    """
    if codec in _EVENT_CODECS:
        return decompress_events(codec, stored, raw_size).raw()
    if codec == Codec.RAW:
        raw = stored
    elif codec == Codec.ZSTD:
        raw = _unzipped(stored, raw_size, raw_size)
    else:
        raise CodecError(f"unknown codec {codec}")
    if len(raw) != raw_size:
        raise CodecError(f"{len(raw)} bytes decoded, the header promises {raw_size}")
    return raw


def has_planes(codec: int) -> bool:
    """Whether events are stored as planes, which `decompress_events` takes."""
    return codec in _EVENT_CODECS


def decompress_events(codec: int, stored: bytes, raw_size: int) -> StoredEvents:
    """The planes of events that have `raw_size` bytes. Bounds and errors are those of `decompress`."""
    least = raw_size if codec == Codec.ZSTD_EVENTS else 0
    planes = _unzipped(stored, least, raw_size if least else raw_size + WORDS)
    events = StoredEvents(codec, planes, raw_size // EVENT_SIZE)
    if not events.fits:
        raise CodecError(f"{len(planes)} bytes are not the planes of {events.events} events")
    return events


def _unzipped(stored: bytes, least: int, most: int) -> bytes:
    try:
        claimed = zstandard.get_frame_parameters(stored).content_size
        if not least <= claimed <= most:
            raise CodecError(f"the compressed data claims {claimed} bytes, the header {most}")
        raw = _decompressor().decompress(stored, max_output_size=most, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise CodecError(f"the compressed data does not decode ({error})") from None
    if len(raw) != claimed:
        raise CodecError(f"{len(raw)} bytes decoded, the compressed data claims {claimed}")
    return raw
