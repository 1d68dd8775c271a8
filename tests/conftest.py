"""Fixtures for all tests: run the tool as a user does, and compile small C programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
Run = subprocess.CompletedProcess[str]
RunTool = Callable[..., Run]
CompileC = Callable[..., Path]


def systems_gdb() -> str | None:
    """The machine's own gdb: the one that the test extra puts into the virtual environment needs a starter of
    ours (see tests/debug/mi.py)."""
    ours = os.path.realpath(os.path.dirname(sys.executable))
    folders = [one for one in os.environ.get("PATH", os.defpath).split(":") if os.path.realpath(one) != ours]
    return shutil.which("gdb", path=":".join(folders))


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep reports and caches of the tests out of the user's folders."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))
    monkeypatch.delenv("RR_PY_DEBUG", raising=False)


@pytest.fixture
def tool(tmp_path: Path) -> RunTool:
    """Run `rr-py` with the given words in a fresh folder; stdout and stderr are captured as text.

    `env` adds to the environment (None removes a name); `cwd`, `input` and `timeout` are subprocess's.
    """

    def run(
        *words: str | Path,
        env: dict[str, str | None] | None = None,
        cwd: Path | None = None,
        input: str = "",
        timeout: float = 120,
    ) -> Run:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path / "state")}
        for name, value in (env or {}).items():
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value
        return subprocess.run(
            [sys.executable, "-m", "rr_py", *map(str, words)],
            cwd=cwd or tmp_path,
            env=environment,
            input=input,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=timeout,
        )

    return run


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory: pytest.TempPathFactory) -> CompileC:
    """Compile C text, or a file of tests/programs by its name, to a program; each once a session."""
    folder = tmp_path_factory.mktemp("programs")
    done: dict[tuple[str, tuple[str, ...]], Path] = {}

    def build(source: str, *flags: str) -> Path:
        key = (source, flags)
        if key not in done:
            if "\n" in source or "{" in source:
                file = folder / f"program-{len(done)}.c"
                file.write_text(source)
            else:
                file = ROOT / "tests" / "programs" / source
            target = folder / f"{file.stem}-{len(done)}"
            subprocess.run(
                ["gcc", "-O1", "-g", "-w", "-pthread", *flags, "-o", str(target), str(file)], check=True
            )
            done[key] = target
        return done[key]

    return build
