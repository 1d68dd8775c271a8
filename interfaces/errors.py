"""The root of the one exception tree, and the tool's exit statuses.

    RrPyError                        message, remedy, status
    +-- subclasses where they belong (tracefile.errors.TraceError, ...)

Every error that a user can meet is an `RrPyError`; the command line turns it into one message and a status.
"""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """Statuses of the tool itself; any other status is the recorded program's own."""

    OK = 0
    DIVERGED = 124
    TOOL_FAILED = 125
    CANNOT_RUN = 126
    NOT_FOUND = 127


class RrPyError(Exception):
    """Something the user must know.

    `message` says what is wrong, with the value found and the value needed; `remedy` says what to do about
    it ("" where nothing can be done); `status` is what the command line exits with.
    """

    def __init__(self, message: str, remedy: str = "", status: ExitStatus = ExitStatus.TOOL_FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.status = status

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message
