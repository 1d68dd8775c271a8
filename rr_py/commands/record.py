"""`rr-py record`: run a program, record it, and end as it ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rr_py.options import OptionalValue, OptionalValueCommand
from rr_py.quick import CHECKSUM_EVERY
from rr_py.recording import options_of, run

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from rr_py.recording import Recorder

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
@click.option(
    "--tui",
    "in_tui",
    is_flag=True,
    help="Browse the recording in the terminal while it is made; "
    "with --repeat-until-fail, when a run has failed.",
)
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
    if interfaces:
        check_for_interfaces(checksum=checksum, chaos=chaos, one_domain=one_domain or None)
    then: Callable[[Path], None] | None = None
    if in_tui:
        from rr_py.commands.tui import browse, ready

        ready()
        then = browse
    if in_tui and repeat is None:
        from rr_py.commands.tui import record_and_browse

        passed_on = {"checksum": checksum, "cwd": cwd, "one-domain": one_domain, "chaos": chaos}
        return record_and_browse(passed_on, env, interfaces, program, trace)

    options = options_of(
        program,
        trace=trace,
        checksum=checksum,
        env=env,
        cwd=cwd,
        one_domain=one_domain,
        chaos=chaos,
        quiet=quiet,
    )
    return run(options, repeat, at_interfaces(interfaces) if interfaces else None, then)


def check_for_interfaces(**options: int | None) -> None:
    """Refuse options that recording at a library interface has no use for: it knows nothing of memory,
    schedules or further processes."""
    for name, value in options.items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} is for recording system calls; it cannot go with --interface")


def at_interfaces(interfaces: Sequence[str]) -> Recorder:
    """What records at library interfaces."""
    from interfaces.libspec import completed, load_all
    from recorder.library import record_library

    return lambda options: record_library(options, lambda: completed(load_all(interfaces)))
