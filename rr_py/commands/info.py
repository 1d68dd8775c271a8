"""`rr-py info`: what a trace holds, and where it stops."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from rr_py.options import trace_argument
from rr_py.text import command_line, count, duration, printable, size

if TYPE_CHECKING:
    from tracefile import TraceReader

REPORTS_SHOWN = 20

EPILOG = """\
\b
Examples:
  rr-py info
  rr-py info --json crash.bin | jq .complete
"""


@click.command(epilog=EPILOG)
@trace_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(trace: str | None, as_json: bool) -> None:
    """Say what TRACE holds: command, machine, times, processes, events, bytes, and where it stops."""
    from rr_py.traces import chosen
    from tracefile import TraceReader

    path = chosen(trace)
    with TraceReader.open(path) as reader:
        facts = gather(reader)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(
        f"{path}: {'complete' if facts['complete'] else 'not complete'}"
        + (", still being recorded" if facts["live"] else "")
    )
    for name, value in rows(facts):
        click.echo(f"{name:10}  {value}")


def gather(reader: TraceReader) -> dict[str, Any]:
    """Everything `info` tells, as JSON values; `seconds` is how long the recorded tree ran."""
    from tracefile.layout import ChunkType
    from tracefile.processes import processes

    meta = reader.meta
    found = processes(reader)
    infos = reader.domains.values()
    first = next((process for process in found if process.parent is None), None)
    begins = [info.time for info in infos if info.time]
    ends = [end.time for info in infos for end in info.ends]
    ends += [reader.last_time(number) for number, info in reader.domains.items() if info.event_count]
    stored = {
        name: total.stored
        for name, total in ((kind.name.lower(), reader.totals.get(kind)) for kind in ChunkType)
        if total is not None
    }
    files = list(reader.files.values())
    return {
        "path": str(reader.path),
        "complete": reader.complete,
        "live": reader.live,
        "stopped": reader.stopped or None,
        "command": first.command if first else meta.get("command", []),
        "cwd": first.domains[0].cwd if first else "",
        "status": first.status if first else "unknown",
        "meta": meta,
        "seconds": max(0.0, (max(ends) - min(begins)) / 1e9) if begins and ends else None,
        "processes": len(found),
        "domains": len(reader.domains),
        "events": reader.total_events,
        "bytes": reader.size,
        "bytes_by_kind": stored,
        "files": {
            "system": sum(entry.kind == "system" for entry in files),
            "stored": sum(entry.kind == "stored" for entry in files),
        },
        "reports": [
            {"pid": report.pid, "code": report.code, "text": report.text} for report in reader.reports
        ],
    }


def rows(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The facts as labelled lines."""
    meta = facts["meta"]
    if facts["stopped"]:
        yield "stops", facts["stopped"]
    yield "command", command_line(facts["command"])
    if facts["cwd"]:
        yield "folder", printable(facts["cwd"])
    yield "ended", facts["status"]
    when = meta.get("time_ns")
    if isinstance(when, int):
        began = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(when / 1e9))
        yield "recorded", began + (f", {duration(facts['seconds'])}" if facts["seconds"] is not None else "")
    machine = ", ".join(str(meta[key]) for key in ("hostname", "kernel", "cpu") if meta.get(key))
    if machine:
        yield "machine", printable(machine)
    if meta.get("version"):
        yield "by", f"rr-py {meta['version']}"
    yield "processes", count(facts["processes"])
    yield "events", count(facts["events"])
    parts = ", ".join(
        f"{name} {size(stored)}"
        for name, stored in sorted(facts["bytes_by_kind"].items(), key=lambda item: -item[1])
        if stored >= 1000
    )
    yield "size", size(facts["bytes"]) + (f" ({parts})" if parts else "")
    files = facts["files"]
    if files["system"]:
        yield (
            "files",
            f"{files['stored']} stored, {files['system']} of the system needed to replay (see pack)",
        )
    else:
        yield "files", f"{files['stored']} stored; needs none of the system"
    for report in facts["reports"][:REPORTS_SHOWN]:
        yield "report", f"process {report['pid']}: {printable(report['text'])}"
    if len(facts["reports"]) > REPORTS_SHOWN:
        yield "", f"{len(facts['reports']) - REPORTS_SHOWN} more reports: rr-py info --json"
