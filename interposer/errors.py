"""What can go wrong between the tool and a program that is to carry the core.

RrPyError
└── InterposerError
    ├── ImageError        the core's own ELF file is missing or not as expected
    ├── LaunchError       the first program cannot be run (126) or is not there (127)
    ├── InjectError       this image cannot carry the core
    └── UnsupportedError  the kernel or its settings do not allow recording
"""

from __future__ import annotations

from interfaces.errors import ExitStatus, RrPyError


class InterposerError(RrPyError):
    """Base of everything the interposer's handle raises for the user to read."""


class ImageError(InterposerError):
    """The core's ELF file is missing, or its layout is not what injection relies on."""


class LaunchError(InterposerError):
    """The first program could not be executed. `status` says which kind: NOT_FOUND or CANNOT_RUN."""


class InjectError(InterposerError):
    """An image that was executed cannot carry the core; the process itself is unharmed."""


class UnsupportedError(InterposerError):
    """Something this machine lacks or forbids, found before any program was started."""


class Gone(Exception):
    """The traced thread no longer exists (it was killed). Never shown to the user.

    `status` is its wait status where this was how it was reaped.
    """

    def __init__(self, tid: int, status: int | None = None) -> None:
        super().__init__(f"thread {tid} is gone")
        self.tid = tid
        self.status = status


__all__ = [
    "ExitStatus",
    "Gone",
    "ImageError",
    "InjectError",
    "InterposerError",
    "LaunchError",
    "UnsupportedError",
]
