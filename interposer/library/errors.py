"""What can go wrong with programs at a library interface."""

from __future__ import annotations

from interfaces.errors import RrPyError


class EngineError(RrPyError):
    """A program could not be started or changed."""
