"""`rr-py pack`: put the files a trace refers to into it, so that it replays on another machine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from interfaces.errors import ExitStatus, RrPyError
from rr_py.messages import say
from rr_py.options import trace_argument
from rr_py.text import count, size

EPILOG = """\
\b
Examples:
  rr-py pack                             the newest trace here, in place
  rr-py pack crash.bin -o crash-packed.bin

\b
Pack where the trace was recorded, before libraries or programs there are updated.
"""


class PackError(RrPyError):
    """The trace cannot be packed as it is."""


@click.command(epilog=EPILOG)
@trace_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FILE",
    help="Write the packed trace to FILE, which must not exist, and leave TRACE alone.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
def command(trace: str | None, output: str | None, quiet: bool) -> None:
    """Store all files that TRACE refers to (libraries, executables) in it.

    Without -o, the trace is replaced by the packed one once that is complete on disk.
    """
    from rr_py.traces import chosen
    from tracefile import TraceReader, pack_trace

    source = chosen(trace)
    with TraceReader.open(source) as reader:
        if reader.live:
            raise PackError(
                f"{source} is still being recorded",
                "Wait for the recorded program to end.",
                ExitStatus.TOOL_FAILED,
            )
    if output is not None:
        target = Path(output)
        packed = pack_trace(source, target)
    else:
        target = source
        with tempfile.TemporaryDirectory(prefix=".rr-py-pack-", dir=source.resolve().parent) as folder:
            made = Path(folder) / source.name
            packed = pack_trace(source, made)
            os.replace(made, source.resolve())
    if not quiet:
        what = f"{count(packed.files, 'file')} ({size(packed.file_bytes)})"
        say(f"packed {what} into {target} ({size(packed.trace_bytes)})")
