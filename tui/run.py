"""Beginning: from an address to the running application."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interfaces.errors import ExitStatus, RrPyError
from tracefile import TraceReader
from tui.model.address import Address
from tui.model.trace import TraceModel

if TYPE_CHECKING:
    from tui.typist import Typist


class NoTerminalError(RrPyError):
    """There is no terminal to draw on."""


def check_terminal() -> None:
    """Raise NoTerminalError unless input and output are a terminal."""
    missing = [
        name for name, stream in (("input", sys.stdin), ("output", sys.stdout)) if not _is_terminal(stream)
    ]
    if missing:
        raise NoTerminalError(
            f"the terminal interface needs a terminal, but standard {' and '.join(missing)} is none",
            "Use rr-py dump, ps, info, scan or diff for text.",
            ExitStatus.TOOL_FAILED,
        )


def run(address: Address) -> int:
    """Browse a trace until the user quits; the exit status. TraceError, NoTerminalError, SettingsError."""
    check_terminal()
    assert address.trace is not None
    with TraceModel.open(address.trace) as model:
        if address.other is not None:
            from tui.diff import DiffTui

            with TraceReader.open(address.other) as other:
                return run_application(DiffTui(model, other, address))
        from tui.app import RrPyTui

        return run_application(RrPyTui(model, address))


def run_application(app: Typist) -> int:
    """Run an application until the user quits; its exit status. What it fails with is raised."""
    app.run()
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0


def _is_terminal(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    try:
        return bool(isatty and isatty())
    except ValueError:
        return False
