"""`rr-py core`: an ELF core file of a recorded process at an event."""

from __future__ import annotations

from pathlib import Path

import click

from rr_py.messages import say

EPILOG = """\
\b
Examples:
  rr-py core -o core                where the recorded program ended or crashed
  rr-py core app.bin@4711:1200 -o core
  gdb ./app core
"""


@click.command(epilog=EPILOG)
@click.argument("place", required=False, metavar="[TRACE][@PID][:EVENT]")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("core"), metavar="FILE",
    help="Where to write it (default: core). It must not exist.",
)  # fmt: skip
@click.option("--ignore-cpu", is_flag=True, help="Replay on a CPU that lacks features of the recorded one.")
def command(place: str | None, output: Path, ignore_cpu: bool) -> None:
    """Write a core file of a recorded process at an event, as if it had crashed there.

    Holds all threads with their registers, the memory, what is mapped and the auxiliary vector. gdb, lldb,
    pystack and drgn open it.
    """
    from replayer.corefile import write_core
    from rr_py.places import at
    from rr_py.text import count, size

    with at(place, ignore_cpu) as (session, pause):
        written = write_core(session, pause, output)
        exe = session.reader.domains[session.domain].exe
        event = pause.event - 1
    left = f"; not in it, unchanged on disk: {', '.join(written.left_out)}" if written.left_out else ""
    say(
        f"wrote event {event} to {output}: {count(written.threads, 'thread')}, {size(written.size)}{left}",
        f"gdb {exe} {output}",
    )
