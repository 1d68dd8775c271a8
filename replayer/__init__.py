"""Replaying recordings: whole, one process, or step by step in a session that can be looked into.

`replay(ReplayOptions(...))` runs a recording to its end; `Session` stops at events. Names are imported when
they are first used, so that asking for options costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from replayer.options import ReplayEnd, ReplayOptions, ReplayResult

if TYPE_CHECKING:
    from replayer.replaying import replay
    from replayer.session import Ended, Paused, Session

_LAZY = {
    "replay": "replayer.replaying",
    "Ended": "replayer.session",
    "Paused": "replayer.session",
    "Session": "replayer.session",
}

__all__ = ["Ended", "Paused", "ReplayEnd", "ReplayOptions", "ReplayResult", "Session", "replay"]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        from importlib import import_module

        value = getattr(import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'replayer' has no attribute {name!r}")
