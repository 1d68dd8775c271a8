"""Record and replay every stress-ng stressor of the given classes alone, and write a table of the results.

    python tests/runtimes/stress_ng.py --out docs/stress-ng.md [--seconds 40] [CLASS or STRESSOR ...]

A stressor passes when it ends as it does natively while recorded, and the replay's output and status are the
recorded ones. Those that the machine cannot run natively (no privilege, no hardware, no kernel support) are
listed apart. Slow: a script for the developer, no test. RR_PY names the command (default: this Python's
`-m rr_py`).
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

CLASSES = ("filesystem", "scheduler", "network", "vm", "pipe", "interrupt")
OPS = {"vm": 2, "sparsematrix": 1, "bigheap": 2}
RR_PY = shlex.split(os.environ.get("RR_PY", f"{sys.executable} -m rr_py"))
_CHANGING = re.compile(r"\[\d+\]|\d+\.\d+ *s|\d+(\.\d+)? secs?")


@dataclass(frozen=True)
class Result:
    """What came of one stressor.

    `verdict`: pass, native (cannot run here), record or replay (failed there).
    """

    name: str
    classes: tuple[str, ...]
    verdict: str
    reason: str
    seconds: tuple[float, float, float]


def stressors(name: str) -> list[str]:
    """The stressors of a class."""
    told = subprocess.run(["stress-ng", "--class", f"{name}?"], capture_output=True, text=True, check=False)
    return (told.stdout + told.stderr).partition(":")[2].split()


def run(command: list[str], folder: Path, limit: float) -> tuple[int, str, float]:
    """Status (-1: no end), what it said, and seconds."""
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(timeout=limit)
        return process.returncode, out, time.monotonic() - start
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        out, _ = process.communicate()
        return -1, out, time.monotonic() - start


def last_words(text: str) -> str:
    """The line that says most about a failure."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "rr-py:" in line or "fail" in line or "error" in line.lower()]
    return (telling or lines or ["nothing said"])[0][:160].replace("|", "/")


def one(name: str, classes: tuple[str, ...], limit: float) -> Result:
    folder = Path(tempfile.mkdtemp(prefix="stress-"))
    trace = folder / "x.bin"
    program = [
        "stress-ng",
        f"--{name}",
        "1",
        f"--{name}-ops",
        str(OPS.get(name, 5)),
        "--timeout",
        "15",
        "--temp-path",
        str(folder),
    ]
    try:
        status, said, native = run(program, folder, limit)
        unable = "skipped" in said or "not implemented" in said or "not supported" in said
        if status != 0 or unable:
            why = "no end" if status == -1 else last_words(said)
            return Result(name, classes, "native", why, (native, 0, 0))
        recorded, said, during = run(
            [*RR_PY, "record", "-q", "-o", str(trace), "--", *program], folder, limit
        )
        if recorded != status:
            why = f"no end in {limit:.0f} s" if recorded == -1 else f"status {recorded}: {last_words(said)}"
            return Result(name, classes, "record", why, (native, during, 0))
        replayed, again, after = run([*RR_PY, "replay", str(trace)], folder, limit)
        told = [line for line in said.splitlines() if "rr-py:" not in line]
        if replayed != status or told != [line for line in again.splitlines() if "rr-py:" not in line]:
            why = f"no end in {limit:.0f} s" if replayed == -1 else f"status {replayed}: {last_words(again)}"
            return Result(name, classes, "replay", why, (native, during, after))
        return Result(name, classes, "pass", "", (native, during, after))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def table(results: list[Result]) -> str:
    able = [result for result in results if result.verdict != "native"]
    passed = [result for result in able if result.verdict == "pass"]
    share = 100 * len(passed) / max(len(able), 1)
    version = subprocess.run(
        ["stress-ng", "--version"], capture_output=True, text=True, check=False
    ).stdout.split()[2]
    text = [
        "# stress-ng under rr-py",
        "",
        f"stress-ng {version}, one worker, a few operations each; made by `tests/runtimes/stress_ng.py`. "
        f"Of {len(results)} stressors {len(able)} run on this machine; {len(passed)} of them ({share:.0f} %) "
        "record and replay with the same output and status.",
        "",
        "## Failures",
        "",
        "| stressor | where | reason |",
        "|---|---|---|",
    ]
    failed = [result for result in able if result.verdict != "pass"]
    text += [f"| {r.name} | {r.verdict} | {r.reason} |" for r in failed] or ["| none | | |"]
    text += ["", "## Record and replay", ""]
    text += ["| stressor | classes | native s | recorded s | replayed s |", "|---|---|---|---|---|"]
    for r in passed:
        text.append(
            f"| {r.name} | {', '.join(r.classes)} | " + " | ".join(f"{s:.1f}" for s in r.seconds) + " |"
        )
    text += ["", "## Not possible here without rr-py either", "", "| stressor | what it says |", "|---|---|"]
    text += [f"| {r.name} | {r.reason} |" for r in results if r.verdict == "native"]
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=40.0, help="limit for each run")
    parser.add_argument("--skip", action="append", default=[])
    parser.add_argument("names", nargs="*", default=CLASSES)
    options = parser.parse_args()
    wanted: dict[str, list[str]] = {}
    for name in options.names:
        for stressor in stressors(name) if name in CLASSES else [name]:
            wanted.setdefault(stressor, []).append(name)
    results = []
    for name, classes in sorted(wanted.items()):
        if name not in options.skip:
            results.append(one(name, tuple(c for c in classes if c in CLASSES), options.seconds))
            print(
                results[-1].verdict,
                name,
                results[-1].reason,
                *(f"{s:.1f}" for s in results[-1].seconds),
                flush=True,
            )
            if options.out:
                options.out.write_text(table(results))


if __name__ == "__main__":
    main()
