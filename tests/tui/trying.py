"""What tests of keys share: which action each tries, and an action's key."""

from __future__ import annotations

from collections.abc import Callable

from tui.actions import ACTIONS, LIST_KEYS

TRIED: set[str] = set()
"""Ids of actions whose keys a test has pressed."""


def tries(*ids: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Say which actions a test tries."""
    TRIED.update(ids)
    return lambda test: test


def key(id: str, which: int = 0) -> str:
    """The key of an action."""
    keys = {action.id: action.keys for action in ACTIONS} | {row[0]: row[1] for row in LIST_KEYS}
    return keys[id].split(",")[which]
