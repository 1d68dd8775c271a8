"""Watching functions in a replay: which memory their calls change for the rest of the program.

The replay is stopped at each function's first instruction and where it returns; all writable memory is
compared. What lies in the function's own frame, in blocks that it allocated and freed, and in the C library's
own variables is the function's own business; everything else it changed is seen by the program.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from interfaces.abi import Kind
from interfaces.calls import BY_NAME
from interfaces.libspec.internal import Signature, Watched
from interposer import elf
from replayer.corelayout import hidden
from replayer.debuggee import Debuggee, Triggers, Why
from replayer.errors import ReplayError
from replayer.heap import Heap
from replayer.memory import Mappings, MemoryFault, read_u64
from tracefile import TraceReader

MOST_CALLS = 12
"""Calls of one function that are watched."""
MOST_MEMORY = 256 << 20
"""Bytes of writable memory that are compared at most."""
PATIENCE = 60.0
"""Seconds after which no further call is watched."""
_FIRST = 2
_WORDS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_SYSTEM = ("libc.so", "libc-", "ld-linux", "libpthread")
_LOADER = "ld-linux"
_EVERYWHERE = frozenset({"_IO_list_all", "__curbrk", "_dl_argv", "__rseq_offset"})
"""Exported variables of the C library that change with its own state."""
_JUMPS = ("longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", "__libc_longjmp", "__libc_siglongjmp")
_LINKAGE = (".got", ".got.plt")
_PT_TLS, _SHT_NOBITS = 7, 8
_OUTPUT = frozenset(BY_NAME[name].number for name in ("write", "writev", "pwrite64", "pwritev", "sendfile"))
_STATE = {
    BY_NAME[name].number: what
    for name, what in {
        "clone": "starts threads or processes",
        "clone3": "starts threads or processes",
        "fork": "starts threads or processes",
        "vfork": "starts threads or processes",
        "execve": "starts programs",
        "rt_sigaction": "sets a signal's handler",
        "rt_sigprocmask": "sets the signal mask",
        "setitimer": "sets a timer",
        "alarm": "sets a timer",
        "timer_create": "sets a timer",
        "prctl": "changes the process",
        "exit_group": "does not return",
        "exit": "does not return",
    }.items()
}
"""Calls whose effect on the process a function that is not entered would lack."""


@dataclass(frozen=True, slots=True)
class Target:
    """A function to be watched: its module's path, its linked address, and its prototype."""

    path: str
    address: int
    signature: Signature


@dataclass(slots=True)
class _Memory:
    """Writable memory at one moment."""

    pieces: dict[int, bytes]
    mapped: frozenset[tuple[int, int]]
    heap: tuple[int, int]
    stack: tuple[int, int]


@dataclass(slots=True)
class _Open:
    """A call that has begun."""

    target: Target
    event: int
    tid: int
    rsp: int
    back: int
    words: tuple[int, ...]
    texts: tuple[bool, ...]
    threads: int
    memory: _Memory


@dataclass(slots=True)
class _Module:
    """A loaded file: where it lies, and what its memory is."""

    path: str
    bias: int
    start: int
    end: int
    linkage: list[tuple[int, int]] = field(default_factory=list)
    variables: list[tuple[int, int, str]] = field(default_factory=list)
    thread_memory: tuple[int, int] = (0, 0)

    @property
    def system(self) -> bool:
        return is_system(self.path)


