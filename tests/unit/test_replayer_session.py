"""Sessions and replays of real recordings: stopping, looking, ending, and leaving nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from interfaces import abi
from interfaces.errors import ExitStatus
from replayer import Ended, Paused, ReplayEnd, ReplayOptions, Session, replay
from replayer.errors import EndedError, NothingToReplayError
from replayer.memory import MemoryFault
from replayer.symbols import Module, open_path
from tracefile import DomainStart, TraceReader, TraceWriter

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

COUNTER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>
volatile long counter;
__attribute__((noinline)) static void leaf(void) {
  char line[32];
  counter++;
  int size = snprintf(line, sizeof line, "count %ld\n", counter);
  write(1, line, size);
}
__attribute__((noinline)) static void middle(void) { leaf(); counter += 0; }
int main(void) {
  for (int i = 0; i < 5; i++) middle();
  if (!fork()) {
    counter = 100;
    middle();
    _exit(7);
  }
  wait(NULL);
  middle();
  return 5;
}
"""

THREADS = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_barrier_t barrier;
__attribute__((noinline)) static void waits_here(void) { pthread_barrier_wait(&barrier); }
static void *other(void *unused) { waits_here(); return unused; }
int main(void) {
  pthread_t threads[3];
  pthread_barrier_init(&barrier, NULL, 4);
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, other, NULL);
  usleep(50000);
  write(1, "all\n", 4);
  waits_here();
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  return 0;
}
"""

UNSTABLE = r"""
#include <unistd.h>
__attribute__((noinline)) static void tell(unsigned long value) {
  char text[16];
  for (int i = 0; i < 15; i++) text[i] = 'a' + (value >> (4 * i) & 15);
  text[15] = '\n';
  write(1, text, sizeof text);
}
int main(void) {
  unsigned long value;
  __asm__ volatile("1: rdrand %0\n jnc 1b" : "=r"(value));
  tell(value);
  return 0;
}
"""

Build = Callable[..., Path]


@pytest.fixture
def recorded(tmp_path: Path) -> Build:
    """Compile and record a C program; the trace's path."""

    def build(source: str, *flags: str, status: int = 0) -> Path:
        (tmp_path / "program.c").write_text(source)
        program = tmp_path / "program"
        subprocess.run(["gcc", "-O1", "-g", "-w", "-o", program, tmp_path / "program.c", *flags], check=True)
        trace = tmp_path / "trace.bin"
        done = tool("record", "-q", "-o", str(trace), "--", str(program))
        assert done.returncode == status, done.stderr
        return trace

    return build


def tool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rr_py", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Whatever a test does, no process of ours that replays is left when it is done."""
    yield
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def writes_of(trace: Path) -> list[int]:
    """The numbers of the first domain's events that wrote to stdout."""
    with TraceReader.open(trace) as reader:
        return [
            view.number
            for chunk in reader.chunks(1)
            for view in chunk.views()
            if view.kind == abi.Kind.SYSCALL and view.flags & abi.EventFlag.ECHO_OUT
        ]


def test_session_stops_at_events_and_sees_memory_and_stack(recorded: Build) -> None:
    """GIVEN a recording WHEN run to each write THEN its counter, registers and stack are those of that
    moment."""
    trace = recorded(COUNTER, status=5)
    writes = writes_of(trace)
    assert len(writes) == 6
    with Session.open(trace) as session:
        for index, number in enumerate(writes, 1):
            pause = session.run_to(number + 1)
            assert isinstance(pause, Paused)
            assert (pause.event, pause.last_event.number) == (number + 1, number)
            names = [frame.symbol.name for frame in pause.backtrace() if frame.symbol]
            assert names[names.index("leaf") :][:3] == ["leaf", "middle", "main"]
            image = [one for one in pause.mappings() if one.path.endswith("/program")]
            program = next(
                frame for frame in pause.backtrace() if frame.symbol and frame.symbol.name == "main"
            )
            assert program.module == image[0].path
            address = address_of(pause, "counter")
            assert int.from_bytes(pause.read(address, 8), "little") == index
            registers = pause.registers()
            assert (registers.rax, registers.rdi) == (pause.last_event.result, 1)
            assert pause.read(registers.rsi, registers.rdx) == f"count {index}\n".encode()
            assert [thread.stopped_here for thread in pause.threads()] == [True]
            with pytest.raises(MemoryFault):
                pause.read(8, 8)
        ended = session.run()
        assert (ended.end, ended.events) == (ReplayEnd.FINISHED, session.reader.event_count(1))


