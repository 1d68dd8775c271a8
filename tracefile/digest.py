"""The digest under which content is stored in a trace: BLAKE2b, 256 bits, hexadecimal."""

from __future__ import annotations

from _blake2 import blake2b  # hashlib would load OpenSSL with it

DIGEST_BYTES = 32
SHORT_BYTES = 16


def blob_digest(data: bytes) -> str:
    """The digest of content."""
    return blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


def new_digest() -> blake2b:
    """A hash object for content that comes piece by piece; its `hexdigest()` is a blob digest."""
    return blake2b(digest_size=DIGEST_BYTES)


def short_digest(data: bytes) -> bytes:
    """128 bits of BLAKE2b: two pieces of one recording that have the same are the same."""
    return blake2b(data, digest_size=SHORT_BYTES).digest()
