"""How the cost grows: with events, threads, processes, and the length of a trace that is looked at."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.plot import Series, plot
from benchmarks.running import environment, rr_py, timed
from benchmarks.works import compiled

_RUNS = 3
EVENTS = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
THREADS = (1, 2, 4, 8, 16, 32)
PROCESSES = (25, 50, 100, 200, 400)
LENGTHS = (100_000, 300_000, 1_000_000, 3_000_000)


def draw_all(folder: Path, say: Callable[[str], None]) -> None:
    """Measure and write one SVG for each question, and the figures as scaling.json."""
    folder.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="rr-py-scaling-"))
    try:
        for name in ("getppid", "threads"):
            compiled(name)(work)
        found = {
            "events": _grow(work, EVENTS, lambda n: ["./getppid", str(n)], say),
            "threads": _grow(work, THREADS, lambda n: ["./threads", str(n), "1000000"], say),
            "processes": _grow(work, PROCESSES, _children, say),
            "length": _look(work, say),
        }
    finally:
        shutil.rmtree(work, ignore_errors=True)
    (folder / "scaling.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    axes = {
        "events": ("system calls (getppid)", EVENTS),
        "threads": ("threads that make 1 million calls together", THREADS),
        "processes": ("children of a shell", PROCESSES),
        "length": ("events in the trace", LENGTHS),
    }
    for name, (label, places) in axes.items():
        series = [Series(line, places, values) for line, values in found[name].items()]
        (folder / f"{name}.svg").write_text(plot(label, "seconds", series), encoding="utf-8")


def _children(count: int) -> list[str]:
    return ["sh", "-c", f"i=0; while [ $i -lt {count} ]; do /bin/true; i=$((i+1)); done"]


def _grow(
    work: Path, sizes: Sequence[int], command: Callable[[int], list[str]], say: Callable[[str], None]
) -> dict[str, list[float]]:
    """Seconds natively, recorded and replayed; the least of three runs each."""
    env = environment()
    found: dict[str, list[float]] = {"native": [], "record": [], "replay": []}
    trace = work / "trace.bin"
    for size in sizes:
        plain = command(size)
        say(" ".join(plain)[:70])
        least = {name: float("inf") for name in found}
        for _ in range(_RUNS):
            trace.unlink(missing_ok=True)
            for name, argv in (
                ("native", plain),
                ("record", [*rr_py(), "record", "-q", "-o", str(trace), "--", *plain]),
                ("replay", [*rr_py(), "replay", "-q", str(trace)]),
            ):
                least[name] = min(least[name], timed(argv, work, env).wall)
        for name, seconds in least.items():
            found[name].append(seconds)
    return found


def _look(work: Path, say: Callable[[str], None]) -> dict[str, list[float]]:
    """Seconds of what is done with a trace of so many events, start of the tool included."""
    env = environment()
    trace = work / "long.bin"
    index = "import sys; from tui.model.trace import TraceModel; TraceModel.open(sys.argv[1]).index.update()"
    verbs = {
        "info": [*rr_py(), "info", str(trace)],
        "dump --json, first 1000 events": [
            "sh",
            "-c",
            f"{' '.join(rr_py())} dump --json {trace} | head -1000",
        ],
        "index of the TUI": [rr_py()[0], "-c", index, str(trace)],
        "scan": [*rr_py(), "scan", str(trace)],
    }
    found: dict[str, list[float]] = {}
    for length in LENGTHS:
        trace.unlink(missing_ok=True)
        timed([*rr_py(), "record", "-q", "-o", str(trace), "--", "./getppid", str(length)], work, env)
        for name, argv in verbs.items():
            say(f"{name}: {length} events")
            found.setdefault(name, []).append(timed(argv, work, env).wall)
    return found
