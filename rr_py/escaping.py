"""What a program takes from its environment past a library interface, with stacks.

The program is recorded at the system-call interface, which sees everything, and replayed for the stack of
every call that could come out otherwise. A call escapes when no function of the interface is on its stack.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from interfaces import abi
from interfaces.calls import BY_NAME, name_of
from interfaces.libspec import Interface
from interposer import elf

if TYPE_CHECKING:
    from recorder import RecordOptions
    from replayer import Session
    from replayer.backtrace import StackFrame
    from tracefile.chunk import EventView

MOST_STACKS = 2000
"""Stacks read in one check; further calls are only counted."""
MOST_PROGRAMS = 16
"""Processes, and programs they exec, that are looked at in one check."""
_OWN = (
    "brk",
    "mprotect",
    "munmap",
    "madvise",
    "mremap",
    "futex",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sigaltstack",
    "arch_prctl",
    "set_tid_address",
    "set_robust_list",
    "rseq",
    "exit",
    "exit_group",
    "sched_yield",
    "clone",
    "clone3",
    "fork",
    "vfork",
    "close",
    "membarrier",
    "restart_syscall",
)
_SAME_AGAIN = frozenset(BY_NAME[name].number for name in _OWN)
"""Calls that work on the program's own memory and threads: they come out the same by themselves."""
_MMAP, _WRITES = BY_NAME["mmap"].number, (BY_NAME["write"].number, BY_NAME["writev"].number)
_SHMAT = BY_NAME["shmat"].number
_MAP_SHARED, _MAP_ANONYMOUS = 1, 0x20
_LOADER = "ld-linux"
_BEGINNINGS = frozenset({"__libc_start_main", "clone", "__clone"})
"""Functions of the C library that call the program: nothing is missing where they are beneath it."""
_ALLOCATORS = frozenset(
    {"malloc", "calloc", "realloc", "free", "memalign", "posix_memalign", "aligned_alloc"}
)
_READS = {abi.Kind.RDTSC: "rdtsc", abi.Kind.CPUID: "cpuid", abi.Kind.SIGNAL: "signal"}


@dataclass(slots=True)
class Escape:
    """Calls that cross no function of the interface: `what` was called, how often, with how many bytes, from
    where (innermost first). `why` is a function of the library that the file lacks, or a kind of memory."""

    what: str
    stack: tuple[str, ...]
    why: str = ""
    calls: int = 0
    octets: int = 0


@dataclass(slots=True)
class Escapes:
    """What `check` found. `missing`: interface -> functions of its library that are imported and not in the
    file. `crossing`: calls beneath the interface. `loading`: calls of the dynamic linker. `unplaced`: calls
    whose stack could not be read; `unread`: those beyond MOST_STACKS. `programs` were looked at (processes,
    and what they exec), `further` ones were not."""

    escapes: list[Escape] = field(default_factory=list)
    missing: dict[str, list[str]] = field(default_factory=dict)
    crossing: int = 0
    loading: int = 0
    unplaced: int = 0
    unread: int = 0
    programs: int = 1
    further: int = 0
    notes: list[str] = field(default_factory=list)


def check(options: RecordOptions, interfaces: Sequence[Interface]) -> Escapes:
    """Record the program once and say what escapes the interfaces.

    Raises what recording and replaying raise: RecordError, LaunchError, ReplayError.
    """
    from recorder import record
    from tracefile import TraceReader

    found = Escapes()
    sorter = _Sorter(interfaces, found)
    modules: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="rr-py-check-") as folder:
        trace = Path(folder) / "trace.bin"
        record(options._replace(trace=trace))
        with TraceReader.open(trace) as reader:
            domains = [number for number in sorted(reader.domains) if reader.event_count(number)]
        found.programs = min(len(domains), MOST_PROGRAMS)
        found.further = len(domains) - found.programs
        left = MOST_STACKS
        for number in domains[:MOST_PROGRAMS]:
            left = _look(trace, number, left, sorter, modules)
    found.missing = missing(modules, interfaces)
    found.escapes = sorted(sorter.groups.values(), key=lambda escape: -escape.calls)
    return found


