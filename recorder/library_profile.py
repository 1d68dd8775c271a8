"""What flows between environment, libraries and program, profiled by recording at several interfaces."""

from __future__ import annotations

import bisect
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interfaces.libspec import ADDED, load, shipped
from interfaces.libspec.chooser import ENVIRONMENT, PROGRAM, Flow
from interfaces.libspec.components import components, main_component
from interfaces.libspec.model import Interface
from interfaces.libspec.recorded import numbered
from interfaces.libspec.show import LibFlag
from interposer import elf
from recorder.library import record_library
from recorder.options import RecordOptions, RecordResult
from recorder.repeat import Repeat
from tracefile import TraceReader

LIBC = "libc"
ORDER = "pthread"
_SYSTEM = ("ld-linux", "libc.so", "libpthread.so", "frida-agent")
_QUIET = LibFlag.RETURN | LibFlag.PART | LibFlag.ENTER


Key = tuple[str, str, str, str]


@dataclass(slots=True)
class Run:
    """One profiled run: what crossed each function, by the module that called it."""

    result: RecordResult
    modules: Modules
    calls: Counter[Key] = field(default_factory=Counter)
    octets: Counter[Key] = field(default_factory=Counter)
    size: int = 0
    """Keys are interface, function, the calling module's path, and the function of the program beneath which
    it was called ("" for none that was asked for); `size` is the trace's bytes."""

    def add(self, other: Run) -> None:
        """Take in another run at the same interfaces."""
        self.calls.update(other.calls)
        self.octets.update(other.octets)
        self.size += other.size
        self.modules = Modules([*self.modules.all, *other.modules.all])
        self.result = self.result._replace(events=self.result.events + other.result.events)


class Modules:
    """Finds the module an address lies in."""

    def __init__(self, found: Sequence[tuple[int, int, str]]) -> None:
        self._sorted = sorted(found)
        self._starts = [base for base, _, _ in self._sorted]

    @property
    def all(self) -> list[tuple[int, int, str]]:
        """Address, size and path of each."""
        return self._sorted

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


def run(options: RecordOptions, interfaces: Sequence[Interface], nested: str = "") -> Run:
    """Record once into a passing trace and count. `nested`: the interface whose functions are only looked
    through: what is called beneath them is counted, too."""
    modules: list[tuple[int, int, str]] = []
    with tempfile.TemporaryDirectory(prefix="rr-py-profile-") as folder:
        trace = Path(folder) / "trace.bin"
        quiet = options._replace(trace=trace, notify=_nothing)
        result = record_library(quiet, lambda: interfaces, modules, frozenset({nested} - {""}))
        found = Run(result, Modules(modules), size=trace.stat().st_size)
        count(trace, interfaces, found, nested)
    return found


def count(trace: Path, interfaces: Sequence[Interface], found: Run, nested: str = "") -> None:
    """Count what a trace says."""
    names = numbered(list(interfaces))
    begun: dict[int, list[str]] = {}
    with TraceReader.open(trace) as reader:
        for chunk in reader.chunks(1):
            events = chunk.events
            columns = (events[name].tolist() for name in ("nr", "flags", "ip", "payload_len", "task"))
            for number, flags, ip, octets, task in zip(*columns, strict=True):
                if number not in names:
                    continue  # a program begins, a trap: no call
                interface, function = names[number]
                beneath = begun.setdefault(task, [])
                if interface.name == nested:
                    if flags & LibFlag.ENTER:
                        beneath.append(function.name)
                        continue
                    if beneath and not flags & LibFlag.PART:
                        beneath.pop()
                key = (interface.name, function.name, found.modules.at(ip)[0], beneath[-1] if beneath else "")
                if not flags & _QUIET:
                    found.calls[key] += 1
                found.octets[key] += octets


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
    options: Sequence[RecordOptions],
    beneath: Mapping[str, Mapping[str, float]],
    own: Interface | None,
    repeat: Repeat,
    tell: Callable[[str], None],
) -> tuple[list[Flow], dict[str, Run]]:
    """Flows between environment, libraries and program, and the runs they were measured in, by interface.

    Each of `options` is run once at each interface.

    `beneath`: interface -> function -> what the system calls beneath it cost. It says which components of a
    library the environment flows into: a function with none beneath gives nothing that a second run does not.
    `own`: functions of the program itself, each a component of its own.
    """
    order = load(ORDER)
    candidates = [load(name) for name in shipped() if name not in (LIBC, *ADDED)]
    more, nested = ([], "") if own is None else ([own], own.name)
    tell("profiling at the C library")
    runs = {LIBC: _runs(options, [load(LIBC), order, *more], nested, repeat)}
    homes = loaded(runs[LIBC].modules, candidates)
    used = {item.name: item for item in homes.values()}
    for interface in used:
        tell(f"profiling at {interface}")
        runs[interface] = _runs(options, [used[interface], order, *more], nested, repeat)
    return list(_flows(runs, homes, beneath, nested)), runs


def _runs(
    options: Sequence[RecordOptions], interfaces: Sequence[Interface], nested: str, repeat: Repeat
) -> Run:
    """Record each once at some interfaces; all together."""
    found: Run | None = None
    for one in options:
        repeat.begin()
        other = run(one, interfaces, nested)
        repeat.ended(one.command, other.result)
        if found is None:
            found = other
        else:
            found.add(other)
    assert found is not None
    return found


def _flows(
    runs: Mapping[str, Run],
    homes: Mapping[str, Interface],
    beneath: Mapping[str, Mapping[str, float]],
    nested: str,
) -> Iterator[Flow]:
    placed = {item.name: components(item) for item in homes.values()}
    total: Counter[tuple[str, str, str, str]] = Counter()
    calls: Counter[tuple[str, str, str, str]] = Counter()
    for name, measured in runs.items():
        for key, octets in measured.octets.items():
            interface_name, function, path, within = key
            program = node(nested, within) if within else PROGRAM
            if interface_name == nested and name == LIBC:
                total[node(nested, function), program, nested, function] += octets
                calls[node(nested, function), program, nested, function] += measured.calls[key]
            if interface_name != name:
                continue
            home = homes[path].name if path in homes else ""
            if name == LIBC:
                for component, share in _shares(home, placed, beneath):
                    target = node(home, component) if home else program
                    total[ENVIRONMENT, target, name, LIBC] += round(octets * share)
                    calls[ENVIRONMENT, target, name, LIBC] += round(measured.calls[key] * share)
                continue
            component = placed[name].get(function, main_component(placed[name]))
            target = node(home, main_component(placed[home])) if home else program
            total[node(name, component), target, name, component] += octets
            calls[node(name, component), target, name, component] += measured.calls[key]
    for key, octets in total.items():
        source, target, name, component = key
        yield Flow(source, target, calls[key], octets, name, component)


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