def address_of(pause: Paused, name: str) -> int:
    """Where a variable of the program lies (its symbol is read with nm, the bias from a mapping)."""
    image = [one for one in pause.mappings() if one.path.endswith("/program")]
    listing = subprocess.run(["nm", image[0].path], capture_output=True, text=True, check=True).stdout
    value = next(int(line.split()[0], 16) for line in listing.splitlines() if line.endswith(f" {name}"))

    class Here:
        def read(self, address: int, size: int) -> bytes:
            return pause.read(address, size)

    return value + Module(Here(), image[0].path, image, open_path).bias


def test_session_on_a_forked_child(recorded: Build) -> None:
    """GIVEN a child by fork WHEN a session is opened on its domain THEN it stops there, its parent only led
    to it."""
    trace = recorded(COUNTER, status=5)
    with Session.open(trace, 2) as session:
        total = session.reader.event_count(2)
        number = next(
            view.number
            for chunk in session.reader.chunks(2)
            for view in chunk.views()
            if view.nr == 1 and view.flags & 2
        )
        pause = session.run_to(number + 1)
        assert isinstance(pause, Paused)
        assert int.from_bytes(pause.read(address_of(pause, "counter"), 8), "little") == 101
        assert pause.threads()[0].pid == session.reader.domains[2].pid
        assert session.run() == Ended(ReplayEnd.FINISHED, total)


def test_threads_have_stacks_of_their_own(recorded: Build) -> None:
    """GIVEN three threads at a barrier WHEN the main one writes THEN all four are there with their stacks."""
    trace = recorded(THREADS, "-pthread")
    with Session.open(trace) as session:
        pause = session.run_to(writes_of(trace)[0] + 1)
        assert isinstance(pause, Paused)
        threads = pause.threads()
        assert len(threads) == 4
        assert sum(thread.stopped_here for thread in threads) == 1
        for thread in threads:
            names = [frame.symbol.name for frame in pause.backtrace(thread.tid) if frame.symbol]
            assert ("main" if thread.stopped_here else "waits_here") in names
        with pytest.raises(NothingToReplayError, match="no thread 1 "):
            pause.registers(1)


def test_a_pause_is_over_when_the_session_goes_on(recorded: Build) -> None:
    """GIVEN a pause WHEN the session has gone on, or is closed THEN using it is an error, not another
    moment's data."""
    trace = recorded(COUNTER, status=5)
    writes = writes_of(trace)
    session = Session.open(trace)
    first = session.run_to(writes[0])
    second = session.run_to(writes[1])
    assert isinstance(first, Paused)
    assert isinstance(second, Paused)
    with pytest.raises(EndedError):
        first.registers()
    for event in (writes[1], writes[0], 10**9, 0):
        with pytest.raises(NothingToReplayError, match=f"event {event} "):
            session.run_to(event)
    session.close()
    session.close()
    with pytest.raises(EndedError):
        second.threads()
    with pytest.raises(EndedError):
        session.run()


def test_divergence_names_event_call_and_stack(recorded: Build, capfd: pytest.CaptureFixture[str]) -> None:
    """GIVEN a program with an input that cannot be recorded WHEN replayed THEN a report with all that
    differs, 124."""
    if "rdrand" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this CPU has no RDRAND")
    trace = recorded(UNSTABLE)
    result = replay(ReplayOptions(trace=trace))
    assert (result.end, result.status) == (ReplayEnd.DIVERGED, ExitStatus.DIVERGED)
    report = result.divergence
    assert report is not None
    assert (report.reason, report.domain, report.event) == (abi.Divergence.INPUT, 1, writes_of(trace)[0])
    names = [frame.symbol.name for frame in report.frames if frame.symbol]
    assert names[names.index("tell") :][:2] == ["tell", "main"]
    assert "expected: write(1, " in result.message
    assert "found:    write(1, " in result.message
    assert "argument 2, byte " in result.message  # which one: chance may agree on the first
    assert f"event {report.event} of" in result.message
    assert capfd.readouterr().out == ""


