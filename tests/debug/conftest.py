"""Programs that are compiled and recorded once a session, and where their marked lines are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from interfaces.abi import Kind
from tests.conftest import systems_gdb
from tests.debug.mi import Gdb, extra_gdb
from tracefile import TraceReader

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
RUSTC = shutil.which("rustc") or shutil.which("rustc", path=os.path.expanduser("~/.cargo/bin"))


def need(there: object, what: str) -> None:
    """Skip the test where `what` it needs is not installed; in CI it has to be."""
    if not there:
        if os.environ.get("CI"):
            pytest.fail(f"CI lacks {what}")
        pytest.skip(f"needs {what}")


@dataclass(frozen=True)
class Recorded:
    """A recording: the program, its source, the trace."""

    program: Path
    source: Path
    trace: Path

    def line(self, mark: str) -> int:
        """The number of the line with the comment `line: MARK`."""
        for number, text in enumerate(self.source.read_text().splitlines(), 1):
            if f"line: {mark}" in text:
                return number
        raise AssertionError(f"no line {mark} in {self.source}")

    def events(self, call: int, result: int | None = None) -> list[int]:
        """The numbers of the events of the first domain with this call number (and result)."""
        found = []
        with TraceReader.open(self.trace) as reader:
            for chunk in reader.chunks(1):
                chosen = (chunk.events["kind"] == Kind.SYSCALL) & (chunk.events["nr"] == call)
                if result is not None:
                    chosen &= chunk.events["result"] == result
                found += [chunk.first_event + int(row) for row in np.flatnonzero(chosen)]
        return found

    def blocking(self) -> list[int]:
        """The numbers of events at which a sleep begins."""
        with TraceReader.open(self.trace) as reader:
            return [
                chunk.first_event + int(row)
                for chunk in reader.chunks(1)
                for row in np.flatnonzero(
                    (chunk.events["kind"] == Kind.RELEASE) & (chunk.events["nr"] == 230)
                )
            ]

    def last_event(self, call: int) -> int:
        """The number of the last such event."""
        return self.events(call)[-1]


Record = Callable[..., Recorded]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Compile a file of `programs` and record it, each once; a .py file is run by this interpreter."""
    folder = tmp_path_factory.mktemp("recorded")
    done: dict[tuple[str, ...], Recorded] = {}
    compilers = {".c": ["gcc", "-O1"], ".cc": ["g++", "-O1"], ".rs": [RUSTC or "rustc", "-C", "debuginfo=2"]}

    def record(name: str, *arguments: str, flags: tuple[str, ...] = ()) -> Recorded:
        key = (name, *flags, "", *arguments)
        if key not in done:
            source = PROGRAMS / name
            target = folder / f"{source.stem}-{len(done)}"
            if source.suffix == ".py":
                command = [os.path.realpath(sys.executable), str(source)]
                target = Path(command[0])
            else:
                more = [] if source.suffix == ".rs" else ["-g", "-pthread"]
                subprocess.run(
                    [*compilers[source.suffix], *more, *flags, "-o", str(target), str(source)], check=True
                )
                command = [str(target)]
            trace = folder / f"{source.stem}-{len(done)}.bin"
            subprocess.run(
                [sys.executable, "-m", "rr_py", "record", "-o", str(trace), *command, *arguments],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=60,
            )
            assert trace.stat().st_size
            done[key] = Recorded(target, source, trace)
        return done[key]

    return record


StartGdb = Callable[..., Gdb]


@pytest.fixture(scope="module")
def running() -> Iterator[dict[tuple[object, ...], Gdb]]:
    """The debuggers that wait for the module's next test."""
    found: dict[tuple[object, ...], Gdb] = {}
    yield found
    for one in found.values():
        one.close()


@pytest.fixture(scope="package")
def newer_gdb(tmp_path_factory: pytest.TempPathFactory) -> str | None:
    """The gdb that the test extra installs; None where it is not, but in CI it has to be."""
    found = extra_gdb(tmp_path_factory.mktemp("gdb"))
    if os.environ.get("CI"):
        need(found, "the gdb of the test extra")
    return found


@pytest.fixture
def gdb(recorded: Record, running: dict[tuple[object, ...], Gdb]) -> Iterator[StartGdb]:
    """gdb on a program's recording, at the start or ":end". `fresh`: one of its own, ended with the test;
    otherwise one that another test may have used, without its breakpoints."""
    started: list[Gdb] = []
    need(shutil.which("gcc"), "gcc")
    own = systems_gdb()
    need(own, "gdb")

    def start(
        program: str,
        place: str = "",
        *words: str,
        flags: tuple[str, ...] = (),
        arguments: tuple[str, ...] = (),
        fresh: bool = False,
        debugger: str | None = own,
    ) -> Gdb:
        words = ("--debugger", str(debugger), *words)
        key = (program, words, flags, arguments, place.removesuffix(":end"))
        if not fresh and key in running:
            running[key].reset(place)
            return running[key]
        made = Gdb(recorded(program, *arguments, flags=flags), place, *words)
        if fresh:
            started.append(made)
        else:
            running[key] = made
        return made

    yield start
    for one in started:
        one.close()
