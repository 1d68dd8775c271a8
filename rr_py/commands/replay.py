"""`rr-py replay`: run a recording again, and end as the recorded program ended."""

from __future__ import annotations

import click

from rr_py.ending import end_like
from rr_py.messages import say
from rr_py.options import process_option, trace_argument

EPILOG = """\
\b
Examples:
  rr-py replay                      the newest trace here
  rr-py replay trace-2.bin
  rr-py replay --verify sort.bin    compare memory with the checksums of record --checksum
  rr-py replay -p 4711              one process of the tree (see rr-py ps)

\b
Replaying has no effect on the world: no file is written, no socket opened, no process signalled.
Ends with the recorded status, or dies of the recorded signal; 124 if the replay diverged.
"""


@click.command(epilog=EPILOG)
@trace_argument
@process_option
@click.option("--verify", is_flag=True, help="Also compare writable memory where the trace has checksums.")
@click.option("-q", "--no-output", "silent", is_flag=True, help="Do not print what the program printed.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Give up a replay that makes no progress for so long (default 60).",
)
@click.option("--ignore-cpu", is_flag=True, help="Replay on a CPU that lacks features of the recorded one.")
def command(
    trace: str | None, pid: int | None, verify: bool, silent: bool, timeout: float | None, ignore_cpu: bool
) -> int:
    """Run the recording TRACE again: same instructions, same memory, same output.

    Needs no server, input file or display of the recorded run. Every call is compared with the recording;
    the first difference ends the replay and is shown with the stack.
    """
    from replayer import ReplayOptions, replay
    from rr_py.traces import chosen

    result = replay(
        ReplayOptions(
            trace=chosen(trace),
            pid=pid,
            verify=verify,
            echo=not silent,
            timeout=timeout,
            ignore_cpu=ignore_cpu,
        )
    )
    for note in result.notes:
        say(note)
    if result.message:
        say(*result.message.split("\n", 1))
    return end_like(result.status, result.signal)
