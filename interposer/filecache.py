"""Facts about files kept between runs: one small file each in the user's cache folder.

A fact is found again by what identifies a file's content: device, inode, time of change and size. Writing
is atomic and best effort; losing the cache costs time only.
"""

from __future__ import annotations

import contextlib
import os

_FACT_MAX = 1 << 20


class FileCache:
    """Facts of one kind, as text."""

    def __init__(self, kind: str) -> None:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self._folder = os.path.join(base, "rr-py", kind)

    def _path(self, status: os.stat_result) -> str:
        key = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
        return os.path.join(self._folder, "-".join(f"{part:x}" for part in key))

    def get(self, status: os.stat_result) -> str | None:
        """What was put for a file of this status, None if nothing was."""
        try:
            fd = os.open(self._path(status), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return os.read(fd, _FACT_MAX).decode(errors="replace")
        except OSError:
            return None
        finally:
            os.close(fd)

    def put(self, status: os.stat_result, fact: str) -> None:
        path = self._path(status)
        temporary = f"{path}.{os.getpid()}"
        with contextlib.suppress(OSError):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, fact.encode())
            finally:
                os.close(fd)
            os.replace(temporary, path)
