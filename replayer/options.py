"""What a caller asks of a replay, and what it is told at the end."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from replayer.divergence import DivergenceReport

DEFAULT_TIMEOUT = 60.0
"""Seconds without progress after which a replay is given up (see `watchdog`)."""


class ReplayOptions(NamedTuple):
    """How to replay.

    `pid`: only this recorded process. `echo`: write what the program wrote to the recording's stdout and
    stderr to the descriptors `stdout` and `stderr`. `verify`: compare memory where the trace has checksums.
    `timeout`: seconds without progress, None for DEFAULT_TIMEOUT. `ignore_cpu`: start although this CPU
    lacks features of the recorded one. `stamp`: mark each write that is echoed with process and event.
    """

    trace: Path | str
    pid: int | None = None
    echo: bool = True
    verify: bool = False
    timeout: float | None = None
    ignore_cpu: bool = False
    stamp: bool = False
    stdout: int = 1
    stderr: int = 2


class ReplayEnd(Enum):
    """Why a replay ended."""

    FINISHED = "finished"
    INCOMPLETE = "incomplete"
    DIVERGED = "diverged"
    STUCK = "stuck"


class ReplayResult(NamedTuple):
    """How a replay ended.

    `status` is what the tool should exit with: the recorded program's own, 124 when it diverged or got
    stuck, 0 when the recording stops before the program's end; `signal` is set when the recorded program
    died of one. `message` is for the user when `end` is DIVERGED or STUCK (several lines), `notes` are
    worth a line each on stderr. `events` were replayed, in `seconds`.
    """

    end: ReplayEnd
    status: int
    signal: int | None = None
    message: str = ""
    notes: tuple[str, ...] = ()
    events: int = 0
    processes: int = 0
    seconds: float = 0.0
    divergence: DivergenceReport | None = None
