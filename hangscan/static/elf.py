"""Hang points of an ELF program: its call graph from event handlers to functions that block.

Calls are found by disassembly: direct calls and tail calls, calls through the PLT and the GOT, and calls to
what a function's address was just loaded into a register for. A function whose address a handler-taking
function (g_signal_connect_data, uv_read_start, ...) is given as an argument is a handler; so are Qt slots
(functions that qt_static_metacall calls) and C++ methods that override event handlers. Virtual calls to
classes that are not known from the call site are not followed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hangscan.static.blocking import Blocking
from hangscan.static.handlers import read_handlers
from hangscan.static.model import Found, HangPoint, Step
from replayer.demangle import demangle, short
from replayer.lines import Lines, Place

_ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_QT_HANDLER = re.compile(
    r"::(?:\w*Event|event|eventFilter|timerEvent|paint|data|run_handler|on_\w+_(?:clicked|triggered|toggled))$"
)
_OWN_LOOP = "an event loop of its own"
_WAITS = frozenset({"epoll_wait", "epoll_pwait", "poll", "ppoll", "select", "pselect", "__poll_chk"})
_NOT_GUI = re.compile(r"::(?:customEvent|childEvent)$")
_MAX_TEXT = 64 << 20
_LOOKBACK = 12


@dataclass(slots=True)
class _Function:
    name: str
    start: int
    end: int
    calls: list[tuple[int, int]] = field(default_factory=list)
    imports: list[tuple[int, str]] = field(default_factory=list)
    loops: list[tuple[int, int]] = field(default_factory=list)

    def event_loop(self) -> tuple[int, int] | None:
        """The smallest loop of the function in which it waits for events: first and last address."""
        waits = [at for at, name in self.imports if name in _WAITS]
        around = [loop for loop in self.loops if any(loop[0] <= at <= loop[1] for at in waits)]
        return min(around, key=lambda loop: loop[1] - loop[0], default=None)


def search_elf(path: Path, blocking: Blocking, found: Found) -> None:
    """Add the hang points of a program or library to `found`; what cannot be read becomes a note."""
    from elftools.common.exceptions import ELFError

    with path.open("rb") as stream:
        try:
            program = _Program(path, stream)
        except (ELFError, ValueError, KeyError, OSError) as error:
            found.notes.append(f"{path}: cannot be read as an x86-64 ELF file: {error}")
            return
        if not program.functions:
            found.notes.append(
                f"{path}: it has no function names and no unwind tables: nothing can be searched"
            )
            return
        if program.stripped:
            found.notes.append(f"{path}: it is stripped: functions are known by their addresses alone")
        program.disassemble()
        handlers = program.handlers()
        found.files += 1
        found.functions += len(program.functions)
        found.handlers += len(handlers)
        lines = Lines(stream)
        found.points.extend(_points(program, handlers, blocking, lines))


class _Program:
    """The functions of an ELF file and who calls whom."""

    def __init__(self, path: Path, stream: Any) -> None:
        from elftools.elf.elffile import ELFFile

        self.path = path
        self.elf = ELFFile(stream)
        if self.elf["e_machine"] != "EM_X86_64":
            raise ValueError(f"it is for {self.elf['e_machine']}")
        self.stripped = self.elf.get_section_by_name(".symtab") is None
        handlers = read_handlers()
        self.registrars, self.workers = handlers.registrars, handlers.workers
        self.slots = self._relocations()
        self.functions = self._functions()
        self.starts = [one.start for one in self.functions]
        self.by_start = {one.start: one for one in self.functions}
        self.by_name = {one.name: one.start for one in self.functions}
        self.stubs: dict[int, str] = {}
        self.taken: dict[int, str] = {}
        self.tables: dict[int, list[int]] = {}

    def at(self, address: int) -> _Function | None:
        """The function that holds an address."""
        index = bisect_right(self.starts, address) - 1
        if index >= 0 and address < self.functions[index].end:
            return self.functions[index]
        return None

    def _relocations(self) -> dict[int, str]:
        """Names of imported functions by the address of their GOT slot."""
        from elftools.elf.relocation import RelocationSection

        slots: dict[int, str] = {}
        for section in self.elf.iter_sections():
            if not isinstance(section, RelocationSection):
                continue
            symbols = self.elf.get_section(section["sh_link"])
            for relocation in section.iter_relocations():
                index = relocation["r_info_sym"]
                if index and hasattr(symbols, "get_symbol"):
                    symbol = symbols.get_symbol(index)
                    if symbol is not None and symbol.name:
                        slots[int(relocation["r_offset"])] = short(demangle(symbol.name))
        return slots

    def _functions(self) -> list[_Function]:
        named: dict[int, tuple[str, int]] = {}
        for name in (".dynsym", ".symtab"):
            section: Any = self.elf.get_section_by_name(name)
            if section is None:
                continue
            for symbol in section.iter_symbols():
                if (
                    symbol["st_info"]["type"] == "STT_FUNC"
                    and symbol["st_value"]
                    and symbol["st_shndx"] != "SHN_UNDEF"
                ):
                    named[int(symbol["st_value"])] = (short(demangle(symbol.name)), int(symbol["st_size"]))
        for start, size in self._unwind_entries():
            if start not in named:
                named[start] = (f"{self.path.name}+{start:#x}", size)
        found = []
        for start, (name, size) in sorted(named.items()):
            if size:
                found.append(_Function(name, start, start + size))
        return found

    def _unwind_entries(self) -> Iterator[tuple[int, int]]:
        from elftools.common.exceptions import DWARFError, ELFError
        from elftools.dwarf.callframe import FDE

        try:
            dwarf = self.elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
            if dwarf.has_EH_CFI():
                for entry in dwarf.EH_CFI_entries():
                    if isinstance(entry, FDE):
                        yield int(entry["initial_location"]), int(entry["address_range"])
        except (DWARFError, ELFError, ValueError, KeyError):
            return

    def disassemble(self) -> None:
        """Find all calls, and which functions' addresses are passed to which functions."""
        from capstone import CS_ARCH_X86, CS_MODE_64, Cs
        from capstone.x86 import X86_GRP_CALL, X86_GRP_JUMP

        machine = Cs(CS_ARCH_X86, CS_MODE_64)
        machine.detail = True
        for section in self.elf.iter_sections():
            if section["sh_flags"] & 4 and section.name.startswith(".plt"):
                self._stubs(machine, section.data(), int(section["sh_addr"]))
        texts = [
            (int(section["sh_addr"]), section.data())
            for section in self.elf.iter_sections()
            if section["sh_flags"] & 4
            and not section.name.startswith(".plt")
            and section["sh_size"] < _MAX_TEXT
        ]
        for function in self.functions:
            text = next(((at, data) for at, data in texts if at <= function.start < at + len(data)), None)
            if text is None:
                continue
            code = text[1][function.start - text[0] : function.end - text[0]]
            loaded: dict[str, tuple[int, int]] = {}
            for number, one in enumerate(machine.disasm(code, function.start)):
                groups = one.groups
                if X86_GRP_CALL in groups or (X86_GRP_JUMP in groups and one.mnemonic == "jmp"):
                    self._call(function, one, X86_GRP_CALL in groups, loaded, number)
                    if X86_GRP_CALL in groups:
                        loaded.clear()
                    self._loop(function, one)
                elif X86_GRP_JUMP in groups:
                    self._loop(function, one)
                elif one.mnemonic in ("lea", "mov"):
                    self._loads(one, loaded, number)

    def _stubs(self, machine: Any, code: bytes, start: int) -> None:
        entry = start
        for one in machine.disasm(code, start):
            slot = _memory_target(one)
            if one.mnemonic in ("jmp", "bnd jmp") and slot is not None:
                name = self.slots.get(slot)
                if name:
                    for address in range(entry, one.address + 1):
                        self.stubs.setdefault(address, name)
            if (one.address + one.size) % 16 == 0:
                entry = one.address + one.size

    def _call(
        self, function: _Function, one: Any, is_call: bool, loaded: dict[str, tuple[int, int]], number: int
    ) -> None:
        target = _target(one)
        name = ""
        if target is not None:
            name = self.stubs.get(target, "")
            callee = self.at(target) if not name else None
            if callee is not None and (is_call or callee is not function):
                if callee.start == target or is_call:
                    function.calls.append((one.address, callee.start))
                name = callee.name
        else:
            slot = _memory_target(one)
            if slot is not None:
                name = self.slots.get(slot, "")
        if not name:
            return
        if target is None or self.stubs.get(target):
            own = self.by_name.get(name)
            if own is not None:
                function.calls.append((one.address, own))
            else:
                function.imports.append((one.address, name))
        if name in self.registrars or name in self.workers:
            for register in _ARGUMENTS:
                value = loaded.get(register)
                if value is None or number - value[1] > _LOOKBACK:
                    continue
                if value[0] in self.by_start:
                    self.taken.setdefault(value[0], name)
                else:
                    self.tables.setdefault(value[0], []).append(one.address)

    def _loop(self, function: _Function, one: Any) -> None:
        """A jump back within the function closes a loop."""
        target = _target(one)
        if target is not None and function.start <= target < one.address:
            function.loops.append((target, one.address))

    def _loads(self, one: Any, loaded: dict[str, tuple[int, int]], number: int) -> None:
        """Remember which argument register holds which address."""
        if len(one.operands) != 2 or one.operands[0].type != 1:
            return
        register = _wide(one.reg_name(one.operands[0].reg))
        value: int | None = None
        if one.mnemonic == "lea":
            value = _memory_target(one)
        elif one.operands[1].type == 2:
            value = int(one.operands[1].imm)
        elif one.operands[1].type == 1:
            known = loaded.get(_wide(one.reg_name(one.operands[1].reg)))
            value = known[0] if known is not None else None
        if value is not None and value > 0xFFF:
            loaded[register] = (value, number)
        else:
            loaded.pop(register, None)

    def handlers(self) -> dict[int, tuple[str, str]]:
        """Functions that an event loop calls: start address to (why, toolkit)."""
        found: dict[int, tuple[str, str]] = {}
        for start, registrar in self.taken.items():
            if registrar in self.registrars:
                found[start] = (f"given to {registrar}", self.registrars[registrar])
        for table, _calls in self.tables.items():
            for start in self._function_pointers(table):
                found.setdefault(start, ("in a table of handlers", "GLib"))
        builder = "gtk_builder_connect_signals" in self.slots.values()
        for function in self.functions:
            if function.event_loop() is not None:
                found.setdefault(function.start, (_OWN_LOOP, ""))
            if builder and function.name.startswith("on_"):
                found.setdefault(function.start, ("named as a handler of GtkBuilder", "GLib"))
            if function.name.endswith("qt_static_metacall"):
                for _at, callee in function.calls:
                    found.setdefault(callee, ("a Qt slot", "Qt"))
            elif _QT_HANDLER.search(function.name) and not _NOT_GUI.search(function.name):
                found.setdefault(function.start, ("overrides an event handler", "Qt"))
        return found

    def _function_pointers(self, address: int, most: int = 2048, gap: int = 12) -> Iterator[int]:
        """Functions that a table in .data.rel.ro points at (GActionEntry, listeners)."""
        from elftools.elf.relocation import RelocationSection

        if not hasattr(self, "_relative"):
            self._relative: dict[int, int] = {}
            for section in self.elf.iter_sections():
                if isinstance(section, RelocationSection):
                    for relocation in section.iter_relocations():
                        if not relocation["r_info_sym"] and "r_addend" in relocation.entry:
                            self._relative[int(relocation["r_offset"])] = int(relocation["r_addend"])
        empty = 0
        for slot in range(address, address + 8 * most, 8):
            value = self._relative.get(slot)
            empty = empty + 1 if value is None else 0
            if empty > gap:
                return
            if value in self.by_start:
                yield value