def test_whole_tree_and_single_process(recorded: Build, capfd: pytest.CaptureFixture[str]) -> None:
    """GIVEN a parent and a child WHEN replayed whole, silent, or one of them THEN output and status are
    theirs."""
    trace = recorded(COUNTER, status=5)
    with TraceReader.open(trace) as reader:
        parent, child = reader.domains[1].pid, reader.domains[2].pid
    result = replay(ReplayOptions(trace=trace))
    assert (result.end, result.status, result.processes) == (ReplayEnd.FINISHED, 5, 2)
    assert capfd.readouterr().out.splitlines() == [f"count {n}" for n in (1, 2, 3, 4, 5, 101, 6)]
    assert replay(ReplayOptions(trace=trace, pid=child)).status == 7
    assert capfd.readouterr().out == "count 101\n"
    assert replay(ReplayOptions(trace=trace, pid=parent)).status == 5
    assert capfd.readouterr().out.splitlines() == [f"count {n}" for n in (1, 2, 3, 4, 5, 6)]
    assert replay(ReplayOptions(trace=trace, echo=False)).status == 5
    assert capfd.readouterr().out == ""


def shortened(trace: Path, target: Path, events: int) -> Path:
    """A copy whose log stops after so many events, as if the recorder had been killed."""
    with TraceReader.open(trace) as reader:
        writer = TraceWriter.create(target, reader.meta)
        for digest in {entry.blob for entry in reader.files.values() if entry.blob}:
            writer.add_blob(digest, reader.blob(digest))
        for entry in reader.files.values():
            writer.add_file(entry)
        start: DomainStart = reader.domains[1].start
        writer.add_domain(start)
        for chunk in reader.chunks(1):
            count = min(len(chunk), events - chunk.first_event)
            if count > 0:
                raw = np.ascontiguousarray(chunk.events[:count]).tobytes()
                writer.add_events(1, chunk.first_event, raw, chunk.payload)
        writer.flush()
        writer.abandon()
    return target


def test_incomplete_trace_replays_to_where_it_stops(
    recorded: Build, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """GIVEN a log that stops WHEN replayed THEN what was recorded happens, and a note says where it stops;
    status 0."""
    trace = recorded(COUNTER, status=5)
    stop = writes_of(trace)[2] + 1
    result = replay(ReplayOptions(trace=shortened(trace, tmp_path / "short.bin", stop)))
    assert (result.end, result.status, result.events) == (ReplayEnd.INCOMPLETE, 0, stop)
    assert capfd.readouterr().out.splitlines() == ["count 1", "count 2", "count 3"]
    assert len(result.notes) == 1
    assert f"after event {stop}" in result.notes[0]
    assert "the recording stops here" in result.notes[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_ended_tool_leaves_no_process_behind(recorded: Build, number: signal.Signals) -> None:
    """GIVEN a replay that is computing WHEN the tool is interrupted, terminated or killed THEN its
    processes are gone."""
    trace = recorded(
        r"""
        #include <unistd.h>
        int main(void) {
          volatile unsigned long n = 0;
          int child = fork();
          if (child) write(1, "go\n", 3);
          while (n < 1500000000ul) n++;
          return 0;
        }
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "rr_py", "replay", str(trace)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"go\n"
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    handles = [os.pidfd_open(int(pid)) for pid in children]
    assert handles
    process.send_signal(number)
    _output, errors = process.communicate()
    assert (process.returncode, errors) == (-number, b"")
    for handle in handles:
        with pytest.raises(ProcessLookupError):
            while True:
                signal.pidfd_send_signal(handle, 0)
        os.close(handle)
