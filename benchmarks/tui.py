"""What the terminal interface takes on ten million events: `python -m benchmarks.tui [EVENTS] [TRACE]`.

Makes the trace (unless it is there), opens the application on it in a process of its own, without a
terminal, and prints how long the first screen, jumps and filters took, in seconds of the clock and of the
processor, and the memory at the end, next to what they may.
Exit status 1 where a figure is beyond its limit.
"""

from __future__ import annotations

import asyncio
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

EVENTS = 10_000_000
JUMPS = 40
LIMITS = {"first screen": 1.0, "jump, worst": 0.1, "filter over all, worst": 2.0, "memory": 300.0}
FILTERS = (
    "call == read",
    'call == read and duration > 1ms and path ~ "*.db"',
    "errno == ENOENT",
    "tid == 4713 and duration > 100us",
    "result > 50",
    "fd == 5 and failed",
    'path ~ "*.db"',
    'data ~ "brown fox"',
)
SLOWER = ('text ~ "users.db"',)
"""Filters that make every distinct line: no limit, told for comparison."""
_PATIENCE_S = 120.0


def main() -> int:
    """Make the trace and measure in a fresh process, whose start counts."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(folder) / "events.bin"
        if not path.exists():
            from benchmarks.tui_trace import make_trace

            make_trace(path, events)
        words = [sys.executable, "-m", "benchmarks.tui", "--inside", str(path), str(time.time())]
        return subprocess.run(words, check=False).returncode


def inside(path: Path, started: float) -> int:
    """Measure. `started` is when this process was asked for."""
    return asyncio.run(_measure(path, started))


async def _measure(path: Path, started: float) -> int:
    from tui.app import RrPyTui
    from tui.model.trace import TraceModel

    found: dict[str, float] = {}
    with TraceModel.open(path) as model:
        app = RrPyTui(model)
        async with app.run_test(size=(120, 40)) as pilot:

            async def until(condition: Callable[[], bool]) -> float:
                begin = time.perf_counter()
                while not condition():
                    await asyncio.sleep(0.002)
                    if time.perf_counter() - begin > _PATIENCE_S:
                        raise TimeoutError
                return time.perf_counter() - begin

            rows = app.events
            await until(lambda: rows.row_count > 40 and bool(rows._cache))
            found["first screen"] = time.time() - started
            print(f"first screen: {time.process_time():.2f} s CPU")
            begin = time.perf_counter()
            await until(lambda: rows.view.complete and model.index.rows == model.reader.total_events)
            told = f"{model.index.rows:,} events indexed in {time.perf_counter() - begin:.1f} s more"
            print(f"indexing: {time.process_time():.2f} s CPU since the start")
            jumps = []
            cpu = time.process_time()
            for _ in range(JUMPS):
                row = random.randrange(model.index.rows)
                rows._cache.clear()
                begin = time.perf_counter()
                app.go(row)
                await until(lambda: rows.row in rows._cache)
                jumps.append(time.perf_counter() - begin)
                assert rows.row == row
                await pilot.pause()
            print(f"a jump: {(time.process_time() - cpu) / JUMPS:.3f} s CPU, with its detail")
            for move in (rows.action_last, rows.action_first):
                rows._cache.clear()
                begin = time.perf_counter()
                move()
                await until(lambda: rows.row in rows._cache)
                jumps.append(time.perf_counter() - begin)
            found["jump, worst"] = max(jumps)
            for text in (*FILTERS, *SLOWER):
                cpu = time.process_time()
                app.apply_filter(text)
                took = await until(lambda: app.events.view.complete)
                cpu = time.process_time() - cpu
                print(f"  {took:6.2f} s ({cpu:5.2f} s CPU)  {len(app.events.view):>9,} events  {text}")
                if text in FILTERS:
                    found["filter over all, worst"] = max(took, found.get("filter over all, worst", 0.0))
            found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(told)
    good = True
    for name, limit in LIMITS.items():
        unit = "MB" if name == "memory" else "s"
        mark = "" if found[name] <= limit else "   TOO MUCH"
        good = good and found[name] <= limit
        print(f"{name:24} {found[name]:8.3f} {unit} (limit {limit} {unit}){mark}")
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        sys.exit(inside(Path(sys.argv[2]), float(sys.argv[3])))
    sys.exit(main())
