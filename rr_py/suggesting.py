"""The cheapest interface of a program, from runs at system calls (with stacks) and at its libraries."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from interfaces.libspec import ADDED, Interface, completed, load, shipped
from interfaces.libspec.chooser import CALL_COST, OCTET_COST, Choice, choose, without
from interfaces.libspec.components import components
from interfaces.libspec.restrict import restrict
from recorder.library import record_library
from recorder.library_profile import LIBC, Run, imported, loaded
from recorder.repeat import Repeat
from replayer.options import ReplayEnd, ReplayOptions
from rr_py.escaping import could_differ, is_library, names_of, stacks
from rr_py.internal import OWN, Found, look

if TYPE_CHECKING:
    from recorder import RecordOptions, RecordResult


_INSIDE = frozenset({"exec", "end", "instruction"})
_STARTS = frozenset({"exec", "starts"})


@dataclass(slots=True)
class Beneath:
    """System calls, and bytes of them, beneath a function; `calls` are those of its calls that made any."""

    calls: int = 0
    system_calls: int = 0
    octets: int = 0


@dataclass(slots=True)
class SystemRun:
    """A run at the system-call interface: its cost, and what lies beneath which function."""

    events: int = 0
    size: int = 0
    functions: dict[tuple[str, str], Beneath] = field(default_factory=dict)
    shares: dict[str, dict[str, float]] = field(default_factory=dict)
    own: Found = field(default_factory=Found)
    """`functions` by the module's path and function, `shares` by interface and function: cost beneath. `own`:
    the program's functions where it could be cut."""

    def add(self, other: SystemRun) -> None:
        """Take in another run."""
        self.events += other.events
        self.size += other.size
        for key, beneath in other.functions.items():
            mine = self.functions.setdefault(key, Beneath())
            mine.calls += beneath.calls
            mine.system_calls += beneath.system_calls
            mine.octets += beneath.octets
        for name, shares in other.shares.items():
            for function, cost in shares.items():
                known = self.shares.setdefault(name, {})
                known[function] = known.get(function, 0.0) + cost
        self.own.add(other.own)


def system_run(options: RecordOptions, repeat: Repeat) -> SystemRun:
    """Record once at the system-call interface, replay for the stacks, and again to watch the program's own
    functions. Raises what these raise."""
    from recorder import record
    from replayer.watching import is_system

    interfaces = [load(name) for name in shipped() if name not in (LIBC, *ADDED)]
    found = SystemRun()
    seen: set[tuple[str, str, int, int]] = set()
    whole: set[tuple[str, str]] = set()
    direct: set[tuple[str, str]] = set()
    with tempfile.TemporaryDirectory(prefix="rr-py-profile-") as folder:
        trace = Path(folder) / "trace.bin"
        repeat.begin()
        result = record(options._replace(trace=trace))
        repeat.ended(options.command, result)
        found.events, found.size = result.events, trace.stat().st_size
        for event, frames in stacks(trace, could_differ):
            octets = sum(len(region.data) for region in event.regions)
            on_stack: dict[tuple[str, str], int] = {}
            inner: dict[str, str] = {}
            for frame in frames:
                if frame.kind == "python" or not frame.function or "ld-linux" in frame.module:
                    continue
                on_stack[frame.module, frame.function] = frame.sp
                if frame.kind in ("native", "tail"):
                    whole.add((frame.module, frame.function))
                    if frame.module == frames[0].module:
                        direct.add((frame.module, frame.function))
                for interface in interfaces:
                    if interface.name not in inner and is_library(frame.module, interface):
                        names = names_of(frame.module, frame.function) & interface.functions.keys()
                        if names:
                            inner[interface.name] = min(names)
            for key, sp in on_stack.items():
                entry = found.functions.setdefault(key, Beneath())
                entry.system_calls += 1
                entry.octets += octets
                if (*key, event.task, sp) not in seen:
                    entry.calls += 1
                    seen.add((*key, event.task, sp))
            for name, function in inner.items():
                shares = found.shares.setdefault(name, {})
                shares[function] = shares.get(function, 0.0) + octets * OCTET_COST + CALL_COST
        foreign = {path for path, _ in whole if any(is_library(path, one) for one in interfaces)}
        found.own = look(trace, {key: found.functions[key].octets for key in whole - direct}, foreign)
        for path, function in direct:
            if path not in foreign and not is_system(path):
                # Compilers know which registers it leaves alone, and rely on that: no stub can stand for it.
                found.own.homes.setdefault(function, path)
                found.own.refused.setdefault(function, "makes system calls by its own instructions")
    return found


def chosen(choice: Choice, runs: Mapping[str, Run], own: Found) -> list[Interface]:
    """The interfaces at the cut, each with the functions that are needed there, and the order of threads.

    With functions of the program there is always the C library, too: in another run the program may call it.
    """
    modules = runs[LIBC].modules
    names = [name for name in choice.interfaces or (LIBC,) if name != OWN]
    if choice.components(OWN) and LIBC not in names:
        names.insert(0, LIBC)
    homes = loaded(modules, [load(name) for name in names])
    whole = [
        path for path, item in homes.items() if set(components(item).values()) == choice.components(item.name)
    ]
    found = []
    for name in names:
        interface = load(name)
        placed = components(interface)
        wanted: Collection[str] = [f for f, part in placed.items() if part in choice.components(name)]
        if name == LIBC and not _starts_programs(interface, runs[LIBC]):
            needed = imported(modules, whole)
            wanted = needed & interface.functions.keys() | _always(interface)
        found.append(interface if len(wanted) == len(interface.functions) else restrict(interface, wanted))
    if (mine := own.interface(choice.components(OWN))) is not None:
        found.append(mine)
    return completed(found)


