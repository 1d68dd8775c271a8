"""Replaying recordings: whole, one process, or step by step in a session that can be looked into.

`replay(ReplayOptions(...))` runs a recording to its end; `Session` stops at events, on the way forward;
`Timeline` stops anywhere, in both directions. Names are imported when
they are first used, so that asking for options costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from replayer.options import ReplayEnd, ReplayOptions, ReplayResult

if TYPE_CHECKING:
    from replayer.debuggee import Stop, Triggers, Watch, Why
    from replayer.position import Position
    from replayer.replaying import replay
    from replayer.session import Ended, Paused, Session
    from replayer.timeline import Timeline

_LAZY = {
    "replay": "replayer.replaying",
    "Ended": "replayer.session",
    "Paused": "replayer.session",
    "Position": "replayer.position",
    "Session": "replayer.session",
    "Stop": "replayer.debuggee",
    "Timeline": "replayer.timeline",
    "Triggers": "replayer.debuggee",
    "Watch": "replayer.debuggee",
    "Why": "replayer.debuggee",
}

__all__ = [
    "Ended",
    "Paused",
    "Position",
    "ReplayEnd",
    "ReplayOptions",
    "ReplayResult",
    "Session",
    "Stop",
    "Timeline",
    "Triggers",
    "Watch",
    "Why",
    "replay",
]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        from importlib import import_module

        value = getattr(import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'replayer' has no attribute {name!r}")
