"""The interface in a real terminal: tmux draws it, keys are sent, the screen is read back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 20.0

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]


class Terminal:
    """A tmux session of its own server."""

    def __init__(self, socket: Path, columns: int, rows: int, folder: Path) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
        environment.pop("TMUX", None)
        self._run("new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(folder), "bash --norc",
                  environment=environment)  # fmt: skip
        self.type("PS1='$ '", "Enter")

    def _run(self, *words: str, environment: dict[str, str] | None = None) -> str:
        result = subprocess.run(
            [*self._tmux, *words], env=environment, capture_output=True, text=True, check=True, timeout=30
        )
        return result.stdout

    def type(self, *keys: str) -> None:
        """Send keys, by tmux's names."""
        for key in keys:
            self._run("send-keys", key)

    def text(self, text: str) -> None:
        """Send a text as it is."""
        self._run("send-keys", "-l", text)

    def screen(self) -> str:
        """What the terminal shows."""
        return self._run("capture-pane", "-p")

    def wait_for(self, *texts: str, absent: str = "") -> str:
        """The screen as soon as it shows all texts (and not `absent`)."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            shown = self.screen()
            if all(text in shown for text in texts) and not (absent and absent in shown):
                return shown
            assert time.monotonic() < deadline, f"{texts} did not appear:\n{shown}"
            time.sleep(0.05)

    def close(self) -> None:
        self._run("kill-server")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path / "tmux", 100, 30, tmp_path)
    yield opened
    opened.close()


def test_the_tour(terminal: Terminal, small: Path) -> None:
    """GIVEN a trace WHEN the tour of docs/tui.md is made in a terminal THEN each step shows what it says."""
    terminal.text(f"{sys.executable} -m rr_py tui {small}")
    terminal.type("Enter")
    terminal.wait_for("1 Events", "20 000 events", "running /usr/bin/worker")
    terminal.type("f")
    terminal.wait_for("Tab completes")
    terminal.text("call == rea")
    terminal.wait_for("in this trace")
    terminal.type("Tab")
    terminal.text("and result == 60")
    terminal.type("Enter")
    terminal.wait_for("filter: call == read and result == 60", absent="Tab completes")
    terminal.type("Escape")
    terminal.wait_for("20 000", absent="filter:")
    terminal.type("/")
    terminal.wait_for("search: text")
    terminal.text("ENOENT")
    terminal.type("Enter")
    terminal.wait_for("/ENOENT 1/", "-1 ENOENT")
    terminal.type("n")
    terminal.wait_for("/ENOENT 2/")
    terminal.type(":")
    terminal.wait_for("go to:")
    terminal.text("4711:70")
    terminal.type("Enter")
    terminal.wait_for("4711:70", "event 70 of domain 1")
    terminal.type("2")
    terminal.wait_for("running", "4716 server")
    terminal.type("+", "Right", "Right")
    terminal.wait_for("cursor")
    terminal.type("3")
    terminal.wait_for("server --port 80", "worker --child")
    terminal.type("Down", "Enter")
    terminal.wait_for("filter: pid == 4720")
    terminal.type("?")
    terminal.wait_for("keys and filters")
    terminal.type("Escape")
    terminal.wait_for("1 Events", absent="keys and filters")
    terminal.type("q")
    terminal.wait_for("$ ", absent="1 Events")


def test_ctrl_c_and_a_small_window(terminal: Terminal, small: Path) -> None:
    """GIVEN the interface WHEN the window is made very small and large again THEN it goes on."""
    terminal.text(f"{sys.executable} -m rr_py tui '{small}@timeline'")
    terminal.type("Enter")
    terminal.wait_for("4711 server")
    terminal._run("resize-window", "-x", "20", "-y", "5")
    terminal._run("resize-window", "-x", "120", "-y", "40")
    terminal.type("1")
    terminal.wait_for("openat", "result")
    terminal.type("q")
    terminal.wait_for("$ ", absent="1 Events")


@pytest.mark.acceptance
def test_recording_is_watched(terminal: Terminal, tmp_path: Path) -> None:
    """GIVEN a program that asks something WHEN recorded with --tui THEN its events and its output appear, it
    gets what is typed, and the tool ends with its status."""
    program = tmp_path / "ask.py"
    program.write_text("import sys\nprint('your name?', flush=True)\nprint('hello', input())\nsys.exit(7)\n")
    terminal.text(f"{sys.executable} -m rr_py record --tui -o live.bin -- {sys.executable} {program}")
    terminal.type("Enter")
    terminal.wait_for("LIVE", "your name?")
    terminal.type("o")
    terminal.wait_for("Enter sends to the program")
    terminal.text("Ada")
    terminal.type("Enter")
    terminal.wait_for("hello Ada", "ended with status 7")
    terminal.type("Escape")
    terminal.wait_for("o: type to the program", absent="LIVE")
    terminal.type("q")
    terminal.wait_for("$ ", absent="1 Events")
    terminal.text("echo status $?")
    terminal.type("Enter")
    terminal.wait_for("status 7")
    assert (tmp_path / "live.bin").exists()


def test_the_run_that_failed_is_browsed(terminal: Terminal) -> None:
    """GIVEN a program that fails at its second run WHEN repeated with --tui THEN that run's trace is opened,
    and the tool ends with its status."""
    terminal.text(
        f"{sys.executable} -m rr_py record --tui --repeat-until-fail=5 -o flaky.bin -- "
        "sh -c 'test -e been && exit 7; : > been'"
    )
    terminal.type("Enter")
    terminal.wait_for("1 Events", "flaky.bin", "running /")
    terminal.type("q")
    terminal.wait_for("$ ", absent="1 Events")
    terminal.text("echo status $?")
    terminal.type("Enter")
    terminal.wait_for("status 7", "run 2 of at most 5 failed")
