"""The report as JSON; the schema is in docs/hang-scan.md and has a version."""

from __future__ import annotations

import json
from typing import Any

from hangscan.model import Candidate, Loop, Report
from hangscan.reports import PROJECTION_LIMITS
from replayer.backtrace import StackFrame

VERSION = 1


def as_document(report: Report) -> dict[str, Any]:
    """The whole report as JSON values; times in milliseconds."""
    return {
        "version": VERSION,
        "trace": report.trace,
        "command": report.command,
        "threshold_ms": report.threshold_ms,
        "environments": report.environments,
        "loops": [_loop(loop) for loop in report.loops],
        "candidates": [_candidate(candidate) for candidate in report.candidates],
        "below_threshold": report.below,
        "suppressed": report.suppressed,
        "notes": report.notes,
        "projection": PROJECTION_LIMITS,
    }


def text(report: Report) -> str:
    """The report as the text of one JSON object."""
    return json.dumps(as_document(report), indent=2)


def _loop(loop: Loop) -> dict[str, Any]:
    longest = max((action.observed_ms for action in loop.actions), default=0.0)
    return {
        "thread": loop.name,
        "pid": loop.pid,
        "tid": loop.task,
        "toolkit": loop.toolkit,
        "waits": loop.waits,
        "actions": len(loop.actions),
        "longest_action_ms": round(longest, 3),
    }


def _candidate(one: Candidate) -> dict[str, Any]:
    blamed = one.blamed_frame
    return {
        "operation": one.operation,
        "resource": one.resource.as_json() | one.detail,
        "observed_ms": one.observed_ms,
        "observed_max_ms": one.observed_max_ms,
        "projected_ms": one.projected_ms,
        "worst_ms": one.worst_ms,
        "count": one.count,
        "calls": one.calls,
        "exact": one.exact,
        "thread": one.thread,
        "toolkit": one.toolkit,
        "blamed": frame_document(blamed) if blamed is not None else None,
        "stack": [frame_document(frame) for frame in one.stack],
        "operations": list(one.operations),
        "paths": list(one.paths),
        "pattern": one.pattern,
        "fix": one.fix,
        "domain": one.domain,
        "event": one.event,
    }


def frame_document(frame: StackFrame) -> dict[str, Any]:
    """One frame."""
    return {
        "function": frame.function,
        "file": frame.file,
        "line": frame.line,
        "module": frame.module,
        "kind": frame.kind,
    }
