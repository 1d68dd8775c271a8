"""Signals at the C library: delivered in replay at the call in which they came, from the log alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.library.conftest import PROGRAMS, ROOT, Build, Tool, both, need, same

SIGNALS = (PROGRAMS / "signals.c").read_text()


@pytest.mark.parametrize(
    ("case", "shown"),
    [
        ("interrupted", b"sigsuspend -1 seen 5"),
        ("restarted", b"handler 14 read a"),
        ("itself", b"code -1 word 42"),
        ("masks", b"signalfd 10"),
        ("jumps", b"fault 11"),
        ("busy", b"...."),
        ("timer", b"word 77"),
        ("children", b"all 3"),
        ("threads", b"thread got 15"),
        ("follow nested left young forked", b"children saw 8"),
    ],
)
def test_handlers(tool: Tool, build: Build, case: str, shown: bytes) -> None:
    """EINTR, restarted calls, one's own signals, masks, jumps, timers, SIGCHLD, threads; signals within
    handlers, for threads and processes that begin, end, or jump.
    """
    program = build("signals", SIGNALS, "-pthread")
    expected = both(tool, "libc", str(program), *case.split())
    assert shown in expected[0]
    assert expected[1] == 7
    same(tool, expected)


def test_loop_without_calls(tool: Tool, build: Build) -> None:
    """GIVEN a program that waits for a handler without a call THEN it goes on, and that is told."""
    program = build("signals", SIGNALS, "-pthread")
    recorded = tool("record", "-q", "-o", "t.bin", "--interface", "libc", str(program), "spin")
    assert recorded.out == b"seen 1 last 14\n"
    assert "1 signal came while the program computed" in recorded.err
    same(tool, (recorded.out, 7))


@pytest.mark.parametrize(
    ("case", "number"),
    [
        ("once", signal.SIGUSR1),
        ("abort", signal.SIGABRT),
        ("term", signal.SIGTERM),
        ("pipe", signal.SIGPIPE),
        ("segv", signal.SIGSEGV),
        ("becomes", signal.SIGPIPE),
    ],
)
def test_ended_by_a_signal(tool: Tool, build: Build, case: str, number: int) -> None:
    program = build("signals", SIGNALS, "-pthread")
    expected = both(tool, "libc", str(program), case)
    assert expected[1] == -number
    assert b"never" not in expected[0]
    same(tool, expected)


@pytest.mark.parametrize("case", ["forever", "loop"])
def test_killed_from_outside(tool: Tool, build: Build, tmp_path: Path, case: str) -> None:
    """GIVEN a program that waits, or computes, for ever WHEN it is killed THEN so is its replay."""
    program = build("signals", SIGNALS, "-pthread")
    os.mkfifo(tmp_path / "ready")
    record = ["-m", "rr_py", "record", "-q", "-o", "t.bin", "--interface", "libc"]
    command = [sys.executable, *record, str(program), case]
    recorder = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert recorder.stdout is not None
    assert recorder.stdout.readline() == b"before\n"
    assert (tmp_path / "ready").read_bytes() == b"x"
    recorder.terminate()
    assert recorder.wait(60) == -signal.SIGTERM
    recorder.stdout.close()
    same(tool, (b"before\n", -signal.SIGTERM))


def test_output_that_nobody_reads(tool: Tool, tmp_path: Path) -> None:
    """GIVEN a program without a logged call that SIGPIPE ends THEN replay writes as often, and ends."""
    record = f"{sys.executable} -m rr_py record -q -o t.bin --interface libc yes | head -n 1000"
    done = subprocess.run(
        record,
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert done.stdout == b"y\n" * 1000
    replayed = tool("replay", "t.bin")
    assert replayed.status == -signal.SIGPIPE, replayed.err
    assert replayed.out.startswith(done.stdout)


SHELL = """
trap 'echo usr1' USR1
trap 'echo alarm; exit 5' ALRM
trap 'echo bye' EXIT
kill -USR1 $$
(kill -USR1 $$; exit 3) &
wait $!
echo $?
(kill -ALRM $$) &
while :; do :; done
"""

PYTHON = """
import os, signal
def told(number, frame): print('handler', number, flush=True)
signal.signal(signal.SIGALRM, told)
signal.signal(signal.SIGUSR1, told)
os.kill(os.getpid(), signal.SIGUSR1)
signal.setitimer(signal.ITIMER_REAL, 0.02)
signal.pause()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
os.kill(os.getpid(), signal.SIGUSR2)
print(signal.sigwait([signal.SIGUSR2]))
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    os.read(os.pipe()[0], 1)
except KeyboardInterrupt:
    print('interrupted')
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.kill(os.getpid(), signal.SIGINT)
"""

PERL = """
$| = 1;
$SIG{ALRM} = sub { die "alarm\\n" };
eval { alarm 1; sleep 9; };
print "died of $@";
$SIG{CHLD} = sub { wait(); print "child ", $? >> 8, "\\n" };
if (!fork) { exit 3 }
select(undef, undef, undef, 5);
$SIG{ALRM} = sub { die "again\\n" };
eval { alarm 1; 1 while 1 };
print $@;
kill TERM => $$
"""


@pytest.mark.parametrize(
    ("command", "shown", "status"),
    [
        (("bash", "-c", SHELL), b"bye", 5),
        (("dash", "-c", SHELL), b"bye", 5),
        (("/usr/bin/python3", "-c", PYTHON), b"interrupted", -signal.SIGINT),
        (("perl", "-e", PERL), b"again", -signal.SIGTERM),
    ],
    ids=["bash", "dash", "python", "perl"],
)
def test_languages(tool: Tool, command: tuple[str, ...], shown: bytes, status: int) -> None:
    need(shutil.which(command[0]), command[0])
    expected = both(tool, "libc", *command)
    assert shown in expected[0]
    assert expected[1] == status
    same(tool, expected)
