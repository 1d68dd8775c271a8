"""What a static search finds."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Step:
    """One function on the way from a handler to what blocks; `line` is that of the call it makes."""

    function: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class HangPoint:
    """A way from an event handler to a call that blocks.

    `handler` says what makes the first function a handler; `path` goes from it to the function that makes
    the call; `call` is what is called. `certain` is False where a step is a guess (a virtual call, a name
    that may be another's).
    """

    kind: str
    call: str
    operation: str
    fix: str
    handler: str
    path: tuple[Step, ...]
    certain: bool = True
    source: str = "built in"

    @property
    def place(self) -> Step:
        """Where the blocking call is."""
        return self.path[-1]


@dataclass(slots=True)
class Found:
    """All hang points of a search, and what could not be looked at."""

    points: list[HangPoint] = field(default_factory=list)
    handlers: int = 0
    functions: int = 0
    files: int = 0
    notes: list[str] = field(default_factory=list)
