"""What recording and replaying cost, beside other tools: `python -m benchmarks`.

Prints a table (ratios to the native time within one run, medians of five), and with --scaling draws how the
cost grows with events, threads, processes and the length of a trace.

    python -m benchmarks --only redis --runs 3
    python -m benchmarks --save before.json        ... --compare before.json
    python -m benchmarks --scaling docs/performance
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import report, scaling
from benchmarks.running import Cost, RunFailed, environment, measure, median, rr_py, timed
from benchmarks.works import WORKS, missing

OTHERS = ("strace -f", "gdb record", "rr")


def main() -> int:
    """Measure what was asked for; 1 if a comparison shows that something got worse, or a work failed."""
    options = _options()
    if options.scaling is not None:
        scaling.draw_all(options.scaling, _say)
        return 0
    folder = Path(tempfile.mkdtemp(prefix="rr-py-benchmarks-", dir=options.folder))
    try:
        return _measure_all(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure_all(options: argparse.Namespace, folder: Path) -> int:
    others = [tool for tool in OTHERS if not options.alone and _runs_here(tool, folder)]
    document = {
        "machine": report.machine(),
        "versions": report.versions(["cc", "make", *others]),
        "time": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "runs": options.runs,
        "startup_ms": startup(folder, options.runs),
    }
    found: report.Figures = {}
    failed = 0
    for number, work in enumerate(WORKS):
        if options.only and not any(word in work.name for word in options.only):
            continue
        if lacks := missing(work):
            _say(f"{work.name}: left out, {lacks} is not installed")
            continue
        try:
            measured = measure(work, folder / f"work-{number}", options.runs, others, _say)
        except (RunFailed, TimeoutError) as why:
            _say(f"{work.name}: {why}")
            failed = 1
            continue
        for tool, why_not in measured.missed.items():
            _say(f"{work.name}, {tool}: {why_not}")
        found[work.name] = report.figures(work, measured)
    document["works"] = found
    _print(document, found, others)
    if options.save is not None:
        report.save(options.save, document)
    if options.compare is not None:
        worse = report.compare(json.loads(options.compare.read_text(encoding="utf-8")), found)
        for line in worse:
            print(f"worse: {line}")
        return 1 if worse or failed else 0
    return failed


def _print(document: dict[str, object], found: report.Figures, others: list[str]) -> None:
    print(", ".join(f"{name} {value}" for name, value in report.machine().items()))
    print(", ".join(map(str, report.versions(["cc", *others]).values())))
    ms = document["startup_ms"]
    assert isinstance(ms, dict)
    print(", ".join(f"{name} {value:.0f} ms" for name, value in ms.items()) + "\n")
    print(report.table(found, others))


def startup(folder: Path, runs: int) -> dict[str, float]:
    """Milliseconds that recording and replaying `true`, and an empty Python, take above `true` itself."""
    env = environment()
    trace = folder / "true.trace"
    works = {
        "true": ["true"],
        "an empty Python": [sys.executable, "-c", "pass"],
        "record true": [*rr_py(), "record", "-q", "-o", str(trace), "true"],
        "replay true": [*rr_py(), "replay", str(trace)],
    }
    costs: dict[str, list[Cost]] = {name: [] for name in works}
    for _ in range(runs * 4):
        trace.unlink(missing_ok=True)
        for name, argv in works.items():
            costs[name].append(timed(argv, folder, env))
    native = costs.pop("true")
    found = {}
    for name, values in costs.items():
        found[f"{name} above native"] = (median(values) - median(native)) * 1e3
        found[f"{name} on the processor"] = median(values, lambda cost: cost.cpu) * 1e3
    return found


def _runs_here(tool: str, folder: Path) -> bool:
    """Whether the tool is installed and can do its work on this machine."""
    program = tool.split()[0]
    if shutil.which(program) is None:
        _say(f"{tool}: not installed")
        return False
    if program == "rr":
        try:
            timed(["rr", "record", "-o", str(folder / "probe"), "true"], folder, dict(os.environ))
        except RunFailed as why:
            _say(f"rr does not run here: {why}")
            return False
    return True


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="What recording and replaying cost."
    )
    parser.add_argument("--only", action="append", metavar="WORD", help="only works with WORD in their name")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of each (default 5)")
    parser.add_argument("--alone", action="store_true", help="leave strace, gdb and rr out")
    parser.add_argument(
        "--folder", type=Path, metavar="FOLDER", help="where to work (default: the temporary one)"
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="say what got worse than in FILE")
    parser.add_argument(
        "--scaling", type=Path, metavar="FOLDER", help="measure how cost grows; SVG plots in FOLDER"
    )
    return parser.parse_args()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