def _target(one: Any) -> int | None:
    """Where a direct call or jump goes."""
    if len(one.operands) == 1 and one.operands[0].type == 2:
        return int(one.operands[0].imm)
    return None


def _memory_target(one: Any) -> int | None:
    """The address of a rip-relative memory operand."""
    for operand in one.operands:
        if operand.type == 3 and one.reg_name(operand.mem.base) == "rip":
            return int(one.address + one.size + operand.mem.disp)
    return None


def _wide(register: str | None) -> str:
    names = {"edi": "rdi", "esi": "rsi", "edx": "rdx", "ecx": "rcx", "r8d": "r8", "r9d": "r9", "eax": "rax"}
    return names.get(register or "", register or "")


def _points(
    program: _Program, handlers: dict[int, tuple[str, str]], blocking: Blocking, lines: Lines
) -> Iterable[HangPoint]:
    """The shortest way from any handler to each place that blocks."""
    workers = {start for start, registrar in program.taken.items() if registrar in program.workers}
    came: dict[int, tuple[int, int] | None] = {}
    queue: deque[int] = deque()
    told: set[tuple[int, str]] = set()
    for start in sorted(handlers):
        came[start] = None
        queue.append(start)
    while queue:
        start = queue.popleft()
        function = program.by_start[start]
        loop = function.event_loop() if handlers.get(start, ("",))[0] == _OWN_LOOP else None
        for at, name in function.imports:
            if loop is not None and (at < loop[0] or name in _WAITS):
                continue
            blocks = blocking.native(name)
            if blocks is not None and (start, name) not in told:
                told.add((start, name))
                path, first = _path(program, came, start, at, lines)
                why, toolkit = handlers[first]
                yield HangPoint(
                    blocks.kind, name, blocks.operation, blocks.advice(toolkit), why, path,
                    source=blocks.source,
                )  # fmt: skip
        for at, callee in function.calls:
            if loop is not None and at < loop[0]:
                continue
            if callee not in came and callee not in workers:
                came[callee] = (start, at)
                queue.append(callee)


def _path(
    program: _Program, came: dict[int, tuple[int, int] | None], start: int, at: int, lines: Lines
) -> tuple[tuple[Step, ...], int]:
    steps: list[Step] = []
    while True:
        name = program.by_start[start].name
        for place in lines.at(at) or [Place(str(program.path), 0)]:
            shown = short(demangle(place.function)) if place.function else name
            steps.append(Step(shown, place.file, place.line))
        before = came[start]
        if before is None:
            return tuple(reversed(steps)), start
        start, at = before
