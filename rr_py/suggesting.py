"""The cheapest interface of a program, from runs at system calls (with stacks) and at its libraries."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from interfaces.libspec import Interface, load, shipped
from interfaces.libspec.chooser import CALL_COST, OCTET_COST, Choice
from interfaces.libspec.components import components
from interfaces.libspec.restrict import restrict
from recorder.library_profile import LIBC, ORDER, Run, imported, loaded
from rr_py.escaping import could_differ, is_library, names_of, stacks

if TYPE_CHECKING:
    from recorder import RecordOptions


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
    """`functions` by module and function, `shares` by interface and function: cost beneath."""


def system_run(options: RecordOptions) -> SystemRun:
    """Record once at the system-call interface and replay for the stacks. Raises what these raise."""
    from recorder import record

    interfaces = [load(name) for name in shipped() if name not in (LIBC, ORDER)]
    found = SystemRun()
    seen: set[tuple[str, str, int, int]] = set()
    with tempfile.TemporaryDirectory(prefix="rr-py-profile-") as folder:
        trace = Path(folder) / "trace.bin"
        result = record(options._replace(trace=trace))
        found.events, found.size = result.events, trace.stat().st_size
        for event, frames in stacks(trace, could_differ):
            octets = sum(len(region.data) for region in event.regions)
            on_stack: dict[tuple[str, str], int] = {}
            inner: dict[str, str] = {}
            for frame in frames:
                if frame.kind == "python" or not frame.function or "ld-linux" in frame.module:
                    continue
                on_stack[os.path.basename(frame.module), frame.function] = frame.sp
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
    return found


def chosen(choice: Choice, runs: Mapping[str, Run]) -> list[Interface]:
    """The interfaces at the cut, each with the functions that are needed there, and the order of threads."""
    modules = runs[LIBC].modules
    names = choice.interfaces or (LIBC,)
    homes = loaded(modules, [load(name) for name in names])
    whole = [
        path for path, item in homes.items() if set(components(item).values()) == choice.components(item.name)
    ]
    found = []
    for name in names:
        interface = load(name)
        placed = components(interface)
        wanted: Collection[str] = [f for f, part in placed.items() if part in choice.components(name)]
        if name == LIBC:
            needed = imported(modules, whole)
            wanted = needed & interface.functions.keys() | _always(interface)
        found.append(interface if len(wanted) == len(interface.functions) else restrict(interface, wanted))
    return [*found, load(ORDER)]


def _always(interface: Interface) -> set[str]:
    """Functions that are reached from inside the C library."""
    return {name for name, function in interface.functions.items() if function.special == "exec"}


def text_of(
    program: Sequence[str], interfaces: Sequence[Interface], runs: Mapping[str, Run], most: int
) -> str:
    """An interface file that uses several, each with the functions that were called, most often first."""
    lines = [f"# Suggested by rr-py interface suggest for {os.path.basename(program[0])}.", "use = ["]
    for interface in interfaces:
        if interface.name == ORDER:
            continue
        if interface.functions.keys() == load(interface.name).functions.keys():
            lines.append(f'  "{interface.name}",')
            continue
        only = ", ".join(f'"{name}"' for name in interface.functions)
        lines.append(f'  {{ name = "{interface.name}", only = [{only}] }},')
    lines += ["]", ""]
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
