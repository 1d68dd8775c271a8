"""One run of a work under a tool, and the medians of several."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.works import Work, wait_for_port

_LIMIT = 900.0


class RunFailed(Exception):
    """A run ended otherwise than well; the message says how."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One run: seconds on the clock, and of processor time of all its processes."""

    wall: float
    cpu: float


@dataclass(slots=True)
class Measured:
    """The runs of one work. `others` are other tools' ratios, `missed` why one has none; `trace` is the size
    of the last trace in bytes."""

    native: list[Cost] = field(default_factory=list)
    record: list[Cost] = field(default_factory=list)
    replay: list[Cost] = field(default_factory=list)
    others: dict[str, float] = field(default_factory=dict)
    missed: dict[str, str] = field(default_factory=dict)
    trace: int = 0


def rr_py() -> list[str]:
    """The tool under test, run by this interpreter."""
    return [sys.executable, "-m", "rr_py"]


def environment() -> dict[str, str]:
    """This process's, with compiled modules allowed as every installation has them."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    root = str(Path(__file__).parent.parent)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (root, env.get("PYTHONPATH"))))
    return env


def timed(argv: list[str], folder: Path, env: dict[str, str]) -> Cost:
    """Run a command to its end. Raises RunFailed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    try:
        done = subprocess.run(
            argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, timeout=_LIMIT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise RunFailed(f"took more than {_LIMIT:.0f} s") from None
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise RunFailed(f"exit status {done.returncode}: {said[-1] if said else 'nothing on stderr'}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu)


def served(work: Work, argv: list[str], size: int, folder: Path, env: dict[str, str]) -> tuple[Cost, Cost]:
    """Run a server and its client; what the client took, and what the server did in all."""
    assert work.client is not None and work.stop is not None
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    server = subprocess.Popen(
        argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for_port(work.port)
        client = timed(work.client(size), folder, env)
        subprocess.run(work.stop, check=False, capture_output=True)
        server.wait(_LIMIT)
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return client, Cost(time.perf_counter() - begin, cpu)


def measure(
    work: Work, folder: Path, runs: int, others: Iterable[str], say: Callable[[str], None]
) -> Measured:
    """Run a work `runs` times natively, recorded and replayed, in turns, and under the other tools once."""
    folder.mkdir(parents=True)
    work.prepare(folder)
    env = environment()
    found = Measured()
    trace = folder.parent / f"{folder.name}.trace"
    for number in range(runs):
        say(f"{work.name}: run {number + 1} of {runs}")
        plain = work.command(folder, work.size)
        recording = [*rr_py(), "record", "-q", "-o", str(trace), "--", *plain]
        replaying = [*rr_py(), "replay", "-q", str(trace)]
        trace.unlink(missing_ok=True)
        for argv, costs in ((plain, found.native), (recording, found.record)):
            work.reset(folder)
            if work.client is None:
                costs.append(timed(argv, folder, env))
            else:
                costs.append(served(work, argv, work.size, folder, env)[0])
        found.trace = trace.stat().st_size
        found.replay.append(timed(replaying, folder, env))
    trace.unlink(missing_ok=True)
    for tool in others:
        say(f"{work.name}: {tool}")
        try:
            _other(work, tool, folder, env, found)
        except RunFailed as why:
            found.missed[tool] = str(why)
    shutil.rmtree(folder)
    return found


def _wrapped(tool: str, plain: list[str], folder: Path) -> list[str]:
    """The command that runs `plain` under a tool."""
    if tool == "strace -f":
        return ["strace", "-f", "-o", "/dev/null", *plain]
    if tool == "rr":
        return ["rr", "record", "-o", str(folder.parent / "rr-trace"), *plain]
    orders = (
        "set confirm off",
        "set record full insn-number-max unlimited",
        "break main",
        "run",
        "record full",
        "continue",
    )
    return ["gdb", "-q", "-batch", *(word for order in orders for word in ("-ex", order)), "--args", *plain]


def _other(work: Work, tool: str, folder: Path, env: dict[str, str], found: Measured) -> None:
    """Another tool's ratio: one run, beside a native one of the same size."""

    def run(argv: list[str], size: int) -> float:
        work.reset(folder)
        if work.client is None:
            return timed(argv, folder, env).wall
        return served(work, argv, size, folder, env)[0].wall

    size = work.gdb if tool == "gdb record" else work.slow
    if size is None:
        found.missed[tool] = "not run: too slow"
    elif tool == "gdb record":
        empty, full = (run(_wrapped(tool, work.command(folder, n), folder), n) for n in (0, size))
        found.others[tool] = (full - empty) / size / (median(found.native) / work.size)
    else:
        plain = work.command(folder, size)
        native = run(plain, size)
        found.others[tool] = run(_wrapped(tool, plain, folder), size) / max(native, 1e-4)
        shutil.rmtree(folder.parent / "rr-trace", ignore_errors=True)


def median(costs: list[Cost], of: Callable[[Cost], float] = lambda cost: cost.wall) -> float:
    """The median; 0 for none."""
    return statistics.median(map(of, costs)) if costs else 0.0
