"""Completion: the scripts, and what they are answered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def answer(*words: str, folder: Path) -> list[str]:
    """What bash is offered at the end of `rr-py WORDS`."""
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "_RR_PY_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["rr-py", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [sys.executable, "-m", "rr_py"], env=env, cwd=folder, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_verbs_options_and_files(tmp_path: Path) -> None:
    assert answer("re", folder=tmp_path) == ["plain,record", "plain,replay"]
    assert answer("dump", "--err", folder=tmp_path) == ["plain,--errno"]
    assert answer("replay", "tra", folder=tmp_path) == ["file,tra"]
    assert answer("completion", "z", folder=tmp_path) == ["plain,zsh"]


def test_the_recorded_program_is_completed_from_path(tmp_path: Path) -> None:
    offered = answer("record", "mkfif", folder=tmp_path)
    assert offered[0] == "file,mkfif"
    assert "plain,mkfifo" in offered
    assert answer("record", "mkfifo", "mkfif", folder=tmp_path) == ["file,mkfif"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_by_the_variable_the_tool_answers_to(shell: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SHELL": f"/usr/bin/{shell}"}
    named, own = (
        subprocess.run(
            [sys.executable, "-m", "rr_py", "completion", *words],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for words in ([shell], [])
    )
    assert named == own
    assert "_RR_PY_COMPLETE" in named
    assert "rr-py" in named


def test_an_unknown_shell_has_to_be_named() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SHELL": "/bin/odd"}
    done = subprocess.run(
        [sys.executable, "-m", "rr_py", "completion"], env=env, capture_output=True, text=True
    )
    assert done.returncode == 125
    assert done.stderr.startswith("rr-py: which shell?")
