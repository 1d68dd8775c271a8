"""The one form of what the tool tells the user on stderr."""

from __future__ import annotations

import sys
from contextlib import suppress


def say(message: str, remedy: str = "") -> None:
    """A message in the one form all have; a stderr that is closed is no reason to fail."""
    if sys.stderr is None:
        return
    text = f"rr-py: {message}\n"
    if remedy:
        text += "".join(f"  {line}\n" for line in remedy.splitlines())
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
