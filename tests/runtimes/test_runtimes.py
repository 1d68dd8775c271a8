"""Language runtimes: what a program with threads of each prints is printed again by its replay."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"

Same = Callable[..., str]


@pytest.fixture
def same(tmp_path: Path) -> Same:
    """Record a command, replay it; both must end alike and print the same. What it printed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path / "state")}
    own = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}

    def tool(*words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rr_py", *map(str, words)],
            cwd=tmp_path,
            env={**environment, **own},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def run(*command: str | Path) -> str:
        trace = tmp_path / "t.bin"
        recorded = tool("record", "-q", "-o", trace, "--", *command)
        assert recorded.returncode == 0, recorded.stderr
        again = tool("replay", trace)
        assert (again.returncode, again.stdout) == (0, recorded.stdout), again.stderr
        return recorded.stdout

    return run


def needs(name: str) -> str:
    """The path of a program; skips the test where it is not installed."""
    found = shutil.which(name) or shutil.which(name, path=os.path.expanduser("~/.cargo/bin"))
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@pytest.mark.parametrize("name", ["threads", "aio", "http_server"])
def test_cpython(name: str, same: Same) -> None:
    assert same("/usr/bin/python3", PROGRAMS / f"{name}.py")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_cpython_processes(method: str, same: Same) -> None:
    out = same("/usr/bin/python3", PROGRAMS / "processes.py", method)
    assert out.splitlines()[:3] == [str(sum(n * n for n in range(300))), "150", "[0, 1, 2]"]


def test_node(same: Same) -> None:
    out = same(needs("node"), PROGRAMS / "workers.js")
    assert "[ 0, 1, 2 ]" in out and out.endswith("timer true\n")


def test_openjdk(same: Same, tmp_path: Path) -> None:
    subprocess.run([needs("javac"), "-d", tmp_path, PROGRAMS / "Streams.java"], check=True)
    out = same(needs("java"), "-XX:+UseG1GC", "-cp", tmp_path, "Streams")
    assert "\n2584\n" in out and "\nnull\n" in out


def test_go(same: Same, tmp_path: Path) -> None:
    environment = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "GO111MODULE": "off"}
    words = [needs("go"), "build", "-o", str(tmp_path / "goroutines"), str(PROGRAMS / "goroutines.go")]
    subprocess.run(words, check=True, env=environment)
    assert same(tmp_path / "goroutines").endswith("timeout\n")


def test_rust(same: Same, tmp_path: Path) -> None:
    subprocess.run([needs("rustc"), "-O", "-o", tmp_path / "std", PROGRAMS / "std.rs"], check=True)
    assert same(tmp_path / "std").endswith("child\ntrue\n")


def test_openmp(same: Same, tmp_path: Path) -> None:
    words = ["gcc", "-O2", "-fopenmp", "-o", str(tmp_path / "omp"), str(PROGRAMS / "omp.c")]
    subprocess.run(words, check=True)
    assert same(tmp_path / "omp").startswith("12.090146129863 ")


def test_cplusplus(same: Same, tmp_path: Path) -> None:
    words = ["g++", "-O2", "-std=c++17", "-pthread", "-o", str(tmp_path / "async")]
    subprocess.run([*words, str(PROGRAMS / "async.cc")], check=True)
    assert same(tmp_path / "async").endswith(" caught\n")
