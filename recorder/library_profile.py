"""What flows between environment, libraries and program, profiled by recording at several interfaces."""

from __future__ import annotations

import bisect
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interfaces.libspec import load, shipped
from interfaces.libspec.chooser import ENVIRONMENT, PROGRAM, Flow
from interfaces.libspec.model import Interface
from interfaces.libspec.recorded import numbered
from interfaces.libspec.show import LibFlag
from recorder.library import record_library
from recorder.options import RecordOptions, RecordResult
from tracefile import TraceReader

LIBC = "libc"
ORDER = "pthread"
_QUIET = LibFlag.RETURN | LibFlag.PART | LibFlag.ENTER


@dataclass(slots=True)
class Run:
    """One profiled run: what crossed each function, by the module that called it."""

    result: RecordResult
    modules: Modules
    calls: Counter[tuple[str, str, str, int]] = field(default_factory=Counter)
    octets: Counter[tuple[str, str, str, int]] = field(default_factory=Counter)
    size: int = 0
    """Keys are interface, function, the calling module's path, address in it; `size` is the trace's bytes."""


class Modules:
    """Finds the module an address lies in."""

    def __init__(self, found: Sequence[tuple[int, int, str]]) -> None:
        self._sorted = sorted(found)
        self._starts = [base for base, _, _ in self._sorted]

    def at(self, address: int) -> tuple[str, int]:
        """Path and offset, ("", address) outside all modules."""
        i = bisect.bisect_right(self._starts, address) - 1
        if i >= 0:
            base, size, path = self._sorted[i]
            if address < base + size:
                return path, address - base
        return "", address

    def paths(self) -> list[str]:
        return list(dict.fromkeys(path for _, _, path in self._sorted))


def run(options: RecordOptions, interfaces: Sequence[Interface]) -> Run:
    """Record once into a passing trace and count."""
    modules: list[tuple[int, int, str]] = []
    with tempfile.TemporaryDirectory(prefix="rr-py-profile-") as folder:
        trace = Path(folder) / "trace.bin"
        result = record_library(options._replace(trace=trace, notify=_nothing), lambda: interfaces, modules)
        found = Run(result, Modules(modules), size=trace.stat().st_size)
        with TraceReader.open(trace) as reader:
            names = numbered(list(interfaces))
            for chunk in reader.chunks(1):
                events = chunk.events
                columns = (events[name].tolist() for name in ("nr", "flags", "ip", "payload_len"))
                for number, flags, ip, octets in zip(*columns, strict=True):
                    interface, function = names[number]
                    path, offset = found.modules.at(ip)
                    key = (interface.name, function.name, path, offset)
                    if not flags & _QUIET:
                        found.calls[key] += 1
                    found.octets[key] += octets
    return found


def _nothing(text: str) -> None:
    """Warnings of profiling runs are not the user's concern."""


def loaded(modules: Modules, candidates: Sequence[Interface]) -> dict[str, Interface]:
    """Path of a module -> the interface it can be recorded at."""
    found = {}
    for path in modules.paths():
        name = os.path.basename(path)
        for interface in candidates:
            if any(name == so or name.startswith(so + ".") for so in interface.libraries):
                found[path] = interface
    return found


def profile(options: RecordOptions, tell: Callable[[str], None]) -> tuple[list[Flow], dict[str, Run]]:
    """Flows between environment, libraries and program, and the runs they were measured in, by interface."""
    order = load(ORDER)
    libc = load(LIBC)
    candidates = [load(name) for name in shipped() if name not in (LIBC, ORDER)]
    tell("profiling at the C library")
    runs = {LIBC: run(options, [libc, order])}
    homes = loaded(runs[LIBC].modules, candidates)
    for interface in dict.fromkeys(item.name for item in homes.values()):
        tell(f"profiling at {interface}")
        runs[interface] = run(options, [load(interface), order])
    flows: dict[tuple[str, str, str], list[int]] = {}
    for name, measured in runs.items():
        source = ENVIRONMENT if name == LIBC else name
        for key, octets in measured.octets.items():
            interface_name, _, path, _ = key
            if interface_name != name:
                continue
            target = homes[path].name if path in homes else PROGRAM
            total = flows.setdefault((source, target, name), [0, 0])
            total[0] += measured.calls[key]
            total[1] += octets
    return [Flow(a, b, calls, octets, name) for (a, b, name), (calls, octets) in flows.items()], runs
