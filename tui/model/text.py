"""Times and counts as the screens write them."""

from __future__ import annotations


def clock(nanoseconds: int) -> str:
    """Seconds since the start with microseconds: `12.345678`."""
    sign = "-" if nanoseconds < 0 else ""
    seconds, rest = divmod(abs(nanoseconds), 1_000_000_000)
    return f"{sign}{seconds}.{rest // 1000:06d}"


def duration(nanoseconds: float) -> str:
    """`850 ns`, `12.3 us`, `4.56 ms`, `1.23 s`, `3 min 05 s`: three digits, at most seven characters below a
    minute."""
    value = float(nanoseconds)
    if value < 999.5:
        return f"{value:.0f} ns"
    for unit in ("us", "ms", "s"):
        value /= 1000
        if value < 9.995:
            return f"{value:.2f} {unit}"
        if value < (99.95 if unit != "s" else 59.95):
            return f"{value:.1f} {unit}"
        if value < 999.5 and unit != "s":
            return f"{value:.0f} {unit}"
    minutes, seconds = divmod(round(value), 60)
    return f"{minutes} min {seconds:02d} s"


def count(number: int) -> str:
    """Digits in groups of three."""
    return f"{number:,}".replace(",", " ")
