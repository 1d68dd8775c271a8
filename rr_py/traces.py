"""Which trace a command means when the user names none."""

from __future__ import annotations

from pathlib import Path

from tracefile.paths import newest_trace


def chosen(name: str | None) -> Path:
    """The trace the user named, or the newest of those that `record` named by itself in this folder.

    Raises `tracefile.errors.TraceMissingError` if there is none.
    """
    return Path(name) if name is not None else newest_trace(Path())
