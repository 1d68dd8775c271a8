"""Bytes as lines of hexadecimal and text, as `hexdump -C` prints them."""

from __future__ import annotations

from collections.abc import Iterator

WIDTH = 16


def hex_lines(data: bytes, address: int = 0) -> Iterator[str]:
    """One line for each 16 bytes: address, bytes, characters."""
    digits = max(8, len(f"{address + len(data):x}"))
    for at in range(0, len(data), WIDTH):
        part = data[at : at + WIDTH]
        left, right = part[:8].hex(" "), part[8:].hex(" ")
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        yield f"{address + at:0{digits}x}  {left:23}  {right:23}  |{text}|"
