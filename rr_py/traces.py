"""Which trace a command means when the user names none."""

from __future__ import annotations

import re
from pathlib import Path

from interfaces.errors import ExitStatus, RrPyError

DEFAULT_NAME = re.compile(r"trace(?:-(\d+))?\.bin")


class NoTraceError(RrPyError):
    """There is no trace to work on."""


def newest(folder: Path) -> Path:
    """The newest of the traces that `record` named by itself in `folder` (trace.bin, trace-2.bin, ...).

    Of two with the same time the higher number is the newer. Raises `NoTraceError` if there is none.
    """
    found: list[tuple[int, int, Path]] = []
    try:
        entries = list(folder.iterdir())
    except OSError as why:
        raise NoTraceError(
            f"cannot look for a trace in {folder}: {why.strerror}",
            remedy="name the trace: rr-py COMMAND FILE",
            status=ExitStatus.TOOL_FAILED,
        ) from why
    for path in entries:
        match = DEFAULT_NAME.fullmatch(path.name)
        if match and path.is_file():
            found.append((path.stat().st_mtime_ns, int(match[1] or 1), path))
    if not found:
        raise NoTraceError(
            f"no trace named and none (trace.bin, trace-2.bin, ...) in {folder.absolute()}",
            remedy="record one with: rr-py record PROGRAM, or name the trace",
            status=ExitStatus.TOOL_FAILED,
        )
    path = max(found)[2]
    return path if folder != Path() else Path(path.name)


def chosen(name: str | None) -> Path:
    """The trace the user named, or the newest one here."""
    if name is None:
        return newest(Path())
    path = Path(name)
    if not path.exists():
        raise NoTraceError(
            f"no trace {name}",
            remedy="check the name; traces in this folder: ls -t trace*.bin",
            status=ExitStatus.TOOL_FAILED,
        )
    return path
