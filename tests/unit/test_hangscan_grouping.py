"""What stands for several calls that were made at one place."""

from __future__ import annotations

from typing import cast

import pytest

from hangscan import environments, knowledge
from hangscan.grouping import Grouper
from hangscan.model import Action, Loop, Operation, Resource
from hangscan.walking import Walked
from replayer.backtrace import StackFrame

MS = 1_000_000
OWN = StackFrame("on_click", "/home/a/app.c", 7, "/home/a/app", "native")


def _call(event: int, took_ms: float, *functions: str) -> Operation:
    library = "/usr/lib/x86_64-linux-gnu/libgio-2.0.so.0"
    stack = (*(StackFrame(one, "", 0, library, "native") for one in functions), OWN)
    bus = Resource("bus", peer="/run/bus")
    return Operation(1, 1, event, "wait", bus, 0, int(took_ms * MS), wait=True, stack=stack)


@pytest.mark.parametrize("early_ms", [0.1, 3.0])
def test_the_call_whose_stack_is_known_stands_for_all(early_ms: float) -> None:
    """GIVEN waits at one place that all would end with the same timeout WHEN another one took longer here
    THEN the candidate is still that of the function that made them."""
    action = Action(1, 1, 0, 0, 100 * MS, 0, 9)
    action.operations = [
        _call(3, early_ms, "g_socket_condition_timed_wait", "g_input_stream_read"),
        _call(5, 1.0, "g_main_loop_run", "g_initable_new", "g_dbus_proxy_new_for_bus_sync"),
    ]
    loop = Loop(1, 1, 1, "app", "GLib", 1, [action])
    models = environments.load(["dead-service"])
    grouper = Grouper(loop, cast(Walked, None), knowledge.builtin(), models, {}, {}, {})
    grouper.add(action)
    (found,) = grouper.candidates()
    assert (found.operation, found.event) == ("make a D-Bus proxy and wait", 5)
    assert "g_dbus_proxy_new_for_bus" in found.fix
