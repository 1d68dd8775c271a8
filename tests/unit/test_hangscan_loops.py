"""Which frame of a wait's stack is the loop's, and what a wait for another thread waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangscan.behind import Owners
from hangscan.blame import loop_of
from hangscan.knowledge import LoopRule, Pattern, builtin
from hangscan.log import DomainLog
from hangscan.model import Operation, Resource
from interfaces.abi import EventFlag, Kind
from replayer.backtrace import StackFrame
from tests.tui.conftest import Story
from tracefile import TraceReader

TRIO = "/usr/lib/python3.11/site-packages/trio/_core/_run.py"
UVLOOP = "/venv/lib/python3.11/site-packages/uvloop/loop.cpython-311-x86_64-linux-gnu.so"

GLIB = "/usr/lib/libglib-2.0.so.0"
QT = "/venv/lib/python3.11/site-packages/PySide6/Qt/lib/libQt6Core.so.6"
QT_PYTHON = "/venv/lib/python3.11/site-packages/PySide6/QtCore.abi3.so"


def native(function: str, module: str = "/usr/bin/node") -> StackFrame:
    return StackFrame(function, "", 0, module, "native")


def python(function: str, file: str) -> StackFrame:
    return StackFrame(function, file, 1, "/usr/bin/python3.11", "python")


POLL = [native("poll", "/usr/lib/libc.so.6"), native("g_main_context_iterate.constprop.0", GLIB)]


@pytest.mark.parametrize(
    ("stack", "toolkit", "function"),
    [
        (
            [native("epoll_wait", "/usr/lib/libc.so.6"), python("EpollIOManager.get_events", TRIO),
             python("run", TRIO), python("<module>", "/srv/app.py")],
            "trio", "run",
        ),
        (
            [native("epoll_pwait", "/usr/lib/libc.so.6"), native("uv__io_poll"), native("uv_run"),
             native("node::SpinEventLoopInternal"), native("main")],
            "libuv", "uv_run",
        ),
        (
            [native("epoll_pwait", "/usr/lib/libc.so.6"), native("uv__io_poll", UVLOOP),
             native("uv_run", UVLOOP), native("__pyx_f_6uvloop_4loop_4Loop___run", UVLOOP)],
            "uvloop", "__pyx_f_6uvloop_4loop_4Loop___run",
        ),
        (
            [*POLL, native("g_main_context_iteration", GLIB),
             native("QEventDispatcherGlib::processEvents", QT),
             native("QEventLoop::exec", QT), native("QCoreApplication::exec", QT),
             native("main", "/srv/app")],
            "Qt", "QCoreApplication::exec",
        ),
        (
            [*POLL, native("g_main_context_iteration", GLIB),
             native("QEventDispatcherGlib::processEvents", QT),
             native("QtCore.abi3.so+0x10", QT_PYTHON), python("pump", "/srv/app.py")],
            "Qt", "pump",
        ),
        (
            [*POLL, native("g_main_context_iteration", GLIB), native("g_application_register", GLIB),
             native("main", "/srv/app")],
            "GLib", "g_main_context_iteration",
        ),
        (
            [*POLL, native("g_main_context_iteration", GLIB), native("main", "/srv/app")],
            "GLib", "main",
        ),
        (
            [native("poll", "/usr/lib/libc.so.6"), native("xcb_wait_for_event", "/usr/lib/libxcb.so.1"),
             native("_XReadEvents", "/usr/lib/libX11.so.6"), native("XNextEvent", "/usr/lib/libX11.so.6"),
             native("next_event", "/srv/app"), native("main", "/srv/app")],
            "Xlib", "next_event",
        ),
    ],
)  # fmt: skip
def test_the_frame_that_handlers_are_called_from_is_the_loops(
    stack: list[StackFrame], toolkit: str, function: str
) -> None:
    """GIVEN an idle wait WHEN its loop is looked for THEN it is the outermost of the loop's own frames, since
    what blocks is called from there and not from where it polls."""
    told = loop_of(stack, builtin())
    assert isinstance(told, tuple)
    index, rule = told
    assert isinstance(rule, LoopRule)
    assert (rule.toolkit, stack[index].function) == (toolkit, function)


def test_a_command_that_node_waits_for_is_no_idle_wait() -> None:
    """GIVEN a wait in a loop that a synchronous call runs WHEN judged THEN it blocks, by its pattern."""
    told = loop_of(
        [native("epoll_pwait", "/usr/lib/libc.so.6"), native("uv__io_poll"), native("uv_run"),
         native("node::SyncProcessRunner::TryInitializeAndRunLoop"), native("uv__run_timers"),
         native("uv_run")],
        builtin(),
    )  # fmt: skip
    assert isinstance(told, Pattern)
    assert (told.kind, told.toolkit) == ("child", "Node.js")


def test_what_follows_the_wake_was_not_waited_for(tmp_path: Path) -> None:
    """GIVEN a thread that reads, wakes another one, and writes before that one goes on WHEN the wait is
    explained THEN it waited for the reading alone."""
    story = Story(tmp_path / "t.bin")
    story.domain(1, 100)
    story.call("futex", (0x5000, 128, 0), kind=Kind.RELEASE)
    read = story.call("read", (5, 0, 9), 9, task=101, took=800_000)
    story.call("futex", (0x5000, 129, 1), 1, task=101)
    write = story.call("fsync", (5,), task=101, took=900_000)
    wait = story.call("futex", (0x5000, 128, 0), took=5_000_000, flags=EventFlag.BLOCKED)
    story.close().close()
    with TraceReader.open(story.path) as reader:
        log = DomainLog(reader, 1)

        def operation(event: int, name: str, kind: str) -> Operation:
            row = log.events[event]
            resource = Resource(kind, address=0x5000 if kind == "lock" else 0)
            begin, end = int(row["time_in"]), int(row["time_out"])
            return Operation(1, int(row["task"]), event, name, resource, begin, end)

        owners = Owners(log, [operation(read, "read", "file"), operation(write, "fsync", "file")])
        behind = owners.behind(operation(wait, "wait", "lock"))
    assert behind is not None
    assert (behind.task, [one.name for one in behind.operations]) == (101, ["read"])
