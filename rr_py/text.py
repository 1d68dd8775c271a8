"""Numbers, sizes and commands as people read them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def printable(text: str) -> str:
    """`text` with control and other unprintable characters escaped: what comes from a trace may hold any."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode()
        for char in text
    )


def command_line(words: Sequence[str]) -> str:
    """Words as one would type them in a shell, on one line."""
    return printable(shlex.join(words))


def count(number: int, noun: str | None = None, plural: str | None = None) -> str:
    """`12 345 events`: digits in groups of three, and the noun in the right number."""
    digits = f"{number:,}".replace(",", " ")
    if noun is None:
        return digits
    return f"{digits} {noun if number == 1 else plural or noun + 's'}"


def size(octets: int) -> str:
    """`1.2 MB`, in powers of 1000, three significant digits at the most."""
    if octets < 1000:
        return f"{octets} B"
    value = float(octets)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.5 or unit == "TB":
            break
    return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"


def duration(seconds: float) -> str:
    """`350 ms`, `2.4 s`, `3 min 05 s`, `2 h 03 min`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
