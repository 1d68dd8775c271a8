"""Giving the keys to a widget at once."""

from __future__ import annotations

from textual.widget import Widget


def focus_now(widget: Widget) -> None:
    """Focus a widget before the next key comes: `Widget.focus` waits for a refresh, and keys that were typed
    meanwhile would go elsewhere."""
    widget.screen.set_focus(widget)
    if widget.screen.focused is not widget:
        widget.focus()
