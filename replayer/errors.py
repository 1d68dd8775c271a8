"""What can go wrong in a replay, apart from the program going another way (that is a result, not an error).

RrPyError                   (interfaces.errors)
  ReplayError               anything about replaying
    MachineError            this CPU lacks what the recorded program may use
    NothingToReplayError    no such process, domain or event in the trace, or the trace holds no program
      LibraryTraceError     the trace was recorded at a library interface
    ContentError            a mapped file's content is not available as recorded
    CoreError               the core could not be started, or a replaying process broke down
    CopyError               a replaying process cannot be copied where it stands
    EndedError              a session was asked for something after its replay had ended
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interfaces.errors import RrPyError


class ReplayError(RrPyError):
    """Anything that prevents a replay. `status` is TOOL_FAILED."""


class MachineError(ReplayError):
    """The recorded program may use instructions that this CPU does not have."""


class NothingToReplayError(ReplayError):
    """The trace does not hold what was asked for."""


class LibraryTraceError(NothingToReplayError):
    """The trace holds library calls, and so neither memory nor stacks."""

    def __init__(self, meta: Mapping[str, Any]) -> None:
        """`meta`: the trace's."""
        import shlex

        command = shlex.join(map(str, meta.get("command") or ["PROGRAM"]))
        super().__init__(
            f"the trace was recorded at {_interfaces(meta)}: it holds no memory, registers or stacks",
            f"Record the system calls for those: rr-py record -- {command}",
        )


def _interfaces(meta: Mapping[str, Any]) -> str:
    library = meta.get("library")
    items = library.get("interfaces") if isinstance(library, dict) else None
    names = [str(item.get("name")) for item in items if isinstance(item, dict)] if items else []
    shown = [name for name in names if name not in ("pthread", "random")] or names
    if not shown:
        return "a library interface"
    return f"the library interface{'s' if len(shown) > 1 else ''} {' and '.join(shown)}"


class ContentError(ReplayError):
    """A file that the program maps is not here as it was recorded."""


class CoreError(ReplayError):
    """The core inside the replaying process failed; this is a defect of the tool or of the machine."""


class CopyError(ReplayError):
    """The replaying process cannot be copied where it stands, so there is no checkpoint there."""


class EndedError(ReplayError):
    """The replay has ended or the session was closed, so there is no process to look at."""
