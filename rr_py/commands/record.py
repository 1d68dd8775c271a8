"""`rr-py record`: run a program, record it, and end as it ends."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interfaces.errors import ExitStatus, RrPyError
from rr_py import __version__
from rr_py.ending import end_like
from rr_py.messages import say
from rr_py.options import OptionalValue, OptionalValueCommand

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from recorder import RecordOptions, RecordResult

CHECKSUM_EVERY = 1000
REPEAT_MAX = 1000

EPILOG = """\
\b
Examples:
  rr-py record ls -la                           the program's options need no --
  rr-py record -o sort.bin -- sort -n data      but may have one
  rr-py record --checksum ./app                 hash the memory now and then, for replay --verify
  rr-py record --env LANG=C --cwd /tmp ./app
  rr-py record --repeat-until-fail ./flaky      again and again, until it fails once
  rr-py record --interface sqlite3 ./app        only what crosses SQLite's functions

\b
The trace is trace.bin here (then trace-2.bin, ...), or the file of -o, which must not exist.
rr-py ends with the program's own status, or dies of its signal.
"""


class RepeatError(RrPyError):
    """The program did not fail in all the runs it was given."""


def read_environment(
    context: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> dict[str, str]:
    """This process's environment with the NAME=VALUE of --env put in."""
    env = dict(os.environ)
    for text in words:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        env[name] = value
    return env


def complete_program(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Programs on PATH for the first word, files for it and all others."""
    from click.shell_completion import CompletionItem

    found = [CompletionItem(incomplete, type="file")]
    if not context.params.get("program") and "/" not in incomplete:
        for folder in os.get_exec_path():
            try:
                with os.scandir(folder) as entries:
                    found += [
                        CompletionItem(entry.name) for entry in entries if entry.name.startswith(incomplete)
                    ]
            except OSError:
                continue
    return found


@click.command(
    cls=OptionalValueCommand,
    epilog=EPILOG,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS] [--]",
)
@click.option(
    "-o",
    "--output",
    "trace",
    type=click.Path(),
    metavar="FILE",
    help="Write the trace to FILE. Never overwrites.",
)
@click.option(
    "--checksum",
    cls=OptionalValue,
    bare=str(CHECKSUM_EVERY),
    type=click.IntRange(min=1),
    metavar="EVERY",
    help=f"Hash all writable memory after every EVERY events (default {CHECKSUM_EVERY}), "
    "for replay --verify.",
)
@click.option(
    "--env",
    multiple=True,
    metavar="NAME=VALUE",
    callback=read_environment,
    help="Set a variable in the program's environment. May be repeated.",
)
@click.option(
    "--cwd",
    type=click.Path(exists=True, file_okay=False),
    metavar="FOLDER",
    help="Run the program in FOLDER.",
)
@click.option(
    "--one-domain",
    is_flag=True,
    help="Record all processes in one order, as if they were threads of one. Slower.",
)
@click.option(
    "--chaos",
    cls=OptionalValue,
    bare="0",
    type=click.IntRange(min=0),
    metavar="SEED",
    help="Hand over between threads at random places, to bring out races. "
    "The same SEED gives the same choices; without one each run has its own.",
)
@click.option(
    "--repeat-until-fail",
    "repeat",
    cls=OptionalValue,
    bare=str(REPEAT_MAX),
    type=click.IntRange(min=1),
    metavar="MAX",
    help=f"Record again until the program fails (at most MAX times, default {REPEAT_MAX}); "
    "keep only the trace of the run that failed.",
)
@click.option("--tui", "in_tui", is_flag=True, help="Browse the recording in the terminal while it is made.")
@click.option(
    "--interface",
    "interfaces",
    multiple=True,
    metavar="NAME",
    help="Record calls of this library instead of system calls: a name (see rr-py interface list) or a file. "
    "May be repeated.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing about the recording when it is done.")
@click.argument(
    "program",
    nargs=-1,
    type=click.UNPROCESSED,
    required=True,
    metavar="PROGRAM [ARGS]...",
    shell_complete=complete_program,
)
def command(
    trace: str | None,
    checksum: int | None,
    env: dict[str, str],
    cwd: str | None,
    one_domain: bool,
    chaos: int | None,
    repeat: int | None,
    in_tui: bool,
    interfaces: tuple[str, ...],
    quiet: bool,
    program: tuple[str, ...],
) -> int:
    """Run PROGRAM and record everything it sees of its environment.

    The program and all processes it starts are recorded; its terminal, its signals and its exit status stay
    its own.
    """
    if in_tui and interfaces:
        raise click.UsageError("--tui is for recording system calls; it cannot go with --interface")
    if in_tui:
        from rr_py.commands.tui import record_and_browse

        passed_on = {"checksum": checksum, "cwd": cwd, "one-domain": one_domain, "chaos": chaos}
        return record_and_browse(passed_on, env, repeat is not None, program, trace)

    from recorder import RecordOptions

    options = RecordOptions(
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
    if interfaces:
        result = record_at(options, interfaces, repeat)
    elif repeat is not None:
        result = record_until_failure(options, repeat)
    else:
        from recorder import record

        result = record(options)
    if not quiet:
        say(summary(result))
    return end_like(result.status, result.signal)


def record_at(options: RecordOptions, interfaces: Sequence[str], repeat: int | None) -> RecordResult:
    """Record at library interfaces, which knows nothing of memory, schedules or further processes."""
    from interfaces.libspec import load_all
    from recorder.library import record_library

    for name, value in (
        ("--checksum", options.checksum_every),
        ("--chaos", options.chaos),
        ("--one-domain", options.one_domain or None),
        ("--repeat-until-fail", repeat),
    ):
        if value is not None:
            raise click.UsageError(f"{name} is for recording system calls; it cannot go with --interface")
    names = [*interfaces] if "pthread" in interfaces else [*interfaces, "pthread"]
    return record_library(options, lambda: load_all(names))


def record_until_failure(options: RecordOptions, most: int) -> RecordResult:
    """Record until the program fails, at most `most` times; delete the trace of every run that did not.

    The runs are recorded in a passing folder beside the wanted trace, whose name is taken only by the run
    that failed.
    """
    import tempfile

    from recorder import record
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
