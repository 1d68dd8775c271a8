"""`rr-py replay`: run a recording again, and end as the recorded program ended."""

from __future__ import annotations

import click

from rr_py.options import process_option
from rr_py.replaying import run

EPILOG = """\
\b
Examples:
  rr-py replay                      the newest trace here
  rr-py replay trace-2.bin
  rr-py replay --verify sort.bin    compare memory with the checksums of record --checksum
  rr-py replay -p 4711              one process of the tree (see rr-py ps)
  rr-py replay --gdb                gdb on it, forwards and backwards
  rr-py replay --gdb app.bin@4711:1200   process 4711, from its event 1200 on

\b
Replaying has no effect on the world: no file is written, no socket opened, no process signalled.
Ends with the recorded status, or dies of the recorded signal; 124 if the replay diverged.
"""


@click.command(epilog=EPILOG)
@click.argument("trace", required=False, type=click.Path(), metavar="[TRACE[@PID][:EVENT]]")
@process_option
@click.option("--gdb", "gdb", is_flag=True, help="Start gdb on the replay; it can go backwards, too.")
@click.option("--debugger", metavar="PATH", help="Another gdb, or lldb (forwards only), instead of gdb.")
@click.option("--debugger-args", metavar="WORDS", default="", help="More arguments for the debugger.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="Wait for a debugger on this port.")
@click.option("--verify", is_flag=True, help="Also compare writable memory where the trace has checksums.")
@click.option("-q", "--no-output", "silent", is_flag=True, help="Do not print what the program printed.")
@click.option("--stamp", is_flag=True, help="Mark each write of the program with its place: [PID EVENT].")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Give up a replay that makes no progress for so long (default 60).",
)
@click.option("--ignore-cpu", is_flag=True, help="Replay on a CPU that lacks features of the recorded one.")
def command(
    trace: str | None,
    pid: int | None,
    gdb: bool,
    debugger: str | None,
    debugger_args: str,
    port: int | None,
    verify: bool,
    silent: bool,
    stamp: bool,
    timeout: float | None,
    ignore_cpu: bool,
) -> int:
    """Run the recording TRACE again: same instructions, same memory, same output.

    Needs no server, input file or display of the recorded run. Every call is compared with the recording;
    the first difference ends the replay and is shown with the stack.
    """
    if gdb or debugger is not None or port is not None:
        from rr_py.debugging import debug_trace

        return debug_trace(
            trace,
            pid,
            debugger=debugger or "gdb",
            arguments=debugger_args,
            port=port,
            silent=silent,
            stamp=stamp,
            ignore_cpu=ignore_cpu,
        )
    return run(
        trace,
        pid=pid,
        verify=verify,
        silent=silent,
        stamp=stamp,
        timeout=timeout,
        ignore_cpu=ignore_cpu,
    )
