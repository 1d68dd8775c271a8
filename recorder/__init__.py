"""Recording: the process tree, the draining of its logs into a trace, and what the user is told meanwhile.

from recorder import RecordOptions, record
result = record(RecordOptions(command=["ls", "-la"]))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recorder.errors import RecordError
from recorder.options import RecordOptions, RecordResult

if TYPE_CHECKING:
    from recorder.recording import record

__all__ = ["RecordError", "RecordOptions", "RecordResult", "record"]


def __getattr__(name: str) -> object:
    if name == "record":
        from recorder.recording import record

        globals()[name] = record
        return record
    raise AttributeError(f"module 'recorder' has no attribute {name!r}")
