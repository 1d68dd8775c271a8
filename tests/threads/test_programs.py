"""Every program of the folder records, prints what it prints without the recorder, and replays exactly."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import PROGRAMS, Recorded

SAME_AS_NATIVE = [
    "bad_buffers", "clone_many", "clone_raw", "domain_killed", "domain_kinds", "domain_two_maps",
    "exec_from_thread", "exit_blocked", "fork_threaded", "futex_ops", "join_detach", "kill_threads",
    "leader_first", "mutex_killed", "mutex_processes", "mutexes", "queue_full", "stop_continue",
    "threads_500", "threads_many",
]  # fmt: skip
"""Those whose output does not depend on what happens when."""

DIFFERENT = [
    "cancel", "domain_anon", "domain_late", "grab_io", "output_threads", "pending_signals", "prefork_64",
    "race_ints", "race_plain", "race_pointers", "race_queue", "signal_process", "spawn_threaded",
    "spin_kinds",
    "spin_signals", "spin_token", "sync_objects", "timers",
]  # fmt: skip

LARGE = {"spin_big": ["16"], "compute_others": []}
"""Those that use much memory or time: without checksums."""

APART = {"deadlock", "chaos_race"}
"""Those that have a test of their own."""


def test_every_program_is_in_a_list() -> None:
    listed = {*SAME_AS_NATIVE, *DIFFERENT, *LARGE, *APART}
    assert {path.stem for path in PROGRAMS.glob("*.c")} == listed


@pytest.mark.parametrize("name", SAME_AS_NATIVE)
def test_prints_what_it_prints_alone(
    name: str, build: Callable[[str], Path], same: Callable[..., Recorded], tmp_path: Path
) -> None:
    program = build(name)
    native = subprocess.run(
        [program], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    recorded = same(program)
    assert (recorded.status, recorded.out) == (native.returncode, native.stdout)
    assert recorded.out and not recorded.said


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_from_run_to_run_replays(
    name: str, build: Callable[[str], Path], same: Callable[..., Recorded]
) -> None:
    recorded = same(build(name))
    assert recorded.status == 0 and recorded.out and not recorded.said


@pytest.mark.parametrize("name", LARGE)
def test_large_ones_replay(name: str, build: Callable[[str], Path], same: Callable[..., Recorded]) -> None:
    recorded = same(build(name), *LARGE[name], options=())
    assert recorded.status == 0 and recorded.out


@pytest.mark.parametrize("name", ["race_plain", "race_queue"])
def test_recorded_runs_differ_among_themselves(
    name: str, build: Callable[[str], Path], same: Callable[..., Recorded]
) -> None:
    outputs = set[str]()
    for _ in range(40):
        outputs.add(same(build(name)).out)
        if len(outputs) > 1:
            break
    assert len(outputs) > 1


def test_one_domain(build: Callable[[str], Path], same: Callable[..., Recorded]) -> None:
    recorded = same(build("domain_late"), options=("--one-domain", "--checksum=100"))
    assert recorded.status == 0 and not recorded.said
    recorded = same(
        "/bin/sh", "-c", "(echo a; echo b) | sort -r | cat; ls / | wc -l", options=("--one-domain",)
    )
    assert recorded.status == 0 and recorded.out.startswith("b\na\n")