def _always(interface: Interface) -> set[str]:
    """Functions that are reached from inside the C library, and what is no function that modules import."""
    return {name for name, function in interface.functions.items() if function.special in _INSIDE}


def _starts_programs(interface: Interface, run: Run) -> bool:
    """Whether other programs were started, which may call any function."""
    return any(
        name == interface.name and interface.functions[function].special in _STARTS
        for name, function, _, _ in run.calls
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """A recording at a cut: its events and bytes; `problem`: why its replay is not the same, "" if it is."""

    events: int
    size: int
    problem: str = ""


def measured(options: Sequence[RecordOptions], interfaces: Sequence[Interface], repeat: Repeat) -> Measured:
    """Record each at the cut, replay it, and compare what they write and how they end."""
    events = size = 0
    problem = ""
    for one in options:
        with tempfile.TemporaryDirectory(prefix="rr-py-cut-") as folder:
            trace = Path(folder) / "trace.bin"
            repeat.begin()
            with written_to(folder, "recorded"):
                result = record_library(
                    one._replace(trace=trace, notify=lambda _text: None), lambda: interfaces
                )
            repeat.ended(one.command, result)
            events, size = events + result.events, size + trace.stat().st_size
            repeat.begin()
            problem = problem or _replays(Path(folder), trace, result)
    return Measured(events, size, problem)


def smallest(
    options: Sequence[RecordOptions],
    choices: Sequence[Choice],
    runs: Mapping[str, Run],
    system: SystemRun,
    repeat: Repeat,
    tell: Callable[[str], None],
) -> tuple[list[tuple[str, int, int]], Choice | None]:
    """Measure the choices, cheapest first: a row (name, events, bytes) of each whose replay is the same, and
    the smallest; None where the system calls are.

    Where a recording at functions of the program does not replay, the choices without them follow.
    """
    rows: list[tuple[str, int, int]] = []
    best: tuple[int, Choice] | None = None
    left = list(choices)
    while left:
        choice = left.pop(0)
        names = ", ".join(
            [*(name for name in choice.interfaces if name != OWN), *sorted(choice.components(OWN))]
        )
        cut = measured(options, chosen(choice, runs, system.own), repeat)
        if not cut.problem:
            rows.append((names, cut.events, cut.size))
            if cut.size <= system.size and (best is None or cut.size < best[0]):
                best = cut.size, choice
            continue
        tell(f"a recording at {names} does not replay: {cut.problem}")
        if choice.components(OWN):
            left = [other for other in left if not other.components(OWN)]
            plain = choose(without(choice.flows, OWN))
            if all(other.cut != plain.cut for other in left):
                left.insert(0, plain)
    return rows, best[1] if best is not None else None


def _replays(folder: Path, trace: Path, result: RecordResult) -> str:
    """How the replay of a recording differs from it."""
    from replayer.library import replay_library

    with open(folder / "replayed-1", "wb") as out, open(folder / "replayed-2", "wb") as err:
        options = ReplayOptions(trace=trace, stdout=out.fileno(), stderr=err.fileno())
        replayed = replay_library(options)
    if replayed.end is not ReplayEnd.FINISHED:
        return replayed.message.splitlines()[0] if replayed.message else replayed.end.value
    if (replayed.status, replayed.signal) != (result.status or 0, result.signal):
        return "it ends with another status"
    for number in "12":
        if (folder / f"recorded-{number}").read_bytes() != (folder / f"replayed-{number}").read_bytes():
            return "its output differs"
    return ""


@contextmanager
def written_to(folder: str, name: str) -> Iterator[None]:
    """Let what is started meanwhile write its output to files NAME-1 and NAME-2 in a folder."""
    saved = (os.dup(1), os.dup(2))
    try:
        for number in (1, 2):
            file = os.open(f"{folder}/{name}-{number}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.dup2(file, number)
            os.close(file)
        yield
    finally:
        for number, old in zip((1, 2), saved, strict=True):
            os.dup2(old, number)
            os.close(old)


def text_of(
    program: Sequence[str], interfaces: Sequence[Interface], runs: Mapping[str, Run], own: Found, most: int
) -> str:
    """An interface file that uses several, each with the functions that were called, most often first."""
    lines = [f"# Suggested by rr-py interface suggest for {os.path.basename(program[0])}.", "use = ["]
    for interface in interfaces:
        if interface.name in (*ADDED, OWN):
            continue
        if interface.functions.keys() == load(interface.name).functions.keys():
            lines.append(f'  "{interface.name}",')
            continue
        only = ", ".join(f'"{name}"' for name in interface.functions)
        lines.append(f'  {{ name = "{interface.name}", only = [{only}] }},')
    lines += ["]", ""]
    mine = next((item for item in interfaces if item.name == OWN), None)
    if mine is not None:
        lines += own.text(mine.functions.keys()).splitlines()
    for interface in interfaces:
        run = runs.get(interface.name)
        if run is None:
            continue
        used: Counter[str] = Counter()
        for (name, function, _, _), calls in run.calls.items():
            if name == interface.name and function in interface.functions:
                used[function] += calls
        lines.append(f"# {interface.name}:")
        lines += [f"#   {calls:>9}  {function}" for function, calls in used.most_common(most)]
    return "\n".join(lines) + "\n"
