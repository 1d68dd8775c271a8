"""Programs of this folder, recorded and replayed: output, end and memory must agree."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"


@dataclass(frozen=True)
class Recorded:
    """One recording: how the program ended, what it printed, what the recorder said, and the trace."""

    status: int
    out: str
    said: str
    trace: Path


Record = Callable[..., Recorded]
Replay = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compile a program of `programs` by its name, once a session."""
    folder = tmp_path_factory.mktemp("threads")

    def made(name: str) -> Path:
        target = folder / name
        if not target.exists():
            flags = ["-O1", "-g", "-w", "-pthread"]
            subprocess.run(["gcc", *flags, "-o", target, PROGRAMS / f"{name}.c", "-lrt"], check=True)
        return target

    return made


def _tool(words: list[str | Path], folder: Path, timeout: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rr_py", *map(str, words)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Record a command; `options` are those of `rr-py record`."""
    count = 0

    def run(*command: str | Path, options: tuple[str, ...] = (), timeout: float = 100) -> Recorded:
        nonlocal count
        count += 1
        trace = tmp_path / f"t{count}.bin"
        words = ["record", "-q", "-o", trace, *options, "--", *command]
        done = _tool(words, tmp_path, timeout)
        return Recorded(done.returncode, done.stdout, done.stderr, trace)

    return run


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    """Replay a trace with more words of `rr-py replay`."""

    def run(trace: Path, *words: str, timeout: float = 100) -> subprocess.CompletedProcess[str]:
        return _tool(["replay", *words, trace], tmp_path, timeout)

    return run


@pytest.fixture
def same(record: Record, replay: Replay) -> Callable[..., Recorded]:
    """Record with checksums of memory, replay with `--verify`: output and status must be as recorded."""

    def run(
        *command: str | Path, options: tuple[str, ...] = ("--checksum=100",), timeout: float = 100
    ) -> Recorded:
        recorded = record(*command, options=options, timeout=timeout)
        verify = ("--verify",) if any(word.startswith("--checksum") for word in options) else ()
        again = replay(recorded.trace, *verify, timeout=timeout)
        assert (again.returncode, again.stdout) == (recorded.status, recorded.out), again.stderr
        return recorded

    return run
