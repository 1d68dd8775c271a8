"""Content stored in a trace under its digest."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from tracefile.digest import DIGEST_BYTES, new_digest
from tracefile.errors import TraceFormatError
from tracefile.layout import ChunkFlag, ChunkType
from tracefile.source import Source


class BlobTable:
    """Finds the pieces of each blob. Which chunk belongs to which blob is read when it is first asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._offsets = array("Q")
        self._known = 0
        self._open: dict[str, array[int]] = {}
        self._whole: dict[str, array[int]] = {}

    def add(self, offsets: array[int]) -> None:
        """Note BLOB chunks: their offsets in the file."""
        self._offsets.extend(offsets)

    def digests(self) -> list[str]:
        """Digests of all blobs whose last piece is there."""
        self._find()
        return list(self._whole)

    def has(self, digest: str) -> bool:
        """Whether all pieces are there."""
        self._find()
        return digest in self._whole

    def pieces(self, digest: str) -> Iterator[bytes]:
        """The content, checked against the digest after the last piece; KeyError when it is not there."""
        self._find()
        return self._read(digest, self._whole[digest])

    def _find(self) -> None:
        while self._known < len(self._offsets):
            offset = self._offsets[self._known]
            self._known += 1
            try:
                header = self._source.header(offset)
                if header.type != ChunkType.BLOB or header.raw_a != DIGEST_BYTES:
                    continue
                digest = self._source.section_a(offset, header).hex()
            except TraceFormatError:
                continue
            if digest in self._whole:
                continue
            pieces = self._open.setdefault(digest, array("Q"))
            if header.count == 0:
                del pieces[:]
            if header.count != len(pieces):
                continue
            pieces.append(offset)
            if header.flags & ChunkFlag.LAST_PIECE:
                self._whole[digest] = self._open.pop(digest)

    def _read(self, digest: str, places: array[int]) -> Iterator[bytes]:
        found = new_digest()
        position = 0
        for number, offset in enumerate(places):
            header = self._source.header(offset)
            if header.type != ChunkType.BLOB or header.count != number or header.first != position:
                self._source.fail(
                    offset, f"piece {number} of blob {digest[:16]} should be here, at its byte {position}"
                )
            piece = self._source.section_b(offset, header)
            position += len(piece)
            found.update(piece)
            yield piece
        if found.hexdigest() != digest:
            self._source.fail(places[0], f"the content of blob {digest[:16]} does not match its digest")
