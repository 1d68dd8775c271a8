"""doctor: each check finds what is there, and what a container's filter takes away."""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from rr_py import checks

ROOT = Path(__file__).resolve().parents[2]
PRCTL, PTRACE, PERSONALITY, MEMFD_CREATE = 157, 101, 135, 319
CheckNames = dict[str, dict[str, str]]


@pytest.fixture
def checked_under(compile_c: Callable[..., Path]) -> Callable[..., CheckNames]:
    """The checks (without the trial) as a process finds them that some calls are refused to."""
    refuse = compile_c("refuse.c")
    script = (
        "import dataclasses, json, pathlib; from rr_py import checks\n"
        "found = [checks.check_user_dispatch(), checks.check_time_stamp_counter(), checks.check_ptrace(),\n"
        "         checks.check_personality(), checks.check_container(), checks.check_proc(),\n"
        "         checks.check_log_memory(1 << 20), checks.check_disk(pathlib.Path.cwd())]\n"
        "print(json.dumps({check.name: dataclasses.asdict(check) for check in found}))"
    )

    def run(*refused: str) -> CheckNames:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [refuse, *refused, "--", sys.executable, "-c", script], env=env, check=True, capture_output=True
        )
        found: CheckNames = json.loads(done.stdout)
        return found

    return run


def test_nothing_refused(checked_under: Callable[..., CheckNames]) -> None:
    found = checked_under()
    states = {name: check["state"] for name, check in found.items() if name != "disk"}
    assert set(states.values()) == {"ok"}
    assert "seccomp filter" in found["container"]["found"]


@pytest.mark.parametrize(
    ("refused", "name", "state"),
    [
        (f"{PRCTL}:59={errno.EINVAL}", "syscall user dispatch", "fail"),
        (f"{PRCTL}:59={errno.EPERM}", "syscall user dispatch", "fail"),
        (f"{PRCTL}:26={errno.EPERM}", "RDTSC trap", "note"),
        (f"{PTRACE}={errno.EPERM}", "ptrace", "fail"),
        (f"{PERSONALITY}={errno.EPERM}", "address randomisation", "ok"),
        (f"{MEMFD_CREATE}={errno.ENOSYS}", "log memory", "fail"),
    ],
)
def test_a_refused_call_is_found_and_explained(
    checked_under: Callable[..., CheckNames], refused: str, name: str, state: str
) -> None:
    check = checked_under(refused)[name]
    assert check["state"] == state
    code = int(refused.rpartition("=")[2])
    assert os.strerror(code) in check["found"]
    assert bool(check["fix"]) == (state != "ok")


def test_an_old_kernel_and_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for release, state in (
        ("5.10.0-8-amd64", "fail"),
        ("5.11.0", "ok"),
        ("6.1-rc3", "ok"),
        ("strange", "fail"),
    ):
        monkeypatch.setattr(os, "uname", lambda r=release: os.uname_result(("Linux", "h", r, "v", "x86_64")))
        assert checks.check_kernel().state == state
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert checks.check_machine().state == "fail"


def test_a_folder_without_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert checks.check_disk(tmp_path).found.endswith(str(tmp_path))
    assert checks.check_disk(tmp_path / "missing").state == "note"

    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    check = checks.check_disk(tmp_path)
    assert check.state == "note"
    assert check.found.startswith("1.0 kB free")


def die(number: int) -> int:
    os.kill(os.getpid(), number)
    return 0


def test_a_child_that_dies_is_an_errno() -> None:
    assert checks.in_child(lambda: 0) == 0
    assert checks.in_child(lambda: errno.EPERM) == errno.EPERM
    assert checks.in_child(lambda: die(signal.SIGKILL)) == errno.ENOSYS
    assert checks.in_child(lambda: 1 // 0) == errno.ENOSYS
