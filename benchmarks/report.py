"""What was measured, as a table for people, as JSON, and compared with an earlier run."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.running import Measured, median
from benchmarks.works import Work

Figures: TypeAlias = dict[str, dict[str, float | int | None]]

_WORSE = 1.15
_LEAST_SECONDS = 0.02


def machine() -> dict[str, str | int]:
    """What the figures depend on besides this project."""
    name = ""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    return {
        "cpu": name,
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def versions(tools: Sequence[str]) -> dict[str, str]:
    """The first line that each tool says of its version."""
    found = {}
    for tool in tools:
        program = tool.split()[0]
        if shutil.which(program):
            done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
            found[tool] = (done.stdout or done.stderr).splitlines()[0] if done.stdout or done.stderr else "?"
    return found


def figures(work: Work, measured: Measured) -> dict[str, float | int | None]:
    """The ratios of one work; `cpu` ones count processor time, which other load disturbs less."""
    native, native_cpu = median(measured.native), median(measured.native, lambda cost: cost.cpu)
    found: dict[str, float | int | None] = {
        "native_s": native,
        "record": median(measured.record) / native,
        "replay": median(measured.replay) / native,
        "record_goal": work.record,
        "replay_goal": work.replay,
        "trace_bytes": measured.trace,
    }
    if native_cpu and work.client is None:
        found["record_cpu"] = median(measured.record, lambda cost: cost.cpu) / native_cpu
        found["replay_cpu"] = median(measured.replay, lambda cost: cost.cpu) / native_cpu
    found |= measured.others
    return found


def table(all_figures: Figures, others: Sequence[str]) -> str:
    """A Markdown table."""
    heads = [
        "work",
        "native",
        "record",
        "goal",
        "replay",
        "goal",
        "record CPU",
        "replay CPU",
        "trace",
        *others,
    ]
    lines = [" | ".join(heads), " | ".join("---" for _ in heads)]
    for name, row in all_figures.items():
        cells = [name, f"{row['native_s']:.2f} s"]
        for what in ("record", "replay"):
            goal = row[f"{what}_goal"]
            cells += [_ratio(row[what]), "" if goal is None else f"{goal:.2f}"]
        cells += [_ratio(row.get("record_cpu")), _ratio(row.get("replay_cpu")), _size(row["trace_bytes"])]
        cells += [_ratio(row.get(tool)) for tool in others]
        lines.append(" | ".join(cells))
    return "\n".join(f"| {line} |" for line in lines)


def _ratio(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}x" if value < 10 else f"{value:.0f}x"


def _size(value: float | None) -> str:
    octets = float(value or 0)
    for unit in ("B", "kB", "MB"):
        if octets < 1000:
            return f"{octets:.0f} {unit}" if octets >= 10 or unit == "B" else f"{octets:.1f} {unit}"
        octets /= 1000
    return f"{octets:.1f} GB"


def save(path: Path, document: Mapping[str, Any]) -> None:
    """Write JSON."""
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def compare(before: Mapping[str, Any], now: Figures) -> list[str]:
    """A line for every ratio that got worse by more than 15 %; works too short to tell are left out."""
    worse = []
    for name, row in now.items():
        old = before.get("works", {}).get(name)
        if old is None or (row["native_s"] or 0) < _LEAST_SECONDS:
            continue
        for what in ("record", "replay", "trace_bytes"):
            was, is_now = old.get(what), row.get(what)
            if was and is_now and is_now > was * _WORSE:
                worse.append(f"{name}: {what} was {was:.2f}, is {is_now:.2f}")
    return worse
