"""The report as SARIF 2.1.0, as code-scanning services take it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hangscan.knowledge import DEFAULT_FIXES
from hangscan.model import Candidate, Report
from hangscan.reports import PROJECTION_LIMITS
from hangscan.reports.table import milliseconds, times
from replayer.backtrace import StackFrame

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    "file": "File operation on an event loop",
    "lock": "Lock wait on an event loop",
    "thread": "Wait for another thread on an event loop",
    "child": "Wait for a child process on an event loop",
    "sleep": "Sleep on an event loop",
    "socket": "Blocking socket on an event loop",
    "dns": "Name lookup on an event loop",
    "bus": "Synchronous D-Bus call on an event loop",
    "display": "Display round trip on an event loop",
    "pipe": "Blocking pipe on an event loop",
    "terminal": "Blocking terminal on an event loop",
    "filelock": "File lock wait on an event loop",
    "cpu": "Long computing on an event loop",
    "fault": "Reading of a mapped file on an event loop",
}


def text(report: Report, version: str, root: Path) -> str:
    """The SARIF log. Files below `root` are named relative to it, as services want them."""
    return json.dumps(as_document(report, version, root), indent=2)


def as_document(report: Report, version: str, root: Path) -> dict[str, Any]:
    """The SARIF log as JSON values."""
    kinds = sorted({one.resource.kind for one in report.candidates})
    results = [_result(one, kinds, report, root) for one in report.candidates]
    return log(version, root, kinds, [*report.notes, PROJECTION_LIMITS], results)


def log(
    version: str, root: Path, kinds: list[str], notes: list[str], results: list[dict[str, Any]]
) -> dict[str, Any]:
    """A SARIF log with one run of the tool."""
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "rr-py scan",
                        "semanticVersion": version,
                        "rules": [_rule(kind) for kind in kinds],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"SRCROOT": {"uri": root.absolute().as_uri() + "/"}},
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {"level": "note", "message": {"text": note}} for note in notes
                        ],
                    }
                ],
                "results": results,
            }
        ],
    }


def _rule(kind: str) -> dict[str, Any]:
    return {
        "id": f"hang/{kind}",
        "name": "SoftHang" + kind.capitalize(),
        "shortDescription": {"text": _RULES[kind]},
        "fullDescription": {"text": f"{_RULES[kind]}: nothing else is answered meanwhile."},
        "help": {"text": f"Instead: {DEFAULT_FIXES[kind]}."},
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": ["performance", "responsiveness"]},
    }


def _result(one: Candidate, kinds: list[str], report: Report, root: Path) -> dict[str, Any]:
    kind = one.resource.kind
    worst = max(one.projected_ms.items(), key=lambda item: item[1], default=("", 0.0))
    words = f"{one.operation} ({one.resource}) blocks {one.toolkit or 'a critical path'}: "
    words += f"{milliseconds(one.observed_ms)} here, {times(one.count)}"
    if worst[1] > one.observed_max_ms:
        words += f"; {milliseconds(worst[1])} under {worst[0]}"
    result: dict[str, Any] = {
        "ruleId": f"hang/{kind}",
        "ruleIndex": kinds.index(kind),
        "level": "error" if one.observed_max_ms >= report.threshold_ms else "warning",
        "message": {"text": f"{words}. Instead: {one.fix}."},
        "locations": [_place(one, root, report.command)],
        "stacks": [
            {
                "message": {"text": "where it blocks"},
                "frames": [{"location": location(frame, root)} for frame in one.stack],
            }
        ]
        if one.stack
        else [],
        "partialFingerprints": {"blamedPath/v1": fingerprint(one)},
        "properties": {
            "observed_ms": one.observed_ms,
            "projected_ms": one.projected_ms,
            "worst_ms": one.worst_ms,
            "count": one.count,
        },
    }
    return result


def fingerprint(one: Candidate) -> str:
    """What stays the same when lines move: kind and functions from the blamed frame out."""
    import hashlib

    names = [frame.function for frame in one.stack[max(one.blamed, 0) :][:6]]
    return hashlib.sha256("\0".join([one.resource.kind, *names]).encode()).hexdigest()[:32]


def _place(one: Candidate, root: Path, command: list[str]) -> dict[str, Any]:
    """The blamed frame, or the innermost one with a line: services show results in source."""
    frames = [one.blamed_frame] if one.blamed_frame is not None else []
    frames += [frame for frame in one.stack[max(one.blamed, 0) :] if frame.line]
    best = next((frame for frame in frames if frame is not None and frame.line), None)
    if best is None:
        program = command[0] if command else "program"
        best = one.blamed_frame or StackFrame(one.operation, "", 0, program, "native")
    return location(best, root)


def location(frame: StackFrame, root: Path) -> dict[str, Any]:
    """A place in source, or in a binary where the source is not known."""
    result: dict[str, Any] = {"logicalLocations": [{"name": frame.function, "kind": "function"}]}
    name = frame.file if frame.file and frame.line else frame.module
    if name and not name.startswith(("<", "[")):
        physical: dict[str, Any] = {"artifactLocation": _artifact(name, root)}
        if frame.file and frame.line:
            physical["region"] = {"startLine": frame.line}
        result["physicalLocation"] = physical
    result["message"] = {"text": frame.function}
    return result


def _artifact(name: str, root: Path) -> dict[str, str]:
    from urllib.parse import quote

    absolute = os.path.normpath(os.path.join(root, name))
    relative = os.path.relpath(absolute, root)
    if not relative.startswith(".."):
        return {"uri": quote(relative), "uriBaseId": "SRCROOT"}
    return {"uri": Path(absolute).as_uri()}
