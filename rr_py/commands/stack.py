"""`rr-py stack`: the stacks of a recorded process at an event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from rr_py.messages import say

if TYPE_CHECKING:
    from replayer.backtrace import StackFrame
    from replayer.session import Paused, Session

EPILOG = """\
\b
Examples:
  rr-py stack                       where the recorded program ended
  rr-py stack app.bin@4711:1200     process 4711 at its event 1200 (see rr-py dump --numbers)
  rr-py stack app.bin:1200 --json
  rr-py stack app.bin --thread 4712
"""


@click.command(epilog=EPILOG)
@click.argument("place", required=False, metavar="[TRACE][@PID][:EVENT]")
@click.option("-t", "--thread", "tid", type=click.IntRange(min=1), metavar="TID", help="Only this thread.")
@click.option("-l", "--locals", "with_locals", is_flag=True, help="Also local variables of Python frames.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--limit", type=click.IntRange(min=1), default=256, help="Frames a thread at the most (256).")
@click.option("--ignore-cpu", is_flag=True, help="Replay on a CPU that lacks features of the recorded one.")
def command(
    place: str | None, tid: int | None, with_locals: bool, as_json: bool, limit: int, ignore_cpu: bool
) -> int:
    """Show the stacks of all threads at an event: native and Python frames, with source lines.

    The recording is replayed up to the event, without output. The thread that made it comes first.
    """
    from rr_py.places import at

    with at(place, ignore_cpu) as (session, pause):
        facts = gather(session, pause, tid, limit, with_locals)
    if not facts["threads"]:
        say(f"there is no thread {tid} at event {facts['event']}", "Without --thread all are shown.")
        return 125
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return 0
    click.echo(f"process {facts['pid']} ({facts['comm']}) at event {facts['event']}: {facts['call']}")
    for thread in facts["threads"]:
        made = ", made the event" if thread["current"] else ""
        click.echo(f"\nthread {thread['tid']}{made}:")
        for line in lines(thread["frames"]):
            click.echo(f"  {line}")
        if thread["limited"]:
            click.echo(f"  ... more frames: --limit {limit * 4}")
        if not thread["frames"]:
            click.echo("  (in the kernel: just started, or about to end)")
    return 0


def gather(
    session: Session, pause: Paused, tid: int | None, limit: int, with_locals: bool = False
) -> dict[str, Any]:
    """What `stack` tells, as JSON values."""
    from interfaces.decode import format_event
    from replayer.backtrace import StackReader
    from replayer.memory import MemoryFault

    info = session.reader.domains[session.domain]
    event = pause.last_event
    threads = sorted(pause.threads(), key=lambda thread: (not thread.stopped_here, thread.tid))
    found: list[dict[str, Any]] = []
    reader = StackReader()
    try:
        for thread in threads:
            if tid not in (None, thread.tid):
                continue
            frames: tuple[StackFrame, ...] = ()
            try:
                registers = pause.registers(thread.tid)
                frames = reader.read(
                    pause.real_pid, pause._open(), pause.mappings(), registers, thread.tid, limit
                )
            except MemoryFault:
                pass
            found.append(
                {
                    "tid": thread.tid,
                    "pid": thread.pid,
                    "current": thread.stopped_here,
                    "limited": len(frames) >= limit,
                    "frames": [as_object(frame) for frame in frames],
                }
            )
            if with_locals:
                add_locals(pause, thread.tid, found[-1]["frames"])
    finally:
        reader.close()
    return {
        "pid": info.pid,
        "comm": info.comm,
        "domain": session.domain,
        "event": pause.event - 1,
        "call": format_event(event, event.regions),
        "threads": found,
    }


def add_locals(pause: Paused, tid: int, frames: list[dict[str, Any]]) -> None:
    """Give the Python frames of a thread their local variables."""
    from replayer.pystack import Interpreter
    from replayer.pyvalues import locals_of

    memory = pause._open()
    interpreter = Interpreter.find(memory, pause.mappings())
    if interpreter is None:
        return
    python = [frame for frame in frames if frame["kind"] == "python"]
    for frame, one in zip(python, interpreter.stack(tid), strict=False):
        frame["locals"] = locals_of(memory, interpreter.layout, one)


def as_object(frame: StackFrame) -> dict[str, Any]:
    """A frame for --json; `address` is null for Python frames."""
    return {
        "kind": frame.kind,
        "function": frame.function,
        "file": frame.file or None,
        "line": frame.line or None,
        "module": frame.module,
        "address": f"{frame.pc:#x}" if frame.pc else None,
    }


def lines(frames: list[dict[str, Any]]) -> list[str]:
    """The frames as text, one line each."""
    found = []
    for index, frame in enumerate(frames):
        place = f"at {frame['file']}:{frame['line']}" if frame["file"] and frame["line"] else ""
        if not place:
            place = f"in {frame['module']}" if frame["module"] else ""
        kind = {"python": "py ", "inlined": "in "}.get(frame["kind"], "   ")
        found.append(f"#{index:<3} {kind}{frame['function']} {place}".rstrip())
        found += [f"           {name} = {value}" for name, value in frame.get("locals", {}).items()]
    return found
