"""What debugging a recording costs: `python -m benchmarks.debugging`.

Going back over a second of computing, a core file of a process of 100 MB, and seeking to events, each beside
what the issue allows: medians of several in one run, on the clock and in seconds of processor time.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.running import environment, rr_py
from replayer import Paused, Session, Timeline, Triggers
from replayer.corefile import write_core
from replayer.debuggee import Debuggee
from replayer.position import Position

PROGRAM = Path(__file__).parent / "programs" / "debugged.c"
_RUNS = 5
_SEEKS = 20


def main() -> int:
    """Record the program, measure, print a table."""
    with tempfile.TemporaryDirectory(prefix="rr-py-benchmarks-") as folder:
        program, trace = Path(folder) / "debugged", Path(folder) / "debugged.bin"
        subprocess.run(["cc", "-O1", "-g", "-o", program, PROGRAM], check=True)
        native = _timed(lambda: subprocess.run([program], stdout=subprocess.DEVNULL, check=True))
        words = [*rr_py(), "record", "-o", str(trace), str(program)]
        subprocess.run(words, env=environment(), check=True, capture_output=True)
        print(f"the program by itself: {native:.2f} s")
        _going_back(trace)
        _core(trace, Path(folder) / "core")
        _seeking(trace)
    return 0


def _timed(what: Callable[[], object]) -> float:
    began = time.monotonic()
    what()
    return time.monotonic() - began


def _going_back(trace: Path) -> None:
    """reverse-continue to breakpoints met 900 times, from the end; with a condition that holds once."""
    with Timeline.open(trace) as timeline:
        timeline.end()
        rare = Triggers(frozenset([timeline.address("rare")]))
        every, one = [], []
        for _run in range(_RUNS):
            timeline.end()
            every.append(_timed(lambda: timeline.backward(rare)))
            timeline.end()
            one.append(_timed(lambda: timeline.backward(rare, _first)))
        print(f"back to a breakpoint met 900 times: {statistics.median(every):.2f} s (5 s)")
        print(f"back to the first of 900, by a condition: {statistics.median(one):.2f} s (5 s)")


def _first(process: Debuggee) -> bool:
    return process.state(process.tid).registers.rdi == 0


def _core(trace: Path, target: Path) -> None:
    """A core file once the event is reached."""
    times = []
    with Session.open(trace) as session:
        pause = session.run_to(session.reader.event_count(1) - 1)
        assert isinstance(pause, Paused)
        for run in range(_RUNS):
            path = target.with_name(f"core-{run}")
            times.append(_timed(lambda path=path: write_core(session, pause, path)))  # type: ignore[misc]
            size = path.stat().st_size
            path.unlink()
    print(f"core of {size / 1e6:.0f} MB: {statistics.median(times):.2f} s (1 s)")


def _seeking(trace: Path) -> None:
    """Seeking to events, beside running there from the nearest checkpoint before."""
    ratios = []
    choose = random.Random(1)
    with Timeline.open(trace) as timeline:
        timeline.end()
        for _seek in range(_SEEKS):
            event = choose.randrange(timeline.first + 1000, timeline.total)
            position = Position(event)
            nearest = timeline.nearest(position)
            process = timeline.fresh(nearest)
            plain = _timed(lambda process=process, event=event: process.go(event))  # type: ignore[misc]
            process.close()
            timeline.seek(timeline.first)
            ratios.append(_timed(lambda event=event: timeline.seek(event)) / max(plain, 1e-3))  # type: ignore[misc]
    print(f"seeking: {statistics.median(ratios):.2f} times the run from the nearest checkpoint (2)")


if __name__ == "__main__":
    sys.exit(main())
