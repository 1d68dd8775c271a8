"""A wheel built from a copy of the sources, and a clean environment it is installed in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "_core", "__pycache__", "*.bin", "tests")
PROGRAMS = ("true", "sh", "cat", "ls")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with the build tools of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=LEFT_OUT)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            folder,
            source,
        ],
        check=True,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def clean_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables of a machine without a compiler on which the wheel is installed, with all its
    dependencies as wheels. PATH has `rr-py` and a few programs to record."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "SSL_", "http", "HTTP")) or name in ("LANG", "HOME", "TMPDIR")
    }
    env = {**kept, "PATH": f"{folder / 'venv' / 'bin'}:{programs}"}
    assert not any(shutil.which(tool, path=env["PATH"]) for tool in ("gcc", "cc", "clang", "make", "cmake"))
    subprocess.run(
        ["python", "-m", "pip", "install", "-q", "--only-binary", ":all:", "--retries", "10", wheel],
        executable=folder / "venv" / "bin" / "python",
        env=env,
        check=True,
    )
    return env
