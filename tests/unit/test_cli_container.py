"""Recording and replaying where less is allowed than on a developer's machine: containers, ordinary users."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PERSONALITY, PERF_EVENT_OPEN, PRCTL, PTRACE = 135, 298, 157, 101
NOBODY = 65534
SCRIPT = """
echo $RANDOM $$
cat /proc/sys/kernel/random/uuid
ls /proc/self/fd
awk 'BEGIN { srand(); print rand() }'
"""
Confined = Callable[[Sequence[str | Path]], Sequence[str | Path]]


def run(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def record_and_replay(folder: Path, *confinement: str | Path) -> None:
    """Record and replay under a confinement (a command that runs another); then replay without it as well."""
    tool = [sys.executable, "-m", "rr_py"]
    recorded = run(folder, *confinement, *tool, "record", "-q", "-o", "t.bin", "bash", "-c", SCRIPT)
    assert (recorded.returncode, recorded.stderr) == (0, "")
    assert len(recorded.stdout.splitlines()) >= 6
    for around in (confinement, ()):
        replayed = run(folder, *around, *tool, "replay", "t.bin")
        assert (replayed.returncode, replayed.stderr) == (0, "")
        assert replayed.stdout == recorded.stdout


@pytest.mark.parametrize(
    "refused",
    [
        [f"{PERSONALITY}={errno.EPERM}"],
        [f"{PERF_EVENT_OPEN}={errno.EPERM}"],
        [f"{PERSONALITY}={errno.EPERM}", f"{PERF_EVENT_OPEN}={errno.EPERM}"],
    ],
    ids=["personality", "perf_event_open", "both"],
)
def test_calls_refused_as_by_a_containers_profile(
    compile_c: Callable[..., Path], tmp_path: Path, refused: list[str]
) -> None:
    record_and_replay(tmp_path, compile_c("refuse.c"), *refused, "--")


def test_random_addresses_differ_and_each_recording_replays_at_its_own(
    compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    refuse = compile_c("refuse.c")
    program = compile_c(
        "#include <stdio.h>\n#include <stdlib.h>\nint main(int c, char **v) "
        '{ printf("%p %p %p\\n", (void *)main, (void *)&c, malloc(9)); }\n'
    )
    outputs = set()
    for name in ("a", "b"):
        recorded = run(
            tmp_path,
            refuse,
            f"{PERSONALITY}={errno.EPERM}",
            "--",
            sys.executable,
            "-m",
            "rr_py",
            "record",
            "-q",
            "-o",
            name,
            program,
        )
        replayed = run(tmp_path, sys.executable, "-m", "rr_py", "replay", name)
        assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout)
        outputs.add(recorded.stdout)
    assert len(outputs) == 2


def test_a_kernel_without_syscall_user_dispatch(compile_c: Callable[..., Path], tmp_path: Path) -> None:
    done = run(
        tmp_path,
        compile_c("refuse.c"),
        f"{PRCTL}:59={errno.EINVAL}",
        "--",
        sys.executable,
        "-m",
        "rr_py",
        "record",
        "sh",
        "-c",
        "echo ran > ran",
    )
    assert done.returncode == 125
    assert "5.11" in done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == []


def test_ptrace_refused(compile_c: Callable[..., Path], tmp_path: Path) -> None:
    done = run(
        tmp_path,
        compile_c("refuse.c"),
        f"{PTRACE}={errno.EPERM}",
        "--",
        sys.executable,
        "-m",
        "rr_py",
        "record",
        "sh",
        "-c",
        "echo ran > ran",
    )
    assert done.returncode in (125, 126)
    assert "ptrace" in done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="already an ordinary user")
def test_without_any_capability(tmp_path: Path) -> None:
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs")
    assert run(tmp_path, *drop, "grep", "CapEff", "/proc/self/status").stdout.split()[1] == "0" * 16
    record_and_replay(tmp_path, *drop)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_another_user(tmp_path: Path) -> None:
    """An interpreter and a package that another user may read are at hand only where the system has them."""
    become = (
        "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
    )
    if run(tmp_path, *become, sys.executable, "-c", "import rr_py.cli, numpy").returncode:
        pytest.skip("another user cannot run this Python")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    shutil.chown(tmp_path, NOBODY, NOBODY)
    record_and_replay(tmp_path, *become)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
def test_proc_mounted_read_only(tmp_path: Path) -> None:
    script = 'mount -o remount,bind,ro /proc && exec "$@"'
    confinement = ("unshare", "--mount", "--propagation=private", "sh", "-c", script, "sh")
    if run(tmp_path, *confinement, "true").returncode:
        pytest.skip("mounting is not permitted here")
    record_and_replay(tmp_path, *confinement)