class Watch:
    """One replay in which functions are watched. `calls` counts those that began."""

    def __init__(self, trace: Path, targets: Sequence[Target], main: int) -> None:
        """`main` is the linked address of the program's main function, where its libraries are loaded."""
        self._targets = targets
        self._main = main
        self._reader = TraceReader.open(trace)
        self._open: list[_Open] = []
        self._modules: list[_Module] = []
        self.found: dict[str, list[Watched]] = {one.signature.name: [] for one in targets}
        self.calls: Counter[str] = Counter()

    def run(self) -> dict[str, list[Watched]]:
        """Replay and watch; function -> its calls. ReplayError where the replay cannot be stopped."""
        with self._reader:
            domain = min(self._reader.domains)
            total = self._reader.event_count(domain)
            self._domain = domain
            process = Debuggee.start(self._reader, domain, min(_FIRST, total), echo=None)
            try:
                self._run(process, total)
            finally:
                process.close()
        return self.found

    def _run(self, process: Debuggee, total: int) -> None:
        exe = self._reader.domains[self._domain].exe
        bias = _bias(process.mappings(), exe)
        if bias is None:
            raise ReplayError(f"{exe} is not mapped in its replay", "This is a defect: please report it.")
        if process.go(total, Triggers(frozenset({bias + self._main}))).why is not Why.BREAKPOINT:
            return
        places = {}
        for target in self._targets:
            where = _bias(process.mappings(), target.path)
            if where is not None:
                places[where + target.address] = target
        self._modules = list(_modules(process.mappings()))
        jumps = frozenset(_jumps(self._modules))
        until = monotonic() + PATIENCE
        while (places or self._open) and monotonic() < until:
            stops = frozenset(places)
            if self._open:
                stops |= jumps | {one.back for one in self._open}
            stop = process.go(total, Triggers(stops), over=True)
            if stop.why is not Why.BREAKPOINT:
                break
            registers = process.state(process.tid).registers
            if registers.rip in jumps:
                for left in self._open:
                    self._note(left, Watched(left.words, 0, problems=("is left by a jump",)))
                self._open.clear()
            self._returned(process, stop.event, registers.rsp, registers.rip, registers.rax)
            if (entered := places.get(registers.rip)) is not None:
                name = entered.signature.name
                self.calls[name] += 1
                if self.calls[name] > MOST_CALLS:
                    del places[registers.rip]
                else:
                    self._enter(process, entered, stop.event)
        for left in self._open:
            self._note(left, Watched(left.words, 0, problems=("was not seen to return",)))

    def _enter(self, process: Debuggee, target: Target, event: int) -> None:
        registers = process.state(process.tid).registers
        words = tuple(int(getattr(registers, name)) for name in _WORDS)
        count = sum(shape.kind != "floating" for _, shape in target.signature.parameters)
        words = words[:count]
        memory = _memory(process)
        if memory is None:
            self._note_name(target, Watched(words, 0, problems=("runs in a program with too much memory",)))
            return
        texts = tuple(_is_text(process, word) for word in words)
        back = read_u64(process, registers.rsp)
        self._open.append(
            _Open(
                target, event, process.tid, registers.rsp, back, words, texts, len(process.threads()), memory
            )
        )

    def _returned(self, process: Debuggee, event: int, rsp: int, rip: int, result: int) -> None:
        """Close the calls that have returned here (several where one was the last thing another did), and
        those within them that never will."""
        while self._open and any(
            one.back == rip and one.rsp + 8 == rsp and one.tid == process.tid for one in self._open
        ):
            call = self._open.pop()
            if call.back == rip and call.rsp + 8 == rsp:
                self._note(call, self._compare(process, call, event, result))
                continue
            self._note(call, Watched(call.words, 0, problems=("was not seen to return",)))

    def _note(self, call: _Open, watched: Watched) -> None:
        self._note_name(call.target, watched)

    def _note_name(self, target: Target, watched: Watched) -> None:
        self.found[target.signature.name].append(watched)

    # ---- what a call did ----

    def _compare(self, process: Debuggee, call: _Open, event: int, result: int) -> Watched:
        problems = list(self._events(call, event))
        if call.threads > 1 or len(process.threads()) > 1:
            problems.append("runs in a program with several threads")
        after = _memory(process)
        if after is None:
            return Watched(call.words, result, problems=("runs in a program with too much memory",))
        if (lost := _mapped_otherwise(call.memory, after)) is not None:
            problems.append(lost)
        judge = _Judge(self._modules, call, after, process.state(process.tid).fs_base)
        changed = list(judge.changed(call.memory, after))
        behind = call.target.signature.returns.target
        returned = judge.what(process, result) if behind is not None and behind.is_char else ""
        if judge.blocks_kept - ({result} if returned == "new text" else set()):
            problems.append("keeps memory that it allocated")
        if judge.blocks_gone:
            problems.append("frees or moves memory of the program")
        return Watched(call.words, result, tuple(changed), tuple(problems), call.texts, returned)

    def _events(self, call: _Open, event: int) -> Iterator[str]:
        """What its system calls did to the process."""
        for number in range(call.event, event):
            one = self._reader.event(self._domain, number)
            if one.kind == Kind.SIGNAL:
                yield "was interrupted by a signal"
            if one.kind not in (Kind.SYSCALL, Kind.RELEASE):
                continue
            if one.nr in _OUTPUT and one.args[0] in (1, 2):
                yield "prints"
            elif one.nr in _STATE:
                yield _STATE[one.nr]


