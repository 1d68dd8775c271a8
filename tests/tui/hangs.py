"""A finished scan as the tests need it."""

from __future__ import annotations

from benchmarks.tui_trace import FIRST_TID, START_NS
from hangscan.model import Action, Candidate, Loop, Report, Resource
from replayer.backtrace import StackFrame
from tui.model.hangs import Hangs


def fake_hangs(trace: str) -> Hangs:
    """Two candidates whose order depends on the environment."""
    stack = (
        StackFrame("fsync", "", 0, "/lib/libc.so.6", "native"),
        StackFrame("save_settings", "/src/app.c", 120, "/usr/bin/server", "native"),
        StackFrame("main", "/src/app.c", 300, "/usr/bin/server", "native"),
    )
    loop = Loop(
        1, FIRST_TID, FIRST_TID, "server", "glib", 3,
        [Action(1, FIRST_TID, n, START_NS + n * 1_000_000, START_NS + (n + 1) * 1_000_000, n, n + 1)
         for n in range(3)],
    )  # fmt: skip
    candidates = [
        Candidate(
            "openat", Resource("file", path="/var/lib/app/users.db"), 30.0, 45.0, {"nfs": 60.0}, 60.0, 2, 2,
            "server", stack, 1, "open it before", "glib", domain=1, event=8,
        ),
        Candidate(
            "fsync", Resource("file", path="/home/user/.config/app/settings.toml"), 2.0, 4.0,
            {"nfs": 900.0}, 900.0, 3, 3, "server", stack, 1, "use fdatasync in a thread", "glib",
            domain=1, event=40,
        ),
    ]  # fmt: skip
    return Hangs(Report(trace, ["server"], {"nfs": "a network file system"}, 100.0, [loop], candidates))
