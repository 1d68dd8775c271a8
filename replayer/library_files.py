"""Whether the files that a replay of library calls runs are those that were recorded."""

from __future__ import annotations

import hashlib
import io
import os

from tracefile import FileEntry, TraceReader
from tracefile.errors import FileChangedError

_REMEDY = "Put the recorded file back, or record again."
_RUN = "the replay of library calls runs it again"


def check_files(reader: TraceReader) -> None:
    """Raises FileChangedError for the first program or library that is not what was recorded."""
    for entry in reader.files.values():
        _check(entry)


def _check(entry: FileEntry) -> None:
    try:
        with open(entry.path, "rb") as file:
            now = os.fstat(file.fileno())
            if now.st_size != entry.size:
                what = f"it had {entry.size} bytes, now {now.st_size}"
            elif now.st_mtime_ns == entry.mtime_ns or _hash(file) == entry.sha256:
                return
            else:
                what = "same size, other content"
    except OSError as error:
        raise FileChangedError(
            f"{entry.path}, which was recorded, cannot be opened: {error.strerror}; {_RUN}", _REMEDY
        ) from None
    raise FileChangedError(f"{entry.path} has changed since the recording: {what}; {_RUN}", _REMEDY)


def _hash(file: io.BufferedReader) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()
