"""Colours of events, by names that every terminal and theme has."""

from __future__ import annotations

from rich.style import Style

FAMILIES = {
    "files": Style(color="cyan"), "paths": Style(color="green"), "network": Style(color="magenta"),
    "process": Style(color="yellow"), "memory": Style(color="blue"), "signals": Style(color="red"),
    "time": Style(color="bright_black"), "ipc": Style(color="bright_magenta"), "kernel": Style(),
    "ioctl": Style(color="cyan"),
}  # fmt: skip

LIBRARY = Style(color="bright_cyan")
"""Calls of library functions."""

ROLES = {
    "text": Style(), "fd": Style(color="green", italic=True), "string": Style(color="yellow"),
    "result": Style(bold=True), "error": Style(color="red", bold=True),
    "signal": Style(color="red", bold=True), "mark": Style(color="blue", bold=True), "note": Style(dim=True),
}  # fmt: skip

DIM = Style(dim=True)
BOLD = Style(bold=True)
SLOW = Style(color="red", bold=True)
LONG = Style(color="yellow")
HIT = Style(color="black", bgcolor="yellow", bold=True, underline=True)
THREADS = tuple(
    Style(color=name) for name in ("cyan", "green", "yellow", "magenta", "blue", "bright_red", "white")
)
