"""What flows between environment, libraries and program, profiled by recording at several interfaces."""

from __future__ import annotations

import bisect
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interfaces.libspec import load, shipped
from interfaces.libspec.chooser import ENVIRONMENT, PROGRAM, Flow
from interfaces.libspec.components import components, main_component
from interfaces.libspec.model import Interface
from interfaces.libspec.recorded import numbered
from interfaces.libspec.show import LibFlag
from interposer import elf
from recorder.library import record_library
from recorder.options import RecordOptions, RecordResult
from tracefile import TraceReader

LIBC = "libc"
ORDER = "pthread"
_SYSTEM = ("ld-linux", "libc.so", "libpthread.so", "frida-agent")
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


def node(interface: str, component: str) -> str:
    """The name of a component in the graph."""
    return interface if component == interface else f"{interface}: {component}"


def profile(
    options: RecordOptions, beneath: Mapping[str, Mapping[str, float]], tell: Callable[[str], None]
) -> tuple[list[Flow], dict[str, Run]]:
    """Flows between environment, libraries and program, and the runs they were measured in, by interface.

    `beneath`: interface -> function -> what the system calls beneath it cost. It says which components of a
    library the environment flows into: a function with none beneath gives nothing that a second run does not.
    """
    order = load(ORDER)
    libc = load(LIBC)
    candidates = [load(name) for name in shipped() if name not in (LIBC, ORDER)]
    tell("profiling at the C library")
    runs = {LIBC: run(options, [libc, order])}
    homes = loaded(runs[LIBC].modules, candidates)
    used = {item.name: item for item in homes.values()}
    for interface in used:
        tell(f"profiling at {interface}")
        runs[interface] = run(options, [used[interface], order])
    placed = {name: components(item) for name, item in used.items()}
    total: Counter[tuple[str, str, str, str]] = Counter()
    calls: Counter[tuple[str, str, str, str]] = Counter()
    for name, measured in runs.items():
        for key, octets in measured.octets.items():
            interface_name, function, path, _ = key
            if interface_name != name:
                continue
            home = homes[path].name if path in homes else ""
            if name == LIBC:
                for component, share in _shares(home, placed, beneath):
                    target = node(home, component) if home else PROGRAM
                    total[ENVIRONMENT, target, name, LIBC] += round(octets * share)
                    calls[ENVIRONMENT, target, name, LIBC] += round(measured.calls[key] * share)
                continue
            component = placed[name].get(function, main_component(placed[name]))
            target = node(home, main_component(placed[home])) if home else PROGRAM
            total[node(name, component), target, name, component] += octets
            calls[node(name, component), target, name, component] += measured.calls[key]
    flows = [
        Flow(source, target, calls[key], octets, name, component)
        for key, octets in total.items()
        for source, target, name, component in [key]
    ]
    return flows, runs


def _shares(
    home: str, placed: Mapping[str, Mapping[str, str]], beneath: Mapping[str, Mapping[str, float]]
) -> list[tuple[str, float]]:
    """How what a library takes from the C library divides among its components."""
    if not home:
        return [("", 1.0)]
    costs: Counter[str] = Counter()
    for function, cost in beneath.get(home, {}).items():
        costs[placed[home].get(function, main_component(dict(placed[home])))] += round(cost)
    whole = sum(costs.values())
    if not whole:
        return [(main_component(dict(placed[home])), 1.0)]
    return [(component, cost / whole) for component, cost in costs.items() if cost]


def imported(modules: Modules, inside: Collection[str]) -> set[str]:
    """Functions that modules outside these libraries (paths) import; of one that looks functions up by name
    (dlsym), also every text in it that may be such a name."""
    names: set[str] = set()
    for path in modules.paths():
        if path in inside or os.path.basename(path).startswith(_SYSTEM):
            continue
        try:
            data = Path(path).read_bytes()
            symbols = list(elf.parse(data).symbols())
        except (OSError, elf.ElfError):
            continue
        own = {symbol.name.partition("@")[0] for symbol in symbols if not symbol.value}
        names |= own
        if own & {"dlsym", "dlvsym"}:
            names.update(word.decode("ascii", "replace") for word in data.split(b"\0") if len(word) < 64)
    return names