def _look(trace: Path, domain: int, most: int, sorter: _Sorter, modules: set[str]) -> int:
    """Sort what one program does, by at most `most` stacks; how many are left for others. Its modules are
    added to `modules`."""
    from replayer import Session
    from replayer.stacks import Collector, Wanted

    found = sorter.found
    with Session.open(trace, domain) as session:
        candidates, more = _candidates(session, could_differ, most)
        found.unread += more
        collector = Collector(session)
        for one in collector.collect(Wanted(event.number) for event in candidates):
            event = session.reader.event(domain, one.wanted.event)
            modules.update(frame.module for frame in one.frames if frame.module)
            sorter.add(event, one.frames)
        if collector.ended is not None and collector.ended.message:
            found.notes.append(collector.ended.message.splitlines()[0])
        collector.close()
        modules |= _loaded(session)
    return most - len(candidates)


def stacks(
    trace: Path, wanted: Callable[[EventView], bool]
) -> Iterator[tuple[EventView, Sequence[StackFrame]]]:
    """The first MOST_STACKS events of a recording's first process that are wanted, with their stacks."""
    from replayer import Session
    from replayer.stacks import Collector, Wanted

    with Session.open(trace) as session:
        candidates, _ = _candidates(session, wanted, MOST_STACKS)
        collector = Collector(session)
        for one in collector.collect(Wanted(event.number) for event in candidates):
            yield session.reader.event(session.domain, one.wanted.event), one.frames
        collector.close()


def _candidates(
    session: Session, wanted: Callable[[EventView], bool], most: int
) -> tuple[list[EventView], int]:
    """The first `most` events that are wanted, and how many more there are."""
    found: list[EventView] = []
    more = 0
    for number in range(session.reader.event_count(session.domain)):
        event = session.reader.event(session.domain, number)
        if wanted(event):
            if len(found) < most:
                found.append(event)
            else:
                more += 1
    return found, more


def could_differ(event: EventView) -> bool:
    """Whether a second run may get something else at this event, or does something to the world."""
    if event.kind in _READS:
        return True
    if event.kind not in (abi.Kind.SYSCALL, abi.Kind.RELEASE) or event.nr in _SAME_AGAIN:
        return False
    if event.nr == _MMAP and event.args[3] & _MAP_ANONYMOUS and not event.args[3] & _MAP_SHARED:
        return False
    return not (event.nr in _WRITES and event.args[0] in (1, 2))


class _Sorter:
    """Puts calls with their stacks where they belong."""

    def __init__(self, interfaces: Sequence[Interface], found: Escapes) -> None:
        self._interfaces = interfaces
        self.found = found
        self.groups: dict[tuple[str, tuple[str, ...]], Escape] = {}

    def add(self, event: EventView, frames: Sequence[StackFrame]) -> None:
        """Count one call."""
        native = [frame for frame in frames if frame.kind != "python"]
        if not native:
            self.found.unplaced += 1
            return
        if any(_LOADER in os.path.basename(native[end].module) for end in (0, -1)):
            self.found.loading += 1
            return
        if _allocates(native):
            return
        what = _READS.get(abi.Kind(event.kind), "") or name_of(event.nr)
        crossing, why = crossed(native, self._interfaces, what)
        if crossing:
            self.found.crossing += 1
            return
        if event.nr == _SHMAT or (event.nr == _MMAP and event.args[3] & _MAP_SHARED):
            why = why or "memory shared with others"
        elif event.nr == _MMAP:
            why = why or "a file in memory"
        stack = tuple(_line(frame) for frame in frames if frame.kind != "tail")
        group = self.groups.setdefault((what, stack), Escape(what, stack, why))
        group.calls += 1
        group.octets += sum(len(region.data) for region in event.regions)


