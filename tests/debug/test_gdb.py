"""gdb on recordings, driven through MI: forwards, backwards, jumps, calls, threads, and how it ends."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from replayer.descriptors import NUMBERS
from tests.conftest import RunTool, systems_gdb
from tests.debug.conftest import RUSTC, Record, StartGdb, need
from tests.debug.mi import ROOT, pid_of
from tracefile import TraceReader


def test_breakpoints_steps_and_values(gdb: StartGdb) -> None:
    """GIVEN the start WHEN stopped in a function and stepped THEN lines and values are those of the run."""
    debugger = gdb("count.c")
    debugger.mi("-break-insert inner")
    stop = debugger.run("-exec-continue")
    assert (stop["reason"], stop["frame"]["func"]) == ("breakpoint-hit", "inner")
    assert debugger.value("i") == 0
    debugger.run("-exec-continue")
    assert debugger.value("i") == 1
    debugger.run("-exec-next")
    debugger.run("-exec-finish")
    assert debugger.line() == debugger.recording.line("loop")
    assert debugger.value("total") == 3


def test_conditional_breakpoint_both_ways(gdb: StartGdb) -> None:
    """GIVEN a condition WHEN going on and, from the end, back THEN the stop is where it holds."""
    debugger = gdb("count.c")
    debugger.mi('-break-insert -c "i == 33" inner')
    assert debugger.run("-exec-continue")["reason"] == "breakpoint-hit"
    assert (debugger.value("i"), debugger.value("total")) == (33, sum(range(33)) * 3)
    event = debugger.event()
    debugger.run("-exec-continue")
    assert debugger.run("-exec-continue --reverse")["reason"] == "breakpoint-hit"
    assert (debugger.value("i"), debugger.event()) == (33, event)


def test_watchpoint_both_ways(gdb: StartGdb) -> None:
    """GIVEN a variable written once WHEN watched from the end back and from the start on THEN that line."""
    debugger = gdb("count.c", ":end")
    debugger.mi("-break-watch wrong")
    stop = debugger.run("-exec-continue --reverse")
    assert stop["reason"] == "watchpoint-trigger"
    assert (stop["value"]["new"], stop["value"]["old"]) == ("0", "42")
    assert debugger.line() == debugger.recording.line("wrong")
    assert debugger.value("i") == 70
    assert (
        "reverse-execution history" in str(debugger.run("-exec-continue --reverse")) or debugger.event() < 10
    )
    stop = debugger.run("-exec-continue")
    assert stop["value"]["new"] == "42"


def test_reverse_step_next_finish_stepi(gdb: StartGdb) -> None:
    """GIVEN a place in a function WHEN stepped back in every way THEN the lines before, and the callee."""
    debugger = gdb("count.c")
    recording = debugger.recording
    debugger.mi(f"-break-insert count.c:{recording.line('returns')}")
    debugger.run("-exec-continue")
    debugger.run("-exec-continue")
    debugger.run("-exec-next --reverse")
    assert debugger.line() == recording.line("wrong")
    debugger.run("-exec-finish --reverse")
    assert debugger.line() == recording.line("loop")
    debugger.mi("-break-delete")
    pc = debugger.value("$pc")
    debugger.run("-exec-step-instruction")
    assert debugger.value("$pc") != pc
    debugger.run("-exec-step-instruction --reverse")
    assert debugger.value("$pc") == pc
    debugger.mi(f"-break-insert count.c:{recording.line('prints')}")
    debugger.run("-exec-continue")
    debugger.run("-exec-step --reverse")
    assert debugger.mi("-stack-info-frame")["frame"]["func"] == "inner"
    assert debugger.value("total") == sum(range(100)) * 3


def test_four_threads(gdb: StartGdb) -> None:
    """GIVEN four threads at a function WHEN going on five times and back four THEN the same threads."""
    debugger = gdb("racers.c", ":end")
    debugger.mi("-break-insert add")
    seen = []
    for _stop in range(5):
        debugger.run("-exec-continue --reverse")
        seen.append(
            (debugger.thread(), debugger.value("who"), debugger.value("n"), debugger.value("counter"))
        )
    for expected in reversed(seen[:-1]):
        debugger.run("-exec-continue")
        here = (debugger.thread(), debugger.value("who"), debugger.value("n"), debugger.value("counter"))
        assert here == expected
    names = debugger.say("info threads")
    assert "racers" in names


def test_watchpoint_of_four_threads(gdb: StartGdb) -> None:
    """GIVEN the end WHEN the counter is watched backwards THEN the last addition, its thread and value."""
    debugger = gdb("racers.c", ":end")
    debugger.mi("-break-watch counter")
    stop = debugger.run("-exec-continue --reverse")
    assert stop["value"] == {"old": "1400", "new": "1399"}
    assert debugger.line() == debugger.recording.line("adds")
    last = debugger.thread()
    stop = debugger.run("-exec-continue --reverse")
    assert stop["value"] == {"old": "1399", "new": "1398"}
    stop = debugger.run("-exec-continue")
    assert stop["value"] == {"old": "1398", "new": "1399"}
    stop = debugger.run("-exec-continue")
    assert (stop["value"]["new"], debugger.thread()) == ("1400", last)


def test_seek_back_forward_and_checkpoints(gdb: StartGdb) -> None:
    """GIVEN a place WHEN going elsewhere and back, and to a kept place THEN events and values are right."""
    debugger = gdb("count.c", fresh=True)
    debugger.mi("-break-insert inner")
    debugger.run("-exec-continue")
    debugger.run("-exec-continue")
    event = debugger.event()
    assert "Checkpoint 1" in debugger.say("checkpoint")
    assert "1 event" in debugger.say("info checkpoints")
    debugger.say("seek end")
    assert debugger.event() > event
    debugger.say("seek 50")
    assert debugger.event() == 50
    debugger.say("back")
    assert debugger.event() > event
    debugger.say("forward")
    assert debugger.event() == 50
    debugger.say("restart 1")
    assert (debugger.event(), debugger.value("i")) == (event, 1)
    debugger.run("-exec-continue")
    assert debugger.value("i") == 2
    debugger.say("delete checkpoint 1")
    assert "No checkpoints" in debugger.say("info checkpoints")
    assert "there is no place behind event" in debugger.say("seek 100000")


def test_calls_and_changes_are_thrown_away(gdb: StartGdb) -> None:
    """GIVEN a place WHEN functions are called and variables set THEN the run is not changed by it."""
    debugger = gdb("count.c")
    debugger.mi('-break-insert -c "i == 10" inner')
    debugger.run("-exec-continue")
    before = debugger.value("total")
    assert debugger.value("inner(7)") == before + 21
    assert debugger.value("total") == before
    assert debugger.value('(int)strlen(\\"hello\\")') == 5
    debugger.mi("-gdb-set var total = 5")
    assert debugger.value("total") == 5
    debugger.mi("-break-delete")
    debugger.mi("-break-insert inner")
    debugger.run("-exec-continue")
    assert (debugger.value("i"), debugger.value("total")) == (11, sum(range(11)) * 3)


def test_a_crash(gdb: StartGdb) -> None:
    """GIVEN a recorded crash WHEN run to it THEN its signal and line, and the stacks of all threads."""
    debugger = gdb("crash.c")
    stop = debugger.run("-exec-continue")
    assert (stop["reason"], stop["signal-name"]) == ("signal-received", "SIGSEGV")
    assert debugger.line() == debugger.recording.line("crashes")
    assert debugger.say("thread apply all bt").count("waits_here") == 3
    debugger.run("-exec-next-instruction --reverse")
    assert debugger.mi("-stack-info-frame")["frame"]["func"] in ("crash", "main")


def test_signals_stop_as_in_a_live_program(gdb: StartGdb) -> None:
    """GIVEN handled signals WHEN gone on and back THEN gdb is told before each, where it comes, unless it has
    said that it does not care."""
    debugger = gdb("signals.c", fresh=True)
    line = debugger.recording.line
    signals = []
    for expected in ("SIGUSR1", "SIGSEGV") * 3:
        stop = debugger.run("-exec-continue")
        assert (stop["reason"], stop["signal-name"]) == ("signal-received", expected)
        assert debugger.value("$_siginfo.si_signo") == {"SIGUSR1": 10, "SIGSEGV": 11}[expected]
        signals.append((expected, debugger.value("$pc"), debugger.event(), debugger.value("handled")))
        if expected == "SIGSEGV":
            assert debugger.line() == line("faults")
            fault = debugger.value("(long)$_siginfo._sifields._sigfault.si_addr")
            assert fault == debugger.value("(long)page + n")
    for before in reversed(signals[:-1]):
        stop = debugger.run("-exec-continue --reverse")
        here = (stop["signal-name"], debugger.value("$pc"), debugger.event(), debugger.value("handled"))
        assert here == before
    debugger.run("-exec-continue")
    pc = debugger.value("$pc")
    debugger.run("-exec-step-instruction")
    assert debugger.mi("-stack-info-frame")["frame"]["func"] == "on_segv"
    debugger.run("-exec-step-instruction --reverse")
    assert debugger.value("$pc") == pc
    debugger.say("handle SIGUSR1 SIGSEGV nostop noprint pass")
    debugger.say("handle SIGALRM stop print")
    stop = debugger.run("-exec-continue")
    assert stop["signal-name"] == "SIGALRM" and debugger.value("alarms") == 0
    assert debugger.line() == line("waits")
    stop = debugger.run("-exec-continue")
    assert stop["signal-name"] == "SIGABRT" and debugger.value("alarms") == 14
    assert debugger.value("handled") == 3 * (10 + 11)
    stop = debugger.run("-exec-continue --reverse")
    assert stop["signal-name"] == "SIGALRM" and debugger.value("alarms") == 0


def test_processes_that_share_memory(gdb: StartGdb) -> None:
    """GIVEN two processes that add to the same memory in turns WHEN breakpoints, watchpoints, steps, jumps
    and calls are used THEN both are stopped, in the recorded order and back."""
    debugger = gdb("together.c")

    def here() -> tuple[int, ...]:
        values = (debugger.value(name) for name in ("who", "n", "shared->total"))
        return (debugger.thread(), *values, debugger.event())

    debugger.mi("-break-insert add")
    seen = []
    for _stop in range(6):
        assert debugger.run("-exec-continue")["reason"] == "breakpoint-hit"
        seen.append(here())
    assert [one[1:4] for one in seen] == [(2, 1, 0), (1, 1, 1), (2, 2, 2), (1, 2, 4), (2, 3, 6), (1, 3, 9)]
    assert len({one[0] for one in seen}) == 2
    number = re.search(r"Checkpoint (\d+)", debugger.say("checkpoint"))
    assert number is not None
    assert debugger.value("twice(21)") == 42
    for expected in reversed(seen[:-1]):
        assert debugger.run("-exec-continue --reverse")["reason"] == "breakpoint-hit"
        assert here() == expected
    debugger.say(f"restart {number[1]}")
    assert here() == seen[-1]
    debugger.run("-exec-step-instruction")
    debugger.run("-exec-step-instruction --reverse")
    assert here() == seen[-1]
    debugger.mi("-break-delete")
    debugger.say("seek end")
    debugger.say("watch -location shared->total")
    for old in (42, 36, 30, 25):
        stop = debugger.run("-exec-continue --reverse")
        assert int(stop["value"]["old"]) == old
        assert debugger.line() == debugger.recording.line("adds")
    for new in (25, 30, 36, 42):
        assert int(debugger.run("-exec-continue")["value"]["new"]) == new
    debugger.say("back")
    assert here() == seen[-1]


def test_python_stack(gdb: StartGdb) -> None:
    """GIVEN a Python program in os.listdir WHEN py-stack is asked THEN functions and lines."""
    debugger = gdb("listing.py")
    event = debugger.recording.last_event(217)
    debugger.say(f"seek {event}")
    said = debugger.say("py-stack")
    assert f"inner at {debugger.recording.source}:{debugger.recording.line('lists')}" in said
    assert "secret = 'abcabcabc'" in debugger.say("py-stack -l")


@pytest.mark.parametrize("program", ["shapes.cc", "shapes.rs"])
def test_other_languages(gdb: StartGdb, program: str) -> None:
    """GIVEN a C++ or Rust program WHEN gone on, back, and watched backwards THEN lines and values."""
    if program.endswith(".rs"):
        need(RUSTC, "rustc")
    debugger = gdb(program)
    recording = debugger.recording
    debugger.mi(f"-break-insert {program}:{recording.line('adds')}")
    for _stop in range(3):
        debugger.run("-exec-continue")
    third = debugger.value("area")
    assert debugger.line() == recording.line("adds")
    debugger.run("-exec-continue")
    assert debugger.value("area") > third
    debugger.run("-exec-continue --reverse")
    assert debugger.value("area") == third
    debugger.mi("-break-delete")
    debugger.say("watch -location *sum" if program.endswith(".rs") else "watch -location sum")
    stop = debugger.run("-exec-continue --reverse")
    assert stop["reason"] == "watchpoint-trigger"
    assert debugger.line() == recording.line("adds")


def test_a_forked_child(gdb: StartGdb, recorded: Record) -> None:
    """GIVEN a child of the recorded program WHEN debugged by its pid THEN it stops at breakpoints."""
    recording = recorded("family.c")
    with TraceReader.open(recording.trace) as reader:
        child = reader.domains[2].pid
    debugger = gdb("family.c", f"@{child}")
    debugger.mi("-break-insert work")
    stop = debugger.run("-exec-continue")
    assert stop["reason"] == "breakpoint-hit" and debugger.value("who") == 1
    debugger.run("-exec-continue")
    assert debugger.value("n") == 1
    debugger.run("-exec-continue --reverse")
    assert debugger.value("n") == 0


def test_interrupting_a_long_computation(gdb: StartGdb) -> None:
    """GIVEN a loop of seconds without calls WHEN interrupted THEN it stops there, and goes on."""
    debugger = gdb("spin.c")
    debugger.mi("-break-insert spin")
    debugger.run("-exec-continue")
    debugger.mi("-exec-continue")
    os.kill(debugger.debugger(), signal.SIGINT)
    stop = debugger.stopped()
    assert stop["signal-name"] == "SIGINT"
    assert stop["frame"]["func"] == "spin"
    debugger.say("seek end")
    assert "exit_group" in debugger.say("when")


def test_calls_from_inside_a_system_call(gdb: StartGdb) -> None:
    """GIVEN a thread that has just begun to wait WHEN a function is called in it THEN it runs in a copy."""
    debugger = gdb("racers.c")
    begins = debugger.recording.blocking()
    debugger.say(f"seek {begins[-1]}")
    assert "clock_nanosleep" in debugger.say("backtrace 1")
    before = debugger.value("counter")
    debugger.say("print add(1, 2)")
    assert debugger.value("counter") == before
    assert debugger.value("(int)getpid()") == pid_of(debugger.recording)


def test_run_starts_again(gdb: StartGdb) -> None:
    """GIVEN the end WHEN `run` is typed THEN the first breakpoint is met again."""
    debugger = gdb("count.c", ":end")
    debugger.mi("-break-insert inner")
    stop = debugger.run("-exec-run")
    while stop.get("reason") != "breakpoint-hit":
        stop = debugger.run("-exec-continue")
    assert debugger.value("i") == 0


def test_how_a_process_ends(gdb: StartGdb, recorded: Record) -> None:
    """GIVEN a program that executes another one WHEN run to the end THEN gdb says so, and where to go on."""
    recording = recorded("executes.c")
    debugger = gdb("executes.c", f"@{pid_of(recording)}/1")
    debugger.controller.write("-exec-continue", read_response=False)
    said = debugger._read(lambda one: one["message"] == "stopped")
    text = "".join(str(one["payload"]) for one in said)
    assert "executes another program here" in text and f"@{pid_of(recording)}/2" in text
    debugger = gdb("executes.c")
    debugger.controller.write("-exec-continue", read_response=False)
    said = debugger._read(lambda one: one["message"] == "stopped")
    assert "exits here, with status 7" in "".join(str(one["payload"]) for one in said)
    assert "exit_group(7)" in debugger.say("when")


def test_a_program_that_has_been_removed(gdb: StartGdb, recorded: Record, tool: RunTool) -> None:
    """GIVEN a packed recording of a program that is gone WHEN debugged THEN symbols come from the trace."""
    recording = recorded("family.c", flags=("-DREMOVED",))
    assert tool("pack", recording.trace).returncode == 0
    recording.program.unlink()
    debugger = gdb("family.c", "", flags=("-DREMOVED",))
    debugger.mi("-break-insert work")
    stop = debugger.run("-exec-continue")
    assert stop["reason"] == "breakpoint-hit" and debugger.value("who") == 2
    assert "libc" in debugger.say("info sharedlibrary")


def test_threads_have_their_names(gdb: StartGdb) -> None:
    """GIVEN a thread that names itself WHEN threads are listed before and after THEN its name as it was."""
    debugger = gdb("named.c", ":end")
    assert '"worker"' in debugger.say("info threads")
    debugger.mi("-break-insert before")
    debugger.run("-exec-continue --reverse")
    assert "worker" not in debugger.say("info threads")


def test_lldb_goes_forward(recorded: Record, tool: RunTool) -> None:
    """GIVEN lldb as the debugger WHEN gone on to a breakpoint THEN it stops there with the right values."""
    need(shutil.which("lldb"), "lldb")
    recording = recorded("count.c")
    words = "--no-lldbinit --batch -o 'breakpoint set -n inner' -o continue -o 'frame variable i' -o bt"
    done = tool("replay", "--debugger", "lldb", "--debugger-args", words, recording.trace)
    assert "i = 0" in done.stdout, done.stdout + done.stderr
    assert f"count.c:{recording.line('adds') - 1}" in done.stdout or "inner(i=0)" in done.stdout


def test_output_is_stamped(gdb: StartGdb, recorded: Record, tool: RunTool) -> None:
    """GIVEN --stamp WHEN replayed, or gone on in gdb THEN each write carries its process and event."""
    recording = recorded("family.c")
    with TraceReader.open(recording.trace) as reader:
        expected = {
            f"[{event.task} {event.number}] {who} "
            for who, domain in ((2, 1), (1, 2))
            for chunk in reader.chunks(domain)
            for event in chunk.views()
            if event.nr == NUMBERS["write"]
        }
    assert len(expected) == 2
    said = tool("replay", "--stamp", recording.trace).stdout
    assert {line[: line.index("] ") + 4] for line in said.splitlines()} == expected
    debugger = gdb("family.c", "", "--stamp", fresh=True)
    debugger.controller.write("-exec-continue", read_response=False)
    text = "".join(str(one["payload"]) for one in debugger._read(lambda one: one["message"] == "stopped"))
    assert sum(stamp in text for stamp in expected) == 1


def test_waiting_on_a_port(recorded: Record) -> None:
    """GIVEN --port WHEN a debugger connects to the port that is named THEN it works, and the tool ends."""
    recording = recorded("count.c")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    tool = subprocess.Popen(
        [sys.executable, "-m", "rr_py", "replay", "--port", "0", recording.trace],
        env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert tool.stderr is not None
    match = re.search(r"port (\d+)", tool.stderr.readline())
    assert match is not None
    commands = ["set confirm off", f"target extended-remote localhost:{match[1]}", "break inner", "continue"]
    words = [str(systems_gdb()), "-nx", "-q", "-batch"]
    words += ["-iex", "set debuginfod enabled off", "-iex", "set sysroot /"]
    for command in commands:
        words += ["-ex", command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert "Breakpoint 1, inner" in done.stdout
    assert tool.wait(30) == 0
    tool.stderr.close()
