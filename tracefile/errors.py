"""Errors of trace files.

RrPyError                     (interfaces.errors)
  TraceError                  anything about a trace
    TraceFormatError          not a trace, another version, or damaged; `offset` says where
    TraceWriteError           the trace cannot be written; `errno` says why
      TraceExistsError        there is a file of that name already
    TraceMissingError         no trace of that name, or none in the folder
    CodecMissingError         the compiled part of the format was not installed
    FileChangedError          a file that the trace refers to is not what was recorded
"""

from __future__ import annotations

import errno as errno_codes
import os

from interfaces.errors import ExitStatus, RrPyError


class TraceError(RrPyError):
    """Anything that is wrong with a trace."""


class TraceFormatError(TraceError):
    """The bytes at `offset` of the file are not what a trace has there."""

    def __init__(self, path: str, offset: int, problem: str, remedy: str = "") -> None:
        super().__init__(
            f"{path}: {problem} (at offset {offset})",
            remedy or "Record again; what precedes the damage can still be read.",
            ExitStatus.TOOL_FAILED,
        )
        self.path = path
        self.offset = offset
        self.problem = problem


_WRITE_REMEDIES = {
    errno_codes.ENOSPC: "Free some disk space, or choose another place with -o FILE.",
    errno_codes.EDQUOT: "Free some of your disk quota, or choose another place with -o FILE.",
    errno_codes.EFBIG: "Raise the file size limit (ulimit -f), or choose another place with -o FILE.",
    errno_codes.EROFS: "The file system is read-only: choose another place with -o FILE.",
    errno_codes.EACCES: "You may not write there: choose another place with -o FILE.",
    errno_codes.EPERM: "You may not write there: choose another place with -o FILE.",
    errno_codes.ENOENT: "Create the folder first, or choose another place with -o FILE.",
    errno_codes.ENOTDIR: "Choose another place with -o FILE.",
    errno_codes.EIO: "The disk reports errors: choose another place with -o FILE.",
}


class TraceWriteError(TraceError):
    """The operating system refused to create or extend the trace.

    What was written before stays a readable trace that ends with its last whole chunk.
    """

    def __init__(self, path: str, code: int, doing: str = "cannot write the trace", remedy: str = "") -> None:
        super().__init__(
            f"{path}: {doing}: {os.strerror(code)}",
            remedy or _WRITE_REMEDIES.get(code, "Choose another place with -o FILE."),
            ExitStatus.TOOL_FAILED,
        )
        self.path = path
        self.errno = code


class TraceExistsError(TraceWriteError):
    """A trace is never overwritten."""

    def __init__(self, path: str) -> None:
        super().__init__(
            path,
            errno_codes.EEXIST,
            "cannot create the trace",
            "Traces are never overwritten: remove the file or choose another name with -o FILE.",
        )


class TraceMissingError(TraceError):
    """There is no trace to read."""


class CodecMissingError(TraceError):
    """The shared object that takes events apart is missing, or cannot be loaded."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"the compiled codec cannot be used: {path}: {why}",
            "Install it again: pip install --force-reinstall rr-py (in its source: make -C interposer/core).",
        )


class FileChangedError(TraceError):
    """A file the program mapped is not any more what it was when the trace was recorded."""
