"""Names of traces: trace.bin, trace-2.bin, trace-3.bin, ... in a folder."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path

from tracefile.errors import TraceMissingError
from tracefile.layout import FILE_MAGIC

_NAME = r"trace(?:-([1-9][0-9]*))?\.bin"


def numbered_trace(folder: str | os.PathLike[str], number: int) -> Path:
    """trace.bin for 1, else trace-NUMBER.bin."""
    return Path(folder) / ("trace.bin" if number == 1 else f"trace-{number}.bin")


def next_trace_path(folder: str | os.PathLike[str]) -> Path:
    """The first name in the row that is free now. `TraceWriter.create_numbered` takes it without a race."""
    number = 1
    while os.path.lexists(path := numbered_trace(folder, number)):
        number += 1
    return path


def newest_trace(folder: str | os.PathLike[str]) -> Path:
    """The trace in `folder` that was modified last; of equally old ones the one with the highest number.

    Only files named as above that begin like a trace count. Raises TraceMissingError.
    """
    candidates: list[tuple[int, int, str]] = []
    try:
        for entry in os.scandir(folder):
            match = re.fullmatch(_NAME, entry.name)
            if match:
                with contextlib.suppress(FileNotFoundError):
                    candidates.append((entry.stat().st_mtime_ns, int(match[1] or 1), entry.path))
    except OSError as error:
        raise TraceMissingError(
            f"{os.fspath(folder)}: cannot look for traces: {error.strerror}", "Name the trace to use."
        ) from error
    for _, _, path in sorted(candidates, reverse=True):
        if _begins_like_a_trace(path):
            return Path(path)
    raise TraceMissingError(
        f"no trace in {os.fspath(folder)!r}",
        "Record one with `rr-py record PROGRAM`, or name the trace to use.",
    )


def _begins_like_a_trace(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        return os.pread(descriptor, len(FILE_MAGIC), 0) == FILE_MAGIC
    except OSError:
        return False
    finally:
        os.close(descriptor)
