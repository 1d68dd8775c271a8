"""What a static search found, as text, JSON or SARIF."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hangscan.reports import sarif
from hangscan.reports.table import printable
from hangscan.static.model import Found, HangPoint, Step
from replayer.backtrace import StackFrame

VERSION = 1


def render(found: Found, form: str, version: str, root: Path) -> str:
    """The result in the form that was asked for; HTML is given as text."""
    if form == "json":
        return json.dumps(as_document(found), indent=2)
    if form == "sarif":
        return json.dumps(as_sarif(found, version, root), indent=2)
    return "\n".join(printable(line) for line in _lines(found)) + "\n"


def _lines(found: Found) -> Iterator[str]:
    count = len(found.points)
    yield (
        f"{count or 'no'} hang point{'' if count == 1 else 's'} reachable from {found.handlers} event "
        f"handlers ({found.functions} functions in {found.files} files)"
    )
    for number, one in enumerate(found.points, 1):
        place = one.place
        where = f" at {place.file}:{place.line}" if place.line else f" in {place.file}"
        yield ""
        yield f"{number:3}. {place.function}{where} calls {one.call}"
        yield f"     {one.kind}: {one.operation}" + ("" if one.certain else " (a guess: by method name)")
        way = " > ".join(step.function for step in one.path)
        yield from textwrap.wrap(
            f"way: {way} ({one.handler})", 100, initial_indent="     ", subsequent_indent="        "
        )
        yield from textwrap.wrap(
            f"fix: {one.fix}", 100, initial_indent="     ", subsequent_indent="          "
        )
        if one.source != "built in":
            yield f"     pattern: {one.source}"
    for note in found.notes:
        yield f"note: {note}"


def as_document(found: Found) -> dict[str, Any]:
    """The result as JSON values."""
    return {
        "version": VERSION,
        "handlers": found.handlers,
        "functions": found.functions,
        "files": found.files,
        "points": [_point(one) for one in found.points],
        "notes": found.notes,
    }


def _point(one: HangPoint) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "call": one.call,
        "operation": one.operation,
        "fix": one.fix,
        "handler": one.handler,
        "certain": one.certain,
        "source": one.source,
        "path": [{"function": step.function, "file": step.file, "line": step.line} for step in one.path],
    }


def as_sarif(found: Found, version: str, root: Path) -> dict[str, Any]:
    """The result as a SARIF log, with the way to each call as a code flow."""
    kinds = sorted({one.kind for one in found.points})
    return sarif.log(
        version,
        root,
        kinds,
        found.notes,
        [
            {
                "ruleId": f"hang/{one.kind}",
                "ruleIndex": kinds.index(one.kind),
                "level": "warning" if one.certain else "note",
                "message": {
                    "text": f"{one.place.function} calls {one.call} ({one.operation}) on an event loop: "
                    f"{one.handler}. Instead: {one.fix}."
                },
                "locations": [sarif.location(_frame(one.place), root)],
                "codeFlows": [
                    {
                        "threadFlows": [
                            {
                                "locations": [
                                    {"location": sarif.location(_frame(step), root)} for step in one.path
                                ]
                            }
                        ]
                    }
                ],
            }
            for one in found.points
        ],
    )


def _frame(step: Step) -> StackFrame:
    return StackFrame(step.function, step.file, step.line, step.file, "native")
