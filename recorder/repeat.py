"""Running a program several times as if each were the first: its input begins again, and it ends the same."""

from __future__ import annotations

import os
import select
import signal
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from recorder.errors import RecordError
from recorder.options import RecordResult

_PIECE = 1 << 20


class Repeat:
    """The runs of one or several commands. Raises RecordError where one ends otherwise than before."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, ...], tuple[int | None, int | None]] = {}

    def begin(self) -> None:
        """Let the input of the next run be that of the first. A terminal stays what it is."""
        if stat.S_ISREG(_mode()):
            os.lseek(0, 0, os.SEEK_SET)

    def ended(self, command: Sequence[str], result: RecordResult) -> None:
        """Note how a run ended."""
        end = (result.status, result.signal)
        first = self._ends.setdefault(tuple(command), end)
        if end != first:
            raise RecordError(
                f"the program does not do the same each time: first it {_how(first)}, then it {_how(end)}",
                "It is run several times. If it uses up what it is given (a file that it removes, say), name "
                "a shell script that puts that in place first.",
            )


def _mode() -> int:
    """What standard input is, 0 where there is none."""
    try:
        return os.fstat(0).st_mode
    except OSError:
        return 0


def _how(end: tuple[int | None, int | None]) -> str:
    status, number = end
    return f"exited with {status}" if number is None else f"was killed by {signal.Signals(number).name}"


@contextmanager
def repeatable_input() -> Iterator[None]:
    """Where standard input is a pipe with something in it, keep that in a passing file to be read again."""
    mode = _mode()
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) or not select.select([0], [], [], 0)[0]:
        yield
        return
    with tempfile.TemporaryFile(prefix="rr-py-input-") as file:
        while piece := os.read(0, _PIECE):
            file.write(piece)
        file.flush()
        saved = os.dup(0)
        try:
            os.dup2(file.fileno(), 0)
            yield
        finally:
            os.dup2(saved, 0)
            os.close(saved)
