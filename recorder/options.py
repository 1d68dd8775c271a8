"""What to record and how, and what came of it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from interposer import kernel


def tell(text: str) -> None:
    """Say something to the user who watches the program run."""
    if sys.stderr is not None:
        sys.stderr.write(f"rr-py: {text}\n")
        sys.stderr.flush()


class RecordOptions(NamedTuple):
    """One recording.

    `trace` None: trace.bin, trace-2.bin, ... in the current folder; an existing file is never overwritten.
    `env` None: this process's environment. `checksum_every`: hash all writable memory after so many events.
    `one_domain`: all processes in one order. `chaos`: seed of random hand-overs, 0 for a seed of its own.
    `version` is the tool's, noted in the trace. `quiet` is for the caller: warnings are told in any case,
    through `notify`. `has_user_dispatch` asks the kernel whether recording is possible at all.
    """

    command: Sequence[str]
    trace: Path | None = None
    checksum_every: int | None = None
    env: Mapping[str, str] | None = None
    cwd: Path | None = None
    quiet: bool = False
    one_domain: bool = False
    chaos: int | None = None
    version: str = ""
    notify: Callable[[str], None] = tell
    has_user_dispatch: Callable[[], bool] = kernel.has_user_dispatch


class RecordResult(NamedTuple):
    """How the program ended (one of `status` and `signal`), and the trace that was made.

    `complete` is False where the program went on unrecorded: `problem` says why. `processes` and `events` are
    what was recorded, `size` the bytes of the trace.
    """

    trace: Path
    status: int | None
    signal: int | None
    complete: bool
    problem: str = ""
    processes: int = 0
    events: int = 0
    size: int = 0
