"""A recording that runs beside the interface: its recorder is a process of its own, with its own terminal."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from interfaces.errors import ExitStatus, RrPyError
from tracefile import TraceError, next_trace_path
from tui.model.trace import TraceModel

_BEGIN_S = 20.0
_POLL_S = 0.02
_END_S = 5.0


class RecordingError(RrPyError):
    """The recording did not begin."""


class Recording:
    """`rr-py record` at work. `read_output` gives what the program writes, `write_input` types to it."""

    def __init__(self, options: Sequence[str], command: Sequence[str], trace: Path | None) -> None:
        """Start `rr-py record OPTIONS -o TRACE -- COMMAND`; no `trace`: the next free name here."""
        self.trace = trace if trace is not None else next_trace_path(Path())
        self._master, slave = pty.openpty()
        argv = [
            sys.executable,
            "-m",
            "rr_py",
            "record",
            *options,
            "-q",
            "-o",
            str(self.trace),
            "--",
            *command,
        ]
        try:
            self._process = subprocess.Popen(
                argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, env=_environment()
            )
        finally:
            os.close(slave)

    def wait_for_trace(self) -> TraceModel:
        """The trace, as soon as the program has started; RecordingError where the recorder ends before."""
        deadline = time.monotonic() + _BEGIN_S
        while True:
            ended = self._process.poll() is not None
            try:
                model = TraceModel.open(self.trace)
            except TraceError as why:
                problem = why.message
            else:
                if model.reader.domains:
                    return model
                model.close()
                problem = "the program did not start"
            if ended or time.monotonic() > deadline:
                said = self._rest().decode("utf-8", "replace").strip()
                code = self._process.returncode
                raise RecordingError(
                    f"the recording did not begin: {said or problem}",
                    "Try it without --tui.",
                    ExitStatus(code) if code in (126, 127) else ExitStatus.TOOL_FAILED,
                )
            time.sleep(_POLL_S)

    def pump(self, take: Callable[[str], None]) -> int | None:
        """Hand the program's output over as it comes; the recorder's exit status at the end (negative: its
        signal)."""
        pending = b""
        while data := self._read():
            text, pending = _decoded(pending + data)
            take(text)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(_END_S)
        return None

    def write_input(self, text: str) -> None:
        """Type something to the program."""
        with contextlib.suppress(OSError):
            os.write(self._master, text.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Tell the program how large its terminal is."""
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    @property
    def status(self) -> int | None:
        """The recorder's exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def close(self) -> int:
        """End the program where it still runs, and the recording with it; the exit status."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        with contextlib.suppress(OSError):
            os.close(self._master)
        return self._process.returncode

    def _read(self) -> bytes:
        try:
            return os.read(self._master, 65536)
        except OSError as why:
            if why.errno in (errno.EIO, errno.EBADF):
                return b""
            raise

    def _rest(self) -> bytes:
        """What was written until now, without waiting."""
        os.set_blocking(self._master, False)
        found = b""
        with contextlib.suppress(OSError):
            while data := os.read(self._master, 65536):
                found += data
        os.set_blocking(self._master, True)
        return found


def _environment() -> dict[str, str]:
    """This environment, so that the recorder imports the same packages."""
    paths = [path for path in sys.path if path]
    return (
        {**os.environ, "PYTHONPATH": os.pathsep.join(paths)} if "PYTHONPATH" in os.environ else {**os.environ}
    )


def _decoded(data: bytes) -> tuple[str, bytes]:
    """The text of whole characters, and the bytes of one that is not complete."""
    for cut in range(4):
        try:
            return data[: len(data) - cut].decode(), data[len(data) - cut :]
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", "replace"), b""
