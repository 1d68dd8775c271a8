"""The examples about debugging do what their texts say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.debug.conftest import ROOT

pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"),
    pytest.mark.skipif(shutil.which("gdb") is None, reason="needs gdb"),
]


def test_the_classic(tmp_path: Path) -> None:
    """GIVEN memory corrupted by one thread and used by another WHEN gone back from the crash THEN gdb and
    the Python API name the guilty line."""
    folder = tmp_path / "corruption"
    shutil.copytree(
        ROOT / "examples" / "corruption", folder, ignore=shutil.ignore_patterns("build", "transcript.txt")
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(["make", "-s", "build/corrupt"], cwd=folder, check=True)
    done = subprocess.run(
        [sys.executable, "make_transcript.py"], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text = (folder / "transcript.txt").read_text()
    guilty = text.split("reverse-continue", 1)[1]
    assert "rename_account" in guilty and '"Margarethe"' in guilty
    done = subprocess.run(
        [sys.executable, "find_guilty.py", "build/corrupt.bin"],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "rename_account at" in done.stdout.split("first wrong value", 1)[1]
