"""gdb on a recording, driven through MI, and the processes that belong to it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import systems_gdb
from tracefile import TraceReader

if TYPE_CHECKING:
    from tests.debug.conftest import Recorded

GdbController = pytest.importorskip("pygdbmi.gdbcontroller").GdbController
ROOT = Path(__file__).resolve().parents[2]
WAIT = 60.0


def extra_gdb(folder: Path) -> str | None:
    """The newer gdb that the test extra installs, None without it. Its own starter looks for Python modules
    beside itself, and finds another package's gdb.py there."""
    if importlib.util.find_spec("gdb_for_pwndbg") is None:
        return None
    starter = folder / "gdb"
    starter.write_text(f"#!{sys.executable} -I\nfrom gdb_for_pwndbg.gdb import main\n\nmain()\n")
    starter.chmod(0o755)
    return str(starter)


class Gdb:
    """One gdb on one recording."""

    def __init__(self, recording: Recorded, place: str = "", *words: str) -> None:
        self.recording = recording
        self.threads = 1
        if "--debugger" not in words:
            words = ("--debugger", str(systems_gdb()), *words)
        arguments = "-nx --interpreter=mi3 -iex 'set debuginfod enabled off'"
        command = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "rr_py", "replay", "--gdb"]
        command += ["--debugger-args", arguments]
        self.controller = GdbController(
            [*command, *words, f"{recording.trace}{place}"], time_to_check_for_additional_output_sec=0.001
        )
        self._left: list[dict[str, Any]] = []
        self.stopped()

    @property
    def pid(self) -> int:
        return int(self.controller.gdb_process.pid)

    def _read(self, wanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Everything that is said up to what is wanted."""
        deadline = time.monotonic() + WAIT
        seen: list[dict[str, Any]] = []
        while time.monotonic() < deadline:
            while self._left:
                one = self._left.pop(0)
                seen.append(one)
                if wanted(one):
                    return seen
            self._left = self.controller.get_gdb_response(timeout_sec=1, raise_error_on_timeout=False)
        raise AssertionError(f"gdb did not answer: {seen}")

    def stopped(self) -> dict[str, Any]:
        """What the next stop says."""
        payload = self._read(lambda one: one["message"] == "stopped")[-1]["payload"]
        assert isinstance(payload, dict)
        return payload

    def mi(self, command: str) -> dict[str, Any]:
        """The result of an MI command; AssertionError with gdb's words when it fails."""
        self.controller.write(command, read_response=False)
        result = self._read(lambda one: one["type"] == "result")[-1]
        assert result["message"] != "error", result["payload"]
        return result["payload"] or {}

    def run(self, command: str) -> dict[str, Any]:
        """Run an MI command that ends in a stop, and what that says."""
        self.mi(command)
        return self.stopped()

    def say(self, command: str) -> str:
        """What a command of gdb's console prints."""
        self.controller.write(f'-interpreter-exec console "{command}"', read_response=False)
        said = self._read(lambda one: one["type"] == "result")
        if said[-1]["message"] == "error":
            return str(said[-1]["payload"]["msg"])
        return "".join(str(one["payload"]) for one in said if one["type"] in ("console", "target"))

    def value(self, expression: str) -> int:
        text = self.mi(f'-data-evaluate-expression "{expression}"')["value"]
        match = re.search(r"-?(0x[0-9a-f]+|\d+)", text)
        assert match is not None, text
        return int(match[0], 0)

    def line(self) -> int:
        return int(self.mi("-stack-info-frame")["frame"]["line"])

    def event(self) -> int:
        """The number of the event that has happened last."""
        match = re.search(r"vent (\d+) of", self.say("when"))
        assert match is not None
        return int(match[1])

    def thread(self) -> int:
        """The recorded id of the selected thread."""
        match = re.search(r"Thread (\d+)", self.say("when"))
        assert match is not None
        return int(match[1])

    def debugger(self) -> int:
        """The process id of gdb itself."""
        return next(pid for pid, name in descendants(self.pid).items() if "rr_core" not in name)

    def reset(self, place: str) -> None:
        """As if it had just been started at `place`: the start, or the end."""
        self.mi("-break-delete")
        self.mi("-gdb-set language auto")
        self.say("seek end" if place == ":end" else "seek start")

    def close(self) -> None:
        process = self.controller.gdb_process
        if process.poll() is None and not process.stdin.closed:
            self.controller.exit()
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                stream.close()
        process.wait(WAIT)


def descendants(pid: int) -> dict[int, str]:
    """The processes below `pid`, with their names."""
    found: dict[int, str] = {}
    text = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,comm="], capture_output=True, text=True).stdout
    rows = [line.split(None, 2) for line in text.splitlines()]
    level = {pid}
    while level:
        level = {int(row[0]) for row in rows if int(row[1]) in level} - set(found)
        found |= {int(row[0]): row[2] for row in rows if int(row[0]) in level}
    return found


def alive(family: dict[int, str]) -> list[int]:
    """Those that still run."""
    found = []
    for pid, command in family.items():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        name = stat[stat.index("(") + 1 : stat.rindex(")")]
        if name == command and stat[stat.rindex(")") + 2] != "Z":
            found.append(pid)
    return found


def pid_of(recording: Recorded) -> int:
    """The recorded program's process id."""
    with TraceReader.open(recording.trace) as reader:
        return reader.domains[1].pid
