"""Finds soft hangs: what blocks a GUI thread, an event loop or a request path, here or in a slower world.

`scan(path, Options(...))` reads a recording, cuts the event loops' work into actions, replays the recording
for the stacks of what blocks in them, projects it onto environment models and gives a `Report`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hangscan.model import Candidate, Report
    from hangscan.options import Options
    from hangscan.scanning import scan

_LAZY = {
    "scan": "hangscan.scanning",
    "Options": "hangscan.options",
    "Report": "hangscan.model",
    "Candidate": "hangscan.model",
}

__all__ = ["Candidate", "Options", "Report", "scan"]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        from importlib import import_module

        value = getattr(import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'hangscan' has no attribute {name!r}")
