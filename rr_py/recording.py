"""Recording as the command line does it: once or until it fails, a line about the trace, then the end."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from interfaces.errors import ExitStatus, RrPyError
from rr_py import __version__
from rr_py.ending import end_like
from rr_py.messages import say

if TYPE_CHECKING:
    from recorder import RecordOptions, RecordResult

    Recorder = Callable[[RecordOptions], RecordResult]


class RepeatError(RrPyError):
    """The program did not fail in all the runs it was given."""


def run(
    options: RecordOptions,
    repeat: int | None = None,
    record: Recorder | None = None,
    then: Callable[[Path], None] | None = None,
) -> int:
    """Record, say what was recorded unless `quiet`, and end as the program ended.

    With `repeat`, record until the program fails, that many times at most. `record` does it, the recorder of
    system calls by default; `then` gets the trace before the end. Raises what recording raises.
    """
    from recorder import record as record_system_calls

    once = record or record_system_calls
    result = once(options) if repeat is None else record_until_failure(options, repeat, once)
    if not options.quiet:
        say(summary(result))
    if then is not None:
        then(result.trace)
    return end_like(result.status, result.signal)


def record_words(program: tuple[str, ...], *, trace: str | None, checksum: int | None, quiet: bool) -> int:
    """`run` with what a plain command line may say."""
    return run(options_of(program, trace=trace, checksum=checksum, quiet=quiet))


def options_of(
    program: tuple[str, ...],
    *,
    trace: str | None = None,
    checksum: int | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    one_domain: bool = False,
    chaos: int | None = None,
    quiet: bool = False,
) -> RecordOptions:
    """What the words of a command line ask for."""
    from recorder import RecordOptions

    return RecordOptions(
        command=list(program),
        trace=Path(trace) if trace is not None else None,
        checksum_every=checksum,
        env=env,
        cwd=Path(cwd) if cwd is not None else None,
        quiet=quiet,
        one_domain=one_domain,
        chaos=chaos,
        version=__version__,
    )


def record_until_failure(options: RecordOptions, most: int, record: Recorder) -> RecordResult:
    """Record until the program fails, at most `most` times; delete the trace of every run that did not.

    The runs are recorded in a passing folder beside the wanted trace, whose name is taken only by the run
    that failed.
    """
    import tempfile

    from tracefile import TraceExistsError, TraceWriteError, next_trace_path

    wanted = options.trace if options.trace is not None else next_trace_path(Path())
    if os.path.lexists(wanted):
        raise TraceExistsError(str(wanted))
    try:
        passing = tempfile.TemporaryDirectory(prefix=".rr-py-", dir=wanted.parent)
    except OSError as why:
        raise TraceWriteError(str(wanted), why.errno or errno.EIO) from why
    with passing as folder:
        for run in range(1, most + 1):
            attempt = Path(folder) / f"run-{run}.bin"
            result = record(options._replace(trace=attempt))
            if result.signal is None and not result.status:
                attempt.unlink()
                continue
            place(attempt, wanted)
            if not options.quiet:
                say(f"run {run} of at most {most} failed")
            return result._replace(trace=wanted)
    raise RepeatError(
        f"{options.command[0]} did not fail in {most} runs",
        "Give it more runs with --repeat-until-fail=MAX, or add --chaos to shake its schedule.",
        ExitStatus.OK,
    )


def place(made: Path, wanted: Path) -> None:
    """Give a finished trace its name and never take a file's place, without hard links too."""
    from tracefile import TraceExistsError

    try:
        os.link(made, wanted)
    except FileExistsError as why:
        raise TraceExistsError(str(wanted)) from why
    except OSError:
        os.close(os.open(wanted, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        os.replace(made, wanted)


def summary(result: RecordResult) -> str:
    """The line after a recording: what was recorded, where, and the next command to type."""
    import shlex

    from rr_py.text import count, size

    what = f"recorded {count(result.processes, 'process', 'processes')}, {count(result.events, 'event')}"
    if not result.complete:
        what += " (not to the end)"
    path = short_path(result.trace)
    where = f"{path} ({size(result.size)})"
    return f"{what} to {where}; replay with: rr-py replay {shlex.quote(str(path))}"


def short_path(path: Path) -> Path:
    """The path as seen from this folder, where the file is in it."""
    try:
        return path.relative_to(Path.cwd())
    except (ValueError, OSError):
        return path