def _allocates(frames: Sequence[StackFrame]) -> bool:
    """Whether it is the C library's allocator that calls: for its own memory, and a number to check it by."""
    return any(
        os.path.basename(frame.module).startswith("libc.so")
        and not _ALLOCATORS.isdisjoint(names_of(frame.module, frame.function))
        for frame in frames
    )


def crossed(
    frames: Sequence[StackFrame], interfaces: Sequence[Interface], what: str = ""
) -> tuple[bool, str]:
    """Whether a function of the interfaces is on the stack; if not, which one is missing from a file.

    `what` is the system call: the function of this name may be one that the dynamic linker chooses among
    several without a name (`time`).
    """
    why = ""
    for frame, caller in zip(frames, [*frames[1:], None], strict=True):
        interface = next((item for item in interfaces if is_library(frame.module, item)), None)
        if interface is None:
            continue
        names = names_of(frame.module, frame.function)
        from_outside = caller is not None and caller.module != frame.module
        if not names and from_outside:
            names = frozenset({what}) & _chosen(frame.module)
        if names & interface.functions.keys() or _is_internal(frame.function, interface):
            return True, ""
        if from_outside and names and not why and names.isdisjoint(_BEGINNINGS):
            why = f"{min(names, key=len)} is not in {interface.name}"
    return False, why


def _is_internal(name: str, interface: Interface) -> bool:
    """Whether the interface has a function of this name in the symbol table that is not exported."""
    function = interface.functions.get(name.partition("+")[0])
    return function is not None and function.symbol == function.name


def is_library(path: str, interface: Interface) -> bool:
    """Whether a module is the library of an interface."""
    name = os.path.basename(path)
    return any(name == soname or name.startswith(soname + ".") for soname in interface.libraries)


def names_of(path: str, function: str) -> frozenset[str]:
    """All names under which a library exports a function."""
    return _exports(path).get(function.partition("@")[0].partition("+")[0], frozenset())


@lru_cache(64)
def _exports(path: str) -> dict[str, frozenset[str]]:
    """Each name of a library's functions -> all names of the same function."""
    at: dict[int, set[str]] = {}
    try:
        for symbol in elf.parse(Path(path).read_bytes()).symbols():
            if symbol.value and symbol.is_function:
                at.setdefault(symbol.value, set()).add(symbol.name.partition("@")[0])
    except (OSError, elf.ElfError):
        pass
    return {name: frozenset(names) for names in at.values() for name in names}


@lru_cache(64)
def _chosen(path: str) -> frozenset[str]:
    """Functions of a library whose code is chosen when it is loaded."""
    try:
        symbols = elf.parse(Path(path).read_bytes()).symbols()
        return frozenset(symbol.name.partition("@")[0] for symbol in symbols if symbol.is_chosen)
    except (OSError, elf.ElfError):
        return frozenset()


def missing(modules: Iterable[str], interfaces: Sequence[Interface]) -> dict[str, list[str]]:
    """Interface -> functions of its library that other modules import and the file does not name."""
    imported: set[str] = set()
    defined: dict[str, set[str]] = {item.name: set() for item in interfaces}
    for path in dict.fromkeys(modules):
        home = next((item for item in interfaces if is_library(path, item)), None)
        if home is not None:
            defined[home.name].update(_exports(path))
            continue
        try:
            symbols = list(elf.parse(Path(path).read_bytes()).symbols())
        except (OSError, elf.ElfError):
            continue
        imported.update(symbol.name.partition("@")[0] for symbol in symbols if not symbol.value)
    return {item.name: sorted((defined[item.name] & imported) - item.functions.keys()) for item in interfaces}


def _loaded(session: Session) -> set[str]:
    """Files that the replaying process has in memory as code."""
    if (pause := session.paused) is None:
        return set()
    return {item.path for item in pause.mappings() if item.executable and item.path.startswith("/")}


def _line(frame: StackFrame) -> str:
    where = f"{os.path.basename(frame.file)}:{frame.line}" if frame.file and frame.line else ""
    return f"{frame.function or hex(frame.pc)} ({where or os.path.basename(frame.module)})"
