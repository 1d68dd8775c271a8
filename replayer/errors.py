"""What can go wrong in a replay, apart from the program going another way (that is a result, not an error).

RrPyError                   (interfaces.errors)
  ReplayError               anything about replaying
    MachineError            this CPU lacks what the recorded program may use
    NothingToReplayError    no such process, domain or event in the trace, or the trace holds no program
    ContentError            a mapped file's content is not available as recorded
    CoreError               the core could not be started, or a replaying process broke down
    CopyError               a replaying process cannot be copied where it stands
    EndedError              a session was asked for something after its replay had ended
"""

from __future__ import annotations

from interfaces.errors import RrPyError


class ReplayError(RrPyError):
    """Anything that prevents a replay. `status` is TOOL_FAILED."""


class MachineError(ReplayError):
    """The recorded program may use instructions that this CPU does not have."""


class NothingToReplayError(ReplayError):
    """The trace does not hold what was asked for."""


class ContentError(ReplayError):
    """A file that the program maps is not here as it was recorded."""


class CoreError(ReplayError):
    """The core inside the replaying process failed; this is a defect of the tool or of the machine."""


class CopyError(ReplayError):
    """The replaying process cannot be copied where it stands, so there is no checkpoint there."""


class EndedError(ReplayError):
    """The replay has ended or the session was closed, so there is no process to look at."""