class _Judge:
    """Says of changed memory whose it is."""

    def __init__(self, modules: Sequence[_Module], call: _Open, after: _Memory, fs_base: int) -> None:
        self._modules, self._call, self._fs = modules, call, fs_base
        self._before = _heap(call.memory)
        self._after = _heap(after)
        self._heap = after.heap
        self._stack = after.stack
        self.blocks_kept: set[int] = set()
        self.blocks_gone = False
        self._same: frozenset[tuple[int, int]] = frozenset()
        if self._before is not None and self._after is not None:
            held = {(block.start, block.size) for block in self._before.blocks if block.held}
            now = {(block.start, block.size) for block in self._after.blocks if block.held}
            self._same = frozenset(held & now)
            self.blocks_kept = {start + 16 for start, _ in now - held}
            self.blocks_gone = bool(held - now)

    def changed(self, before: _Memory, after: _Memory) -> Iterator[tuple[int, int, str]]:
        """Ranges that the rest of the program can see, and where they are."""
        for start, size in _differences(before, after):
            yield from self._place(start, size)

    def _place(self, start: int, size: int) -> Iterator[tuple[int, int, str]]:
        end = start + size
        if self._stack[0] <= start < self._stack[1]:
            begin = max(start, self._call.rsp + 8)
            if begin < end:
                yield begin, end - begin, "its caller's variables"
        elif self._heap[0] <= start < self._heap[1]:
            yield from self._in_heap(start, end)
        else:
            module = next((one for one in self._modules if one.start <= start < one.end), None)
            if module is not None:
                yield from self._in_module(module, start, end)
            elif not self._thread_memory(start, end):
                yield start, size, "memory of the program"

    def _in_heap(self, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        if self._after is None or self._before is None:
            yield start, end - start, "the heap"
            return
        while start < end:
            block = self._after.at(start)
            if block is None:
                return
            stop = min(end, block.start + block.size)
            begin = max(start, block.start + 8)
            known = (block.start, block.size) in self._same and block is not self._after.keeper
            if known and max(begin, block.memory) < stop:
                begin = max(begin, block.memory)
                yield begin, stop - begin, "an object on the heap"
            start = stop

    def _in_module(self, module: _Module, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        if any(low <= start and end <= high for low, high in module.linkage):
            return
        target = self._call.target
        first, last = start - module.bias, end - module.bias
        if module.path == target.path and any(
            low <= first and last <= low + length for low, length in target.signature.statics
        ):
            return
        name = next((name for low, high, name in module.variables if low < end and start < high), "")
        if module.system:
            if name and name not in _EVERYWHERE:
                yield start, end - start, f"{name} of the C library"
            return
        where = os.path.basename(module.path)
        yield start, end - start, f"the variable {name}" if name else f"a variable of {where}"

    def _thread_memory(self, start: int, end: int) -> bool:
        """Whether it is the C library's own memory of the thread (errno, what the allocator keeps)."""
        if not any(low <= self._fs < high for low, high in self._call.memory.mapped if low <= start < high):
            return False
        if start >= self._fs:
            return True
        own = next((one.thread_memory for one in self._modules if one.thread_memory[0]), (0, 0))
        first = self._modules[0].thread_memory if self._modules else own
        if first[0] and end > self._fs - _rounded(*first):
            return False
        others = [one for one in self._modules[1:] if one.thread_memory[0] and not one.system]
        return not others or end - start <= 4

    def what(self, process: Debuggee, result: int) -> str:
        """What a result, as an address, points to."""
        if not _is_text(process, result):
            return ""
        if result in self.blocks_kept:
            return "new text"
        return "text"


def is_system(path: str) -> bool:
    """Whether a file is the C library or the dynamic linker."""
    return os.path.basename(path).startswith(_SYSTEM)


def _rounded(size: int, align: int) -> int:
    return -(-size // max(align, 1)) * max(align, 1)


def _memory(process: Debuggee) -> _Memory | None:
    """All writable memory of the program; None where that is too much."""
    pieces: dict[int, bytes] = {}
    mapped = set()
    heap = stack = (0, 0)
    rsp = process.state(process.tid).registers.rsp
    total = 0
    for one in process.mappings():
        if hidden(one.start) or one.path in ("[vvar]", "[vdso]", "[vsyscall]"):
            continue
        mapped.add((one.start, one.end))
        if not one.writable:
            continue
        start = one.start
        if one.start <= rsp < one.end:
            stack, start = (one.start, one.end), rsp & ~15
        total += one.end - start
        if total > MOST_MEMORY:
            return None
        with suppress(MemoryFault):
            pieces[start] = process.read(start, one.end - start)
    for start, data in pieces.items():
        if len(data) > 16 and struct.unpack_from("<Q", data, 8)[0] == 0x291 and start & 4095 == 0:
            heap = (start, start + len(data))
    return _Memory(pieces, frozenset(mapped), heap, stack)


def _heap(memory: _Memory) -> Heap | None:
    start, _ = memory.heap
    if not start:
        return None
    try:
        return Heap(start, memory.pieces[start])
    except ValueError:
        return None


def _mapped_otherwise(before: _Memory, after: _Memory) -> str | None:
    """What is wrong where memory was mapped or unmapped; the heap and the stack may grow."""

    def rest(one: _Memory) -> set[tuple[int, int]]:
        own = {before.heap[0], after.heap[0]} - {0}
        stacks = {before.stack[1], after.stack[1]}
        return {(low, high) for low, high in one.mapped if low not in own and high not in stacks}

    if rest(after) - rest(before):
        return "leaves memory mapped"
    return "unmaps memory of the program" if rest(before) - rest(after) else None


def _differences(before: _Memory, after: _Memory) -> Iterator[tuple[int, int]]:
    """Ranges of what was writable at both moments that hold something else."""
    later = sorted(after.pieces.items())
    for start, data in before.pieces.items():
        for low, other in later:
            begin, end = max(start, low), min(start + len(data), low + len(other))
            if begin < end:
                mine = memoryview(data)[begin - start : end - start]
                yield from _differing(begin, mine, memoryview(other)[begin - low : end - low])


def _differing(start: int, data: memoryview, other: memoryview) -> Iterator[tuple[int, int]]:
    """Ranges of two memories of one length, from an address on, that differ."""
    if data == other:
        return
    at = np.flatnonzero(np.frombuffer(data, np.uint8) != np.frombuffer(other, np.uint8))
    breaks = np.flatnonzero(np.diff(at) > 1)
    firsts = at[np.concatenate(([0], breaks + 1))].tolist()
    lasts = at[np.concatenate((breaks, [len(at) - 1]))].tolist()
    for first, last in zip(firsts, lasts, strict=True):
        yield start + first, last - first + 1


def _is_text(process: Debuggee, address: int) -> bool:
    """Whether there is a text that ends at an address."""
    if address < 4096:
        return False
    for size in (4096, 4096 - address % 4096):
        with suppress(MemoryFault):
            head, zero, _ = process.read(address, size).partition(b"\0")
            return bool(zero) and all(byte >= 32 or byte in b"\t\n\r\x1b" for byte in head)
    return False


def _bias(mappings: Mappings, path: str) -> int | None:
    """What is added to a file's linked addresses."""
    first = next((one for one in mappings if one.path == path and one.offset == 0), None)
    if first is None:
        return None
    try:
        image = elf.parse(Path(path).read_bytes())
    except (OSError, elf.ElfError):
        return None
    return first.start - min((one.vaddr & ~4095 for one in image.loads()), default=0)


def _modules(mappings: Mappings) -> Iterator[_Module]:
    """The loaded files, in the order of their addresses but the program first."""
    paths = dict.fromkeys(one.path for one in mappings if one.executable and one.path.startswith("/"))
    for path in paths:
        bias = _bias(mappings, path)
        if bias is None:
            continue
        image = elf.parse(Path(path).read_bytes())
        loads = image.loads()
        module = _Module(
            path,
            bias,
            bias + min(one.vaddr for one in loads) & ~4095,
            -(-(bias + max(one.vaddr + one.memsz for one in loads)) // 4096) * 4096,
        )
        _describe(module)
        yield module


def _describe(module: _Module) -> None:
    """Read the sections and variables of a module's file."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    with suppress(OSError, ELFError), open(module.path, "rb") as stream:
        file = ELFFile(stream)
        for section in file.iter_sections():
            if section.name in _LINKAGE:
                low = module.bias + int(section["sh_addr"])
                module.linkage.append((low, low + int(section["sh_size"])))
        for segment in file.iter_segments():
            if segment["p_type"] == "PT_TLS":
                module.thread_memory = (int(segment["p_memsz"]), int(segment["p_align"]))
        if os.path.basename(module.path).startswith(_LOADER):
            return
        tables: Iterable[str] = (".dynsym",) if module.system else (".symtab", ".dynsym")
        for name in tables:
            table: Any = file.get_section_by_name(name)
            if table is None:
                continue
            for symbol in table.iter_symbols():
                if symbol["st_info"]["type"] == "STT_OBJECT" and symbol["st_value"] and symbol["st_size"]:
                    low = module.bias + int(symbol["st_value"])
                    module.variables.append((low, low + int(symbol["st_size"]), str(symbol.name)))
            break


def _jumps(modules: Sequence[_Module]) -> Iterator[int]:
    """Where functions begin that leave others without returning: what they jump to may look like a return."""
    for module in modules:
        if module.system:
            known = symbols(module.path)
            yield from (module.bias + known[name] for name in _JUMPS if name in known)


def symbols(path: str) -> Mapping[str, int]:
    """Functions of a file's symbol table by name: linked addresses; names that several have are left out."""
    found: dict[str, int] = {}
    twice: set[str] = set()
    try:
        for symbol in elf.parse(Path(path).read_bytes()).symbols():
            if symbol.is_function and symbol.value:
                name = symbol.name.partition("@")[0]
                if found.setdefault(name, symbol.value) != symbol.value:
                    twice.add(name)
    except (OSError, elf.ElfError):
        return {}
    return {name: address for name, address in found.items() if name not in twice}
