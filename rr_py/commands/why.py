"""`rr-py why`: what a call waited for, or why it failed, and which event is to blame."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from rr_py.text import duration, printable

if TYPE_CHECKING:
    from replayer.why import Cause, Explanation

EPILOG = """\
\b
Examples:
  rr-py why app.bin@4711:1200       process 4711's event 1200 (see rr-py dump --numbers)
  rr-py why app.bin:1200 --json
  rr-py why                         what the recorded program did last
"""


@click.command(epilog=EPILOG)
@click.argument("place", required=False, metavar="[TRACE][@PID][:EVENT]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--no-replay", is_flag=True, help="Only look at the log, not at memory (who holds a lock).")
def command(place: str | None, as_json: bool, no_replay: bool) -> None:
    """Say what a blocked or failed call waited for, and who made it.

    For a read the write that fed it, through pipes and sockets of recorded processes; for a lock the thread
    that held it; for a wait the child; for a descriptor the event that opened or closed it.
    """
    from replayer.locks import waits_for_lock
    from replayer.place import parse, resolve
    from replayer.why import explain
    from rr_py.traces import chosen
    from tracefile import TraceReader

    parsed = parse(place or "")
    path = chosen(parsed.trace or None)
    with TraceReader.open(path) as reader:
        found = explain(reader, resolve(reader, parsed))
    if not no_replay:
        found.causes.extend(waits_for_lock(path, found))
    if as_json:
        click.echo(json.dumps(as_object(found), indent=2))
        return
    took = "never returned" if found.seconds is None else f"took {duration(found.seconds)}"
    click.echo(f"event {found.place.event} of process {found.place.pid}, thread {found.task}: {took}")
    click.echo(f"  {printable(found.call)}")
    if not found.causes:
        click.echo("- nothing in the recording explains it: no recorded process had to do with it")
    for cause in found.causes:
        click.echo(f"- {printable(cause.what)}{where(cause)}")
        if cause.call:
            click.echo(f"    {printable(cause.call)}")


def where(cause: Cause) -> str:
    """The event a cause is about, in the form that other commands take."""
    if cause.at is None:
        return ""
    return f" (thread {cause.at.task}, @{cause.pid}/{cause.at.domain}:{cause.at.event})"


def as_object(found: Explanation) -> dict[str, Any]:
    """The explanation for --json."""
    return {
        "pid": found.place.pid,
        "domain": found.place.domain,
        "event": found.place.event,
        "task": found.task,
        "call": found.call,
        "seconds": found.seconds,
        "blocked": found.blocked,
        "causes": [
            {
                "what": cause.what,
                "pid": cause.pid or None,
                "task": cause.at.task if cause.at else None,
                "domain": cause.at.domain if cause.at else None,
                "event": cause.at.event if cause.at else None,
                "call": cause.call or None,
            }
            for cause in found.causes
        ],
    }
