"""Small line plots as SVG, both axes logarithmic, without any library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 170, 16, 48
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")


@dataclass(frozen=True, slots=True)
class Series:
    """One line: a name and its points, all above 0."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


def plot(x_label: str, y_label: str, series: Sequence[Series]) -> str:
    """The SVG text of some lines over the same axes."""
    xs = [value for line in series for value in line.x]
    ys = [value for line in series for value in line.y]
    across = _Axis(min(xs), max(xs), _LEFT, _WIDTH - _RIGHT)
    up = _Axis(
        10 ** math.floor(math.log10(min(ys))), 10 ** math.ceil(math.log10(max(ys))), _HEIGHT - _BOTTOM, _TOP
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        *_grid(across, up, sorted(set(xs))),
        _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, x_label, "middle"),
        f'<text transform="translate(14 {_HEIGHT / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_label)}</text>",
    ]
    ends = sorted(((up.place(line.y[-1]), i) for i, line in enumerate(series)))
    below = -math.inf
    for place, i in ends:
        line, colour = series[i], _COLOURS[i % len(_COLOURS)]
        points = " ".join(
            f"{across.place(x):.1f},{up.place(y):.1f}" for x, y in zip(line.x, line.y, strict=True)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        below = max(place, below + 14)
        parts.append(_text(_WIDTH - _RIGHT + 8, below + 4, line.name, "start", colour))
    return "\n".join([*parts, "</svg>"]) + "\n"


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        """Where a value lies on the canvas."""
        span = math.log(self.high / self.low) or 1.0
        return self.begin + math.log(value / self.low) / span * (self.end - self.begin)


def _grid(across: _Axis, up: _Axis, xs: Sequence[float]) -> Iterator[str]:
    for x in xs:
        place = across.place(x)
        yield _line(place, up.begin, place, up.end)
        yield _text(place, up.begin + 16, _short(x), "middle")
    tick = up.low
    while tick <= up.high * 1.01:
        place = up.place(tick)
        yield _line(across.begin, place, across.end, place)
        yield _text(across.begin - 6, place + 4, _short(tick), "end")
        tick *= 10


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _short(value: float) -> str:
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{unit}"
    return f"{value:g}"
