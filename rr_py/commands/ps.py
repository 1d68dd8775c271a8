"""`rr-py ps`: the recorded processes as a tree."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from rr_py.options import trace_argument
from rr_py.text import command_line, count

if TYPE_CHECKING:
    from tracefile.processes import Process

EPILOG = """\
\b
Examples:
  rr-py ps
  rr-py ps --json build.bin | jq '.[] | select(.status != "exited 0")'
"""


@click.command(epilog=EPILOG)
@trace_argument
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array, one object a process.")
def command(trace: str | None, as_json: bool) -> None:
    """Show the tree of recorded processes: how each ended, how many events it has, what it ran."""
    from rr_py.traces import chosen
    from tracefile import TraceReader
    from tracefile.processes import processes

    with TraceReader.open(chosen(trace)) as reader:
        found = processes(reader)
        zero = min((process.time for process in found), default=0)
        if as_json:
            click.echo(json.dumps([as_object(process, zero) for process in found], indent=2))
            return
        rows = [("PID", "STATUS", "EVENTS", "START", "COMMAND")]
        rows += [
            (
                str(process.pid),
                process.status,
                count(process.events),
                f"{(process.time - zero) / 1e9:.3f}",
                branch(process) + shown_command(process),
            )
            for process in found
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        for pid, status, events, start, line in rows:
            left = f"{pid:>{widths[0]}}  {status:{widths[1]}}  {events:>{widths[2]}}"
            click.echo(f"{left}  {start:>{widths[3]}}  {line}")


def shown_command(process: Process) -> str:
    """The command as one would type it; in parentheses where the process only went on with its parent's."""
    text = command_line(process.command)
    return f"({text})" if process.ran_nothing else text


def branch(process: Process) -> str:
    """The lines of the tree to the left of a command."""
    if process.parent is None:
        return ""
    last = process.parent.children[-1] is process
    text = "└─ " if last else "├─ "
    above: Process | None = process.parent
    while above is not None and above.parent is not None:
        text = ("   " if above.parent.children[-1] is above else "│  ") + text
        above = above.parent
    return text


def as_object(process: Process, zero: int) -> dict[str, Any]:
    """A process for --json; `start` is in seconds since the first one began."""
    end = process.end
    return {
        "pid": process.pid,
        "parent": process.parent.pid if process.parent else None,
        "command": process.command,
        "ran_nothing": process.ran_nothing,
        "domains": [info.domain for info in process.domains],
        "shares_domain": process.shared.domain if process.shared else None,
        "events": process.events,
        "start": (process.time - zero) / 1e9,
        "status": process.status,
        "exit_code": end.code if end and end.status == "exited" else None,
        "signal": end.code if end and end.status == "signaled" else None,
    }
