"""A program that hangs, ended by Ctrl-C: its replay ends there, and shows what each thread waits for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from .conftest import ROOT, Replay


def test_ctrl_c_in_a_deadlock(build: Callable[[str], Path], replay: Replay, tmp_path: Path) -> None:
    # GIVEN a recorded program whose threads wait for each other, in a process group as of a terminal
    trace = tmp_path / "t.bin"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path)}
    words = [sys.executable, "-m", "rr_py", "record", "-q", "-o", str(trace), "--", str(build("deadlock"))]
    recording = subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert recording.stdout is not None
    assert recording.stdout.readline() == "both wait\n"
    # WHEN it is interrupted
    os.killpg(recording.pid, signal.SIGINT)
    assert recording.wait(60) == -signal.SIGINT
    recording.stdout.close()
    # THEN the replay dies of the same signal, and the stacks show the three threads where they wait
    again = replay(trace)
    assert (again.returncode, again.stdout) == (-signal.SIGINT, "both wait\n")
    words = [sys.executable, "-m", "rr_py", "stack", str(trace)]
    stacks = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    assert stacks.returncode == 0, stacks.stderr
    for name in ("main", "forwards", "backwards"):
        assert name in stacks.stdout
    assert stacks.stdout.count("pthread_mutex_lock") >= 2
