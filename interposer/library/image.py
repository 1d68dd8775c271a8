"""A program as a part of a recording: which task it plays, and which of its descriptors are the recording's
output.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_FDS = 64
STANDARD = 0b110
"""Descriptors 1 and 2."""


@dataclass(frozen=True, slots=True)
class Image:
    """One program, from its first instruction on.

    `domain` describes it in the trace, 0 for the first one. `outputs` has a bit for each descriptor that
    leads to the recording's output, `errors` for those that are its standard error. `kind` is the buffer
    that the C library gives its standard output: twice the size, 1 more where it is flushed with each line;
    0: unknown.
    """

    task: int
    domain: int = 0
    outputs: int = STANDARD
    errors: int = 0b100
    kind: int = 0

    def descriptors(self) -> dict[int, int]:
        """Each descriptor that is the recording's output: 1 or 2."""
        return {fd: 2 if self.errors >> fd & 1 else 1 for fd in range(_FDS) if self.outputs >> fd & 1}

    def message(self) -> dict[str, Any]:
        """For the script."""
        buffer = [self.kind & 1, self.kind >> 1] if self.outputs & 2 else [0, 0]
        return {
            "task": self.task,
            "domain": self.domain,
            "outputs": str(self.outputs),
            "errors": str(self.errors),
            "kind": str(self.kind),
            "buffer": buffer,
        }

    @classmethod
    def of_process(cls, pid: int, task: int, domain: int) -> Image:
        """A program that waits at its entry point, in a recording whose output is this process's own."""
        ours = {_identity(fd): fd for fd in (2, 1)}
        outputs = errors = 0
        for name in os.listdir(f"/proc/{pid}/fd"):
            fd = int(name)
            try:
                which = ours.get(_same(os.stat(f"/proc/{pid}/fd/{name}")))
            except OSError:
                continue
            if which is None or not 0 < fd < _FDS:
                continue
            outputs |= 1 << fd
            if which == 2 or (fd == 2 and _identity(1) == _identity(2)):
                errors |= 1 << fd
        return cls(task, domain, outputs, errors, buffer_kind())


def buffer_kind() -> int:
    """`Image.kind` for what this process's standard output leads to."""
    try:
        size = os.fstat(1).st_blksize
    except OSError:
        return 0
    return min(size, 8192) << 1 | os.isatty(1)


def _identity(fd: int) -> Sequence[int]:
    try:
        return _same(os.fstat(fd))
    except OSError:
        return (fd,)


def _same(status: os.stat_result) -> Sequence[int]:
    return (status.st_dev, status.st_ino)
