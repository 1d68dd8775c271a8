"""`rr-py tui`: browse a trace in the terminal."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from interfaces.errors import ExitStatus, RrPyError

EPILOG = """\
\b
Examples:
  rr-py tui                                     the newest trace here
  rr-py tui trace.bin@4711:120                  at event 120 of process 4711
  rr-py tui trace.bin@timeline/+1.5s            the timeline, 1.5 s after the start
  rr-py tui 'trace.bin@?call == read and duration > 10ms'
  rr-py tui trace.bin@hangs
  rr-py tui good.bin@diff=bad.bin               compared with another one

\b
Y in the interface copies the address of what is shown. ? shows all keys; docs/tui.md tells more.
"""


class NoTextualError(RrPyError):
    """The interface's library is not installed."""


@click.command(epilog=EPILOG)
@click.argument("address", required=False, metavar="[TRACE[@PLACE]]")
def command(address: str | None) -> int:
    """Browse TRACE: its events, timeline, processes and hangs."""
    from rr_py.traces import chosen
    from tui.model.address import parse_address

    place = parse_address(address or "")
    place = dataclasses.replace(place, trace=chosen(str(place.trace) if place.trace is not None else None))
    check_textual()
    from tui.run import run

    return run(place)


def check_textual() -> None:
    """Raise NoTextualError unless Textual is installed."""
    from importlib.util import find_spec

    if find_spec("textual") is None:
        raise NoTextualError(
            "the terminal interface needs Textual, which is not installed",
            "pip install 'rr-py[tui]'",
            ExitStatus.TOOL_FAILED,
        )


def ready() -> None:
    """Raise NoTextualError or NoTerminalError where the interface cannot be shown."""
    check_textual()
    from tui.run import check_terminal

    check_terminal()


def browse(trace: Path) -> None:
    """Browse a trace from its beginning until the user quits."""
    from tui.model.address import Address
    from tui.run import run

    run(Address(trace))


def record_and_browse(
    options: Mapping[str, str | int | bool | None],
    env: Mapping[str, str],
    interfaces: Sequence[str],
    program: Sequence[str],
    trace: str | None,
) -> int:
    """`rr-py record --tui`: record a program and browse the trace meanwhile; ends as the program did.

    `options` are those of `record` by name, `env` is the program's whole environment.
    """
    from rr_py.ending import end_like
    from tui.live import record_and_watch

    words = [word for name, value in options.items() for word in option_words(name, value)]
    words += [f"--interface={name}" for name in interfaces]
    for name, value in env.items():
        if os.environ.get(name) != value:
            words += ["--env", f"{name}={value}"]
    status = record_and_watch(words, program, Path(trace) if trace is not None else None)
    return end_like(status if status >= 0 else None, -status if status < 0 else None)


def option_words(name: str, value: str | int | bool | None) -> list[str]:
    """An option as one types it; nothing where it was not given."""
    if value is None or value is False:
        return []
    return [f"--{name}"] if value is True else [f"--{name}={value}"]
