"""Commands of rr-py for gdb. Runs inside gdb; needs nothing but gdb's own module."""

import gdb  # type: ignore[import-not-found]


def _monitor(words):
    return gdb.execute("monitor " + words, to_string=True)


def _selected_thread():
    tid = int(_monitor("tid"))
    for thread in gdb.selected_inferior().threads():
        if thread.ptid[1] == tid or thread.ptid[2] == tid:
            thread.switch()


def _refresh():
    """After a jump: what gdb knows of registers, memory and threads is of another time."""
    gdb.execute("maintenance flush register-cache", to_string=True)
    gdb.execute("maintenance flush dcache", to_string=True)
    gdb.execute("info threads", to_string=True)
    _selected_thread()
    gdb.execute("frame")


class _Command(gdb.Command):
    """One command that is passed on; `jumps`: it goes to another place."""

    def __init__(self, name, help_text, words=None, jumps=False, kind=gdb.COMMAND_RUNNING):
        self.__doc__ = help_text
        super().__init__(name, kind)
        self._words = words or name
        self._jumps = jumps

    def invoke(self, argument, from_tty):
        before = _monitor("where")
        text = _monitor((self._words + " " + argument).strip())
        gdb.write(text)
        if self._jumps and _monitor("where") != before:
            _refresh()


class _PyStack(gdb.Command):
    """Show the Python stack of the selected thread: functions, files, lines. With "-l": local variables, too."""

    def __init__(self):
        super().__init__("py-stack", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        thread = gdb.selected_thread()
        if thread is None:
            raise gdb.GdbError("No thread is selected.")
        tid = thread.ptid[1] or thread.ptid[2]
        gdb.write(_monitor("py-stack %d %s" % (tid, argument)))


_Command("when", "Say which event has happened last, and what is next.", kind=gdb.COMMAND_STATUS)
_Command("seek", "seek EVENT: go right behind an event (a number, start or end), forwards or backwards.", jumps=True)
_Command("back", "Go to where one was before the last seek or restart.", jumps=True)
_Command("forward", "Undo back.", jumps=True)
_Command("checkpoint", "Keep this place of the recording; restart NUMBER comes back to it.")
_Command("restart", "restart NUMBER: go to a place that checkpoint kept.", jumps=True)
_Command("info checkpoints", "List the places that checkpoint kept.", kind=gdb.COMMAND_STATUS)
_Command("delete checkpoint", "delete checkpoint NUMBER: give a kept place up.")
_PyStack()
