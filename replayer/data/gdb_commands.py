"""Commands of rr-py for gdb. Runs inside gdb; needs nothing but gdb's own module."""

from __future__ import annotations

from typing import Any

import gdb as _gdb  # type: ignore[import-not-found, unused-ignore]

gdb: Any = _gdb
_Base: Any = gdb.Command


def _monitor(words: str) -> str:
    return str(gdb.execute("monitor " + words, to_string=True))


def _select_thread() -> None:
    """Make the thread that stopped there gdb's own choice."""
    tid = int(_monitor("tid"))
    for thread in gdb.selected_inferior().threads():
        if tid in thread.ptid[1:]:
            thread.switch()


def _refresh() -> None:
    """After a jump: what gdb knows of registers, memory and threads is of another time."""
    gdb.execute("maintenance flush register-cache", to_string=True)
    gdb.execute("maintenance flush dcache", to_string=True)
    gdb.execute("sharedlibrary", to_string=True)
    gdb.execute("info threads", to_string=True)
    _select_thread()
    _refresh_watchpoints()
    gdb.execute("frame")


def _refresh_watchpoints() -> None:
    """gdb compares with the value it has seen last, and passes over a stop where that is the same: let it
    look again. An expression that means nothing here (a variable of a function that is not running) stays."""
    for one in gdb.breakpoints():
        if one.expression and one.enabled and one.is_valid():
            try:
                gdb.parse_and_eval(one.expression)
                one.enabled = False
                one.enabled = True
            except gdb.error:
                pass


class _Command(_Base):
    """A command that rr-py carries out; `jumps`: it may go to another place."""

    def __init__(self, name: str, help_text: str, jumps: bool = False) -> None:
        self.__doc__ = help_text
        super().__init__(name, gdb.COMMAND_RUNNING)
        self._name = name
        self._jumps = jumps

    def invoke(self, argument: str, _from_tty: bool) -> None:
        before = _monitor("where")
        gdb.write(_monitor((self._name + " " + argument).strip()))
        if self._jumps and _monitor("where") != before:
            _refresh()


class _PyStack(_Base):
    """py-stack [-l]: the Python stack of the selected thread; with -l the local variables, too."""

    def __init__(self) -> None:
        super().__init__("py-stack", gdb.COMMAND_STACK)

    def invoke(self, argument: str, _from_tty: bool) -> None:
        thread = gdb.selected_thread()
        if thread is None:
            raise gdb.GdbError("No thread is selected.")
        tid = thread.ptid[1] or thread.ptid[2]
        gdb.write(_monitor(f"py-stack {tid} {argument}"))


_Command("when", "Say which event has happened last, and what is next.")
_Command("seek", "seek EVENT: go right behind an event (a number, start or end).", jumps=True)
_Command("back", "Go to where one was before the last seek or restart.", jumps=True)
_Command("forward", "Undo back.", jumps=True)
_Command("checkpoint", "Keep this place of the recording; restart NUMBER comes back to it.")
_Command("restart", "restart NUMBER: go to a place that checkpoint kept.", jumps=True)
_Command("info checkpoints", "List the places that checkpoint kept.")
_Command("delete checkpoint", "delete checkpoint NUMBER: give a kept place up.")
_PyStack()
