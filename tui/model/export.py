"""The rows of a view written to a file: as text, as JSON lines, or as CSV."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from interfaces.decode import Field
from interfaces.errors import ExitStatus, RrPyError
from interfaces.names.signals import errno_name
from tui.model.decode import Decoded, line_of, plain_text, result_of
from tui.model.text import clock
from tui.model.trace import TraceModel
from tui.model.view import View

FORMATS = {".txt": "text", ".log": "text", ".jsonl": "json", ".json": "json", ".csv": "csv"}
COLUMNS = ("row", "domain", "event", "time", "pid", "tid", "call", "line", "result", "error", "duration_ns")


class ExportError(RrPyError):
    """The rows cannot be written."""


def format_of(path: Path) -> str:
    """The format a file name asks for; text where it does not say."""
    return FORMATS.get(path.suffix.lower(), "text")


def export(model: TraceModel, view: View, path: Path, progress: Callable[[int], bool] | None = None) -> int:
    """Write all rows of a view to a new file; the number written.

    `progress` is told the rows so far and stops by returning False. An existing file is not overwritten, and
    a file that could not be finished is removed: ExportError.
    """
    write = {"text": _text, "json": _json, "csv": _csv}[format_of(path)]
    done = 0
    try:
        with open(path, "x", encoding="utf-8", errors="backslashreplace", newline="") as file:
            if format_of(path) == "csv":
                file.write(_row(COLUMNS))
            for row in rows_of(view):
                file.write(write(model, model.decode_once(row)))
                done += 1
                if progress is not None and done % 256 == 0 and not progress(done):
                    break
    except FileExistsError:
        raise ExportError(f"{path} exists", "Choose another name.", ExitStatus.TOOL_FAILED) from None
    except OSError as why:
        if done or path.exists():
            path.unlink(missing_ok=True)
        raise ExportError(
            f"{path}: {os.strerror(why.errno or 5)}", "Choose another place.", ExitStatus.TOOL_FAILED
        ) from why
    return done


def rows_of(view: View) -> Iterator[int]:
    """The rows of a view, in order."""
    for block, mask in view.masks():
        for place in np.flatnonzero(mask).tolist():
            yield block.first + place


def as_record(model: TraceModel, event: Decoded) -> dict[str, Any]:
    """An event as an object for JSON; times are nanoseconds, `time` since the recording's start."""
    view = event.view
    found: dict[str, Any] = {
        "row": event.row,
        "domain": view.domain,
        "event": view.number,
        "time": view.time_out - model.index.zero,
        "pid": model.index.pids[model.index.task_id(event.row)],
        "tid": view.task,
        "call": event.name,
        "line": plain_text(line_of(event, model.reader, model.label)),
        "result": view.result if event.is_call or event.is_library else None,
        "error": errno_name(event.error) if event.error else None,
        "duration_ns": event.took,
    }
    if event.is_call or event.is_library:
        found["args"] = [_field(item) for item in event.fields]
    return found


def text_line(model: TraceModel, event: Decoded) -> str:
    """An event as one line: time, thread, call, result."""
    line = plain_text(line_of(event, model.reader, model.label))
    result = plain_text(result_of(event, model.label))
    when = clock(event.view.time_out - model.index.zero)
    return f"{when:>12} [{event.view.task}] {line}" + (f" = {result}" if result else "")


def _text(model: TraceModel, event: Decoded) -> str:
    return text_line(model, event) + "\n"


def _json(model: TraceModel, event: Decoded) -> str:
    return json.dumps(as_record(model, event)) + "\n"


def _csv(model: TraceModel, event: Decoded) -> str:
    record = as_record(model, event)
    return _row([record[name] if record[name] is not None else "" for name in COLUMNS])


def _row(values: Any) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(values)
    return out.getvalue()


def _field(item: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"name": item.name, "type": item.type, "value": item.value}
    if item.children:
        found["children"] = [_field(child) for child in item.children]
    return found
