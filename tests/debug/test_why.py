"""`rr-py why`: the event to blame for a wait or an error, through pipes, sockets, locks and signals."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from replayer.descriptors import NUMBERS
from tests.conftest import RunTool
from tests.debug.conftest import Record, Recorded
from tracefile import TraceReader

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


class Asker:
    """Asks `why` about a call of the recorded program."""

    def __init__(self, recording: Recorded, tool: RunTool) -> None:
        self.recording = recording
        self.tool = tool

    def __call__(self, call: str, result: int | None = None, nth: int = -1) -> list[dict[str, Any]]:
        event = self.recording.events(NUMBERS[call], result)[nth]
        done = self.tool("why", f"{self.recording.trace}:{event}", "--json")
        assert done.returncode == 0, done.stderr
        causes: list[dict[str, Any]] = json.loads(done.stdout)["causes"]
        return causes


@pytest.fixture
def why(recorded: Record, tool: RunTool) -> Asker:
    return Asker(recorded("waits.c", flags=("-w",)), tool)


def calls(causes: list[dict[str, Any]]) -> list[str]:
    return [cause["call"] or "" for cause in causes]


@pytest.mark.parametrize("size", [2, 3])
def test_the_write_that_fed_a_read(why: Asker, size: int) -> None:
    """GIVEN five bytes written by a child and read in two parts WHEN asked about either THEN that write."""
    causes = why("read", size, nth=0)
    assert 'write(4, "hello", 5) = 5' in calls(causes)[0]
    assert causes[0]["domain"] == 2
    assert calls(causes)[1].startswith("pipe2(")


def test_the_end_of_a_stream(why: Asker) -> None:
    """GIVEN a read that got nothing WHEN asked THEN the child's exit, which closed the other end."""
    assert calls(why("read", 0, nth=-1))[0] == "exit_group(3) = ?"


def test_a_closed_descriptor(why: Asker) -> None:
    """GIVEN a read of a closed descriptor WHEN asked THEN the event that closed it."""
    causes = why("read", -9)
    assert any(cause["what"] == "descriptor 3 was closed" for cause in causes)
    assert "close(3) = 0" in calls(causes)


def test_the_child_that_was_waited_for(why: Asker) -> None:
    """GIVEN a wait WHEN asked THEN the child, its status and its last event."""
    causes = why("wait4", nth=0)
    assert "exited 3" in causes[0]["what"]
    assert calls(causes)[0] == "exit_group(3) = ?"


def test_the_thread_that_held_a_lock(why: Asker) -> None:
    """GIVEN a mutex held by a thread for a while WHEN asked about the waiting THEN that thread."""
    causes = next(
        found for nth in range(6) if (found := why("futex", 0, nth=nth)) and "woke it" in found[0]["what"]
    )
    woke = causes[0]
    assert woke["call"].startswith("futex(") and "FUTEX_WAKE" in woke["call"]
    assert any(cause["what"] == f"thread {woke['task']} holds the lock at that time" for cause in causes)


def test_a_connection_between_recorded_processes(why: Asker) -> None:
    """GIVEN bytes through an abstract socket WHEN asked about accept, poll, read THEN the other process."""
    assert calls(why("accept"))[0].startswith("socket(AF_UNIX")
    assert why("accept")[0]["domain"] == 3
    assert any(call.startswith("write(") and '"net"' in call for call in calls(why("read", 3)))
    assert any("became ready" in cause["what"] for cause in why("poll"))


def test_a_path_that_was_removed(why: Asker) -> None:
    """GIVEN an open that failed with ENOENT WHEN asked THEN the unlink before it."""
    causes = why("openat", -2)
    assert any(cause["what"].startswith("it failed with ENOENT") for cause in causes)
    assert 'unlink("gone") = 0' in calls(causes)


def test_a_signal_and_its_sender(why: Asker) -> None:
    """GIVEN pause() ended by a signal WHEN asked THEN the signal and the kill of the child."""
    causes = why("pause")
    assert causes[0]["what"] == "signal SIGUSR1 interrupted it"
    assert calls(causes)[1].startswith("kill(")


def test_a_deadlock_is_followed_around(recorded: Record, tool: RunTool) -> None:
    """GIVEN two threads that wait for each other's lock WHEN asked about one THEN the circle is named."""
    deadlock = recorded("deadlock.c")
    stack = json.loads(tool("stack", deadlock.trace, "--json").stdout)
    waiting = [thread["tid"] for thread in stack["threads"] if not thread["current"]]
    with TraceReader.open(deadlock.trace) as reader:
        begins = [
            view.number
            for chunk in reader.chunks(1)
            for view in chunk.views()
            if view.kind == 2 and view.nr == NUMBERS["futex"] and view.task in waiting
        ]
    done = tool("why", f"{deadlock.trace}:{begins[-1]}")
    assert "never returned" in done.stdout
    assert "deadlock: threads " in done.stdout
    for tid in waiting:
        assert f"thread {tid} holds the lock and waits itself" in done.stdout


def test_what_is_no_call(recorded: Record, tool: RunTool) -> None:
    """GIVEN an event that is no call WHEN asked THEN an error that says what it is."""
    done = tool("why", f"{recorded('waits.c', flags=('-w',)).trace}:0")
    assert done.returncode == 125
    assert "is no call" in done.stderr
