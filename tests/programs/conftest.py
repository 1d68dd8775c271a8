"""The small C programs, compiled once a session, and one way to run, record and replay what a test wants."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent
OWN_MESSAGE = b"rr-py: "


@dataclass(frozen=True)
class Outcome:
    """How a command ended: status as subprocess says it, what it wrote. `said`: lines of rr-py's own."""

    status: int
    out: bytes
    err: bytes
    said: tuple[str, ...] = ()


def split_messages(text: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The program's own error output, and the lines that rr-py wrote between (remedies are indented)."""
    own: list[bytes] = []
    said: list[str] = []
    ours = False
    for line in text.splitlines(keepends=True):
        ours = line.startswith(OWN_MESSAGE) or (ours and line.startswith(b"  "))
        if ours:
            said.append(line.decode(errors="replace").strip())
        else:
            own.append(line)
    return b"".join(own), tuple(said)


class Recorder:
    """Runs commands natively, recorded and replayed, each in a folder of its own below `top`."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.trace = top / "trace.bin"
        self.prefix: list[str] = []
        """Put before rr-py itself: another user, a filter, a namespace."""

    def folder(self, name: str) -> Path:
        path = self.top / name
        path.mkdir(exist_ok=True)
        return path

    def run(
        self,
        command: Sequence[str | Path],
        folder: str,
        *,
        input: bytes | None = b"",
        env: Mapping[str, str | None] | None = None,
        timeout: float = 120,
    ) -> Outcome:
        environment = {**os.environ, "XDG_STATE_HOME": str(self.top / "state"), "PYTHONPATH": str(ROOT)}
        for name, value in (env or {}).items():
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.folder(folder),
            env=environment,
            input=input,
            capture_output=True,
            timeout=timeout,
            start_new_session=True,
        )
        err, said = split_messages(done.stderr)
        return Outcome(done.returncode, done.stdout, err, said)

    def native(self, *command: str | Path, **options: object) -> Outcome:
        return self.run([*self.prefix, *command], "native", **options)  # type: ignore[arg-type]

    def record(self, *command: str | Path, options: Sequence[str] = (), **more: object) -> Outcome:
        words = [*self.tool, "record", "-q", *options, "-o", self.trace, "--", *command]
        return self.run(words, "recorded", **more)  # type: ignore[arg-type]

    def replay(self, *options: str, **more: object) -> Outcome:
        """Replay, and see to it that nothing is left behind."""
        outcome = self.run([*self.tool, "replay", *options, self.trace], "replayed", **more)  # type: ignore[arg-type]
        assert not any(self.folder("replayed").iterdir()), "replaying left files behind"
        return outcome

    @property
    def tool(self) -> list[str]:
        return [*self.prefix, sys.executable, "-m", "rr_py"]

    def forget_inputs(self) -> None:
        """What the recorded run used is not there any more when it is replayed."""
        shutil.rmtree(self.folder("recorded"))


@pytest.fixture
def rr(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Where the program of tests/programs/NAME.c is; all are compiled at the first use."""
    folder = tmp_path_factory.mktemp("compiled")
    folder.chmod(0o755)

    def build(source: Path) -> None:
        flags = FLAGS.get(source.stem, [])
        subprocess.run(
            ["gcc", "-O1", "-g", "-w", "-pthread", *flags, "-o", folder / source.stem, source], check=True
        )

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(build, FOLDER.glob("*.c")))
    return lambda name: folder / name


FLAGS = {"change_root": ["-static"], "lookalikes": ["-Wl,-z,noseparate-code"]}
