"""`rr-py attach`: watch a running process at a library interface."""

from __future__ import annotations

import signal
import time
from collections import Counter
from typing import TYPE_CHECKING

import click

from rr_py.text import count, duration, printable

if TYPE_CHECKING:
    from recorder.library_watch import Call

EPILOG = """\
\b
Examples:
  rr-py attach 4711 --interface sqlite3               every call as it ends, until Ctrl-C
  rr-py attach 4711 --interface libc --slow 100       only calls that took 100 ms or more

\b
The process is not restarted and not stopped; when the watch ends it goes on as before. Nothing is recorded: a
process that runs already cannot be replayed from its beginning.
"""


@click.command(epilog=EPILOG)
@click.argument("pid", type=click.IntRange(min=1), metavar="PID")
@click.option(
    "--interface",
    "interfaces",
    multiple=True,
    required=True,
    metavar="NAME",
    help="The library whose functions are watched. May be repeated.",
)
@click.option(
    "--slow",
    type=click.FloatRange(min=0),
    metavar="MS",
    help="Show only calls that took so many milliseconds or more, and sum them up at the end.",
)
@click.option(
    "--seconds", type=click.FloatRange(min=0), metavar="SECONDS", help="End the watch after so long."
)
def command(pid: int, interfaces: tuple[str, ...], slow: float | None, seconds: float | None) -> None:
    """Show the calls a running process makes across a library interface, as they end."""
    from interfaces.libspec import load_all
    from recorder.library_watch import Watch

    counts: Counter[str] = Counter()
    times: Counter[str] = Counter()
    longest: Counter[str] = Counter()

    def tell(call: Call) -> None:
        counts[call.name] += 1
        times[call.name] += call.duration
        longest[call.name] = max(longest[call.name], call.duration)
        if slow is None or call.duration >= slow * 1e6:
            click.echo(f"[{call.task}] {duration(call.duration / 1e9):>9}  {printable(call.text)}")

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    watch = Watch(pid, load_all(interfaces), tell)
    end = None if seconds is None else time.monotonic() + seconds
    try:
        while watch.step() and (end is None or time.monotonic() < end):
            pass
    except KeyboardInterrupt:
        pass
    finally:
        quiet = {} if counts else watch.quiet()
        watch.close()
    for task, name in list(quiet.items())[:4]:
        click.echo(f"[{task}] waits in {name} since before the watch: no call of its ended", err=True)
    click.echo(f"{'calls':>10}  {'longest':>9}  {'together':>9}  function")
    for name, total in times.most_common(20):
        click.echo(
            f"{count(counts[name]):>10}  {duration(longest[name] / 1e9):>9}  "
            f"{duration(total / 1e9):>9}  {name}"
        )
