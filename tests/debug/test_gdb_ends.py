"""However gdb goes, and whatever the recording lacks: no process is left, and the answer is a clear one."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import RunTool, systems_gdb
from tests.debug.conftest import Record, StartGdb, need
from tests.debug.mi import ROOT, Gdb, alive, descendants

WAIT = 30.0


def until(true: Callable[[], object], what: str) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def wait_for_text(debugger: Gdb, text: str) -> None:
    """Until the recorded program (or a copy of it) has written something."""
    debugger._read(lambda one: text in str(one["payload"]))


def idle(debugger: Gdb) -> None:
    """It has stopped at a breakpoint, with a kept place."""
    debugger.mi("-break-insert rare")
    debugger.run("-exec-continue")
    debugger.say("checkpoint")


def searching(debugger: Gdb) -> None:
    """It goes back over seconds of computing."""
    debugger.mi("-break-insert rare")
    debugger.say("seek end")
    debugger.mi("-break-delete")
    debugger.mi("-break-watch spun")
    debugger.controller.write("-exec-continue --reverse", read_response=False)
    debugger._read(lambda one: one["message"] == "running")


def computing(debugger: Gdb) -> None:
    """It goes on through seconds of computing."""
    debugger.controller.write("-exec-continue", read_response=False)
    debugger._read(lambda one: one["message"] == "running")


def calling(debugger: Gdb) -> None:
    """A function that gdb calls does not return."""
    debugger.mi("-break-insert rare")
    debugger.run("-exec-continue")
    debugger.controller.write('-data-evaluate-expression "forever()"', read_response=False)
    wait_for_text(debugger, "forever")


def quit_it(debugger: Gdb) -> None:
    """As a user ends it."""
    debugger.controller.write("-gdb-exit", read_response=False)


def kill_gdb(debugger: Gdb) -> None:
    """gdb dies."""
    os.kill(debugger.debugger(), signal.SIGKILL)


def kill_tool(debugger: Gdb) -> None:
    """rr-py dies."""
    os.kill(debugger.pid, signal.SIGKILL)


def close_pipes(debugger: Gdb) -> None:
    """The window that gdb ran in is closed."""
    process = debugger.controller.gdb_process
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()
    os.kill(debugger.debugger(), signal.SIGHUP)


@pytest.mark.parametrize(
    ("state", "end"),
    [
        (idle, quit_it),
        (idle, kill_gdb),
        (idle, kill_tool),
        (idle, close_pipes),
        (searching, kill_gdb),
        (searching, kill_tool),
        (searching, close_pipes),
        (computing, kill_gdb),
        (computing, kill_tool),
        (calling, kill_gdb),
        (calling, kill_tool),
    ],
)
def test_nothing_is_left_behind(
    gdb: StartGdb, state: Callable[[Gdb], None], end: Callable[[Gdb], None]
) -> None:
    """GIVEN gdb in some state WHEN it or the tool ends in some way THEN no process of them is left."""
    debugger = gdb("spin.c", fresh=True)
    state(debugger)
    family = descendants(debugger.pid)
    assert any("rr_core" in command for command in family.values())
    end(debugger)

    def gone() -> bool:
        debugger.controller.gdb_process.poll()
        return not alive(family)

    until(gone, f"left behind: {family}")


def test_killed_while_it_starts(recorded: Record, gdb: StartGdb) -> None:
    """GIVEN gdb that has just been started WHEN it is killed THEN rr-py ends, and nothing is left."""
    words = ["--gdb", "--debugger", str(systems_gdb()), "--debugger-args", "-nx -q"]
    words.append(str(recorded("spin.c").trace))
    tool = subprocess.Popen(
        [sys.executable, "-m", "rr_py", "replay", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    found: dict[int, str] = {}

    def started() -> bool:
        found.update(descendants(tool.pid))
        for pid in found:
            with suppress(OSError):
                if b"extended-remote" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
                    return True
        return False

    until(started, "gdb was not started")
    assert tool.wait(WAIT) != 0
    assert tool.stdin is not None
    tool.stdin.close()
    until(lambda: not alive(found), f"left behind: {found}")


@pytest.mark.parametrize("last", ["", "half a packet", "bc", "vCont;c", "bs", "\x03"])
def test_a_connection_that_breaks(recorded: Record, last: str) -> None:
    """GIVEN a debugger on a port WHEN its connection breaks at some word THEN rr-py ends, nothing is left."""
    tool = subprocess.Popen(
        [sys.executable, "-m", "rr_py", "replay", "--port", "0", f"{recorded('spin.c').trace}:end"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert tool.stderr is not None
    match = re.search(r"port (\d+)", tool.stderr.readline())
    assert match is not None
    family = descendants(tool.pid)
    with socket.create_connection(("127.0.0.1", int(match[1]))) as connection:
        connection.sendall(b"$?#3f")
        assert connection.makefile("rb", 0).read(1) == b"+"
        if last == "half a packet":
            connection.sendall(b"$vCo")
        elif last:
            connection.sendall(b"$%s#%02x" % (last.encode(), sum(last.encode()) & 0xFF))
    assert tool.wait(WAIT) == 0
    tool.stderr.close()
    until(lambda: not alive(family), f"left behind: {family}")


def test_a_debugger_that_is_not_there(recorded: Record, tool: RunTool) -> None:
    """GIVEN a debugger, an event, or a process that does not exist WHEN asked for THEN a clear answer."""
    trace = recorded("count.c").trace
    for words, answer in (
        (("--debugger", "no-such-gdb", trace), "no-such-gdb was not found"),
        ((f"{trace}:99999",), "there is no event 99999"),
        ((f"{trace}@1",), "has no process 1"),
        ((f"{trace}@1:3",), "has no process 1"),
    ):
        done = tool("replay", "--gdb", *words)
        assert done.returncode == 125 and answer in done.stderr
        assert "Traceback" not in done.stderr


def test_a_recording_that_diverges(gdb: StartGdb) -> None:
    """GIVEN a recording that does not replay to its end WHEN run into that, or sent behind it THEN gdb says
    where and why, and everything before can be looked at."""
    if "rdrand" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this CPU has no RDRAND")
    debugger = gdb("unstable.c", flags=("-w",), fresh=True)
    last = debugger.recording.events(1)[2]
    debugger.controller.write("-exec-continue", read_response=False)
    said = debugger._read(lambda one: one["message"] == "stopped")
    text = "".join(str(one["payload"]) for one in said)
    assert f"diverged at event {last + 1} of" in text and "tell+0x" in text
    assert debugger.event() == last
    assert "tell" in debugger.say("backtrace")
    assert "was not reached" in debugger.say("seek end")
    assert debugger.event() == last
    debugger.mi("-break-insert tell")
    debugger.run("-exec-continue --reverse")
    assert (debugger.value("number"), debugger.line()) == (2, debugger.recording.line("tells"))


def test_a_recording_of_library_calls(tool: RunTool, tmp_path: Path) -> None:
    """GIVEN a recording at a library interface WHEN it is to be debugged THEN a clear answer."""
    need(find_spec("frida") and find_spec("pycparser"), "the extra 'library'")
    need(shutil.which("sqlite3"), "sqlite3")
    words = ("sqlite3", ":memory:", "select 1")
    assert tool("record", "--interface", "sqlite3", "-o", "z.bin", *words).returncode == 0
    for command in (("replay", "--gdb"), ("stack",), ("core", "-o", "core")):
        done = tool(*command, "z.bin")
        assert done.returncode == 125 and "recorded at the library interface sqlite3" in done.stderr


def test_a_recording_that_was_cut_off(recorded: Record, gdb: StartGdb, tmp_path: Path) -> None:
    """GIVEN a recorder that was killed WHEN the trace is debugged THEN from its start to where it stops."""
    program = recorded("endless.c", "1000").program
    trace = tmp_path / "cut.bin"
    recorder = subprocess.Popen(
        [sys.executable, "-m", "rr_py", "record", "-o", str(trace), str(program)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert recorder.stdout is not None
    while recorder.stdout.readline() != b"far enough\n":
        pass
    family = descendants(recorder.pid)
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    recorder.stdout.close()
    for pid in alive(family):
        os.kill(pid, signal.SIGKILL)
    recording = recorded("endless.c", "1000")
    debugger = Gdb(type(recording)(program, recording.source, trace), ":end")
    try:
        assert "getppid" in debugger.say("when")
        debugger.mi("-break-insert tick")
        debugger.run("-exec-continue --reverse")
        assert debugger.value("n") == debugger.value("count") > 1000
        debugger.mi("-break-delete")
        debugger.controller.write("-exec-continue", read_response=False)
        said = debugger._read(lambda one: one["message"] == "stopped")
        assert "the recording ends here" in "".join(str(one["payload"]) for one in said)
    finally:
        debugger.close()
