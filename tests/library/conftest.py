"""Programs to record at their libraries' functions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).resolve().parent.parent.parent


def need(found: object, what: str) -> None:
    """Skip the test where something is not installed; in CI, which installs it, fail."""
    if not found:
        if os.environ.get("CI"):
            pytest.fail(
                f"{what} is not installed: see .ci/packages.txt and the extra 'library'", pytrace=False
            )
        pytest.skip(f"needs {what}")


@pytest.fixture(autouse=True)
def packages() -> None:
    """What the extra 'library' installs."""
    for name in ("frida", "networkx", "pycparser"):
        need(find_spec(name), name)


@dataclass(frozen=True)
class Ran:
    """What one run of the command line came to."""

    status: int
    out: bytes
    err: str


Build = Callable[..., Path]
Tool = Callable[..., Ran]


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    """Runs `rr-py ARGS` in the test's folder."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run(*args: str, env_more: dict[str, str] | None = None, stdin: bytes = b"") -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "rr_py", *args],
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            env={**env, **(env_more or {})},
            timeout=120,
        )
        return Ran(done.returncode, done.stdout, done.stderr.decode(errors="replace"))

    return run


def both(tool: Tool, interfaces: str, *command: str, stdin: bytes = b"") -> tuple[bytes, int]:
    """Record; returns what the program printed and its status."""
    options = [word for name in interfaces.split(",") for word in ("--interface", name)]
    recorded = tool("record", "-q", "-o", "t.bin", *options, "--", *command, stdin=stdin)
    assert "Traceback" not in recorded.err, recorded.err
    return recorded.out, recorded.status


def same(tool: Tool, expected: tuple[bytes, int]) -> None:
    """Replay gives the same output and status."""
    replayed = tool("replay", "t.bin")
    assert (replayed.out, replayed.status) == expected, replayed.err


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Compiles C text: `build(name, text, "-lz")` a program, `build(name, text, shared=True)` a library."""

    def compile_c(name: str, text: str, *flags: str, shared: bool = False) -> Path:
        source = tmp_path / f"{name}.c"
        source.write_text(text)
        more: Sequence[str] = ["-shared", "-fPIC", f"-Wl,-soname,{name}"] if shared else []
        target = tmp_path / name
        subprocess.run(["gcc", "-O1", "-g", *more, "-o", str(target), str(source), *flags], check=True)
        return target

    return compile_c
