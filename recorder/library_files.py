"""The files that programs run from in a recording at library interfaces: their replay runs them again."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress

from interposer.filecache import FileCache
from tracefile import FileEntry


def mapped(pid: int) -> list[str]:
    """The files of which a process has code in its memory."""
    found = []
    with suppress(OSError), open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            words = line.rstrip("\n").split(maxsplit=5)
            if len(words) == 6 and "x" in words[1] and words[5].startswith("/"):
                found.append(words[5])
    return found


def entries(paths: Iterable[str]) -> Iterator[FileEntry]:
    """Path, size, time and hash of each file that can be read."""
    hashes = FileCache("sha256-1")
    number = 0
    for path in sorted(set(paths)):
        with suppress(OSError), open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                continue
            digest = hashes.get(status)
            if digest is None:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                hashes.put(status, digest)
            number += 1
            yield FileEntry(
                number,
                path,
                dev=status.st_dev,
                ino=status.st_ino,
                size=status.st_size,
                mtime_ns=status.st_mtime_ns,
                sha256=digest,
            )
