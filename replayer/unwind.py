"""Native backtraces: from one thread's registers, memory and mappings to its frames.

Each step uses call-frame information where the code has it, else the frame pointer; a stack that cannot be
followed further ends, it never loops. Works on anything that is a `Memory`: live process, core file, test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replayer.cfi import CfiError, How, Row, Rule, evaluate, lookup
from replayer.memory import Mapping, Mappings, Memory, MemoryFault, read_u64
from replayer.registers import RBP, RIP, RSP, Registers
from replayer.symbols import Module, Modules, Opener, Symbol, open_path

_MASK = (1 << 64) - 1
_CALLEE_SAVED = (3, 6, 12, 13, 14, 15)
_MAX_FRAME = 1 << 30


@dataclass(frozen=True, slots=True)
class Frame:
    """One activation. `pc` is where it goes on; `sp` its stack pointer; `module` a path, "" where unknown.

    `offset` is the pc relative to the module's load bias (what addr2line wants); `signal` says that the frame
    is the trampoline a signal handler returns to.
    """

    index: int
    pc: int
    sp: int
    module: str = ""
    offset: int = 0
    symbol: Symbol | None = None
    signal: bool = False

    def __str__(self) -> str:
        name = "<signal handler called>" if self.signal else str(self.symbol) if self.symbol else "??"
        place = f" in {self.module}" if self.module else ""
        return f"#{self.index:<2} {self.pc:#018x} {name}{place}"


class Unwinder:
    """Backtraces of the threads of one address space, as it is mapped now."""

    def __init__(
        self,
        memory: Memory,
        mappings: Sequence[Mapping],
        opener: Opener = open_path,
        previous: Unwinder | None = None,
    ) -> None:
        """`opener` maps a mapping's path to a descriptor of the file; `previous` lends its parsed modules."""
        self._memory = memory
        self._mappings = mappings if isinstance(mappings, Mappings) else Mappings(mappings)
        lent = previous.modules if previous is not None else None
        self.modules: Modules = Modules(memory, self._mappings, opener, lent)
        self._rows: dict[int, Row | None] = {}

    @property
    def memory(self) -> Memory:
        """The memory of the address space."""
        return self._memory

    def backtrace(self, registers: Registers, limit: int = 256) -> list[Frame]:
        """The frames from the innermost out, at most `limit`."""
        values = registers.by_dwarf()
        frames: list[Frame] = []
        exact = True
        while len(frames) < limit:
            pc, sp = values[RIP], values[RSP]
            module = self.modules.at(pc)
            row = self._row(module, pc if exact else pc - 1)
            signal = row is not None and row.signal_frame
            frames.append(self._frame(len(frames), pc, sp, module, exact or signal, signal))
            caller = self._step(values, row, first=len(frames) == 1)
            if caller is None or caller[RIP] == 0:
                break
            if caller[RSP] <= sp and not signal:
                break
            values = caller
            exact = signal
        return frames

    def _frame(self, index: int, pc: int, sp: int, module: Module | None, exact: bool, signal: bool) -> Frame:
        if module is None:
            mapping = self._mappings.at(pc)
            return Frame(index, pc, sp, mapping.path if mapping else "", signal=signal)
        symbol = module.symbol(pc if exact else pc - 1)
        if symbol is not None and not exact:
            symbol = Symbol(symbol.name, symbol.offset + 1)
        return Frame(index, pc, sp, module.path, pc - module.bias, symbol, signal)

    def _row(self, module: Module | None, pc: int) -> Row | None:
        if module is None:
            return None
        if pc not in self._rows:
            self._rows[pc] = lookup(module.frames(), pc)
        return self._rows[pc]

    def _step(self, values: dict[int, int], row: Row | None, first: bool) -> dict[int, int] | None:
        """The caller's registers, or None where the stack ends or cannot be followed."""
        try:
            if row is not None:
                return self._by_rules(values, row)
            if first and self._mappings.at(values[RIP]) is None:
                return self._after_bad_call(values)
            return self._by_frame_pointer(values)
        except (CfiError, MemoryFault):
            return None

    def _by_rules(self, values: dict[int, int], row: Row) -> dict[int, int] | None:
        if row.cfa_code is not None:
            cfa = evaluate(row.cfa_code, values, self._memory)
        elif row.cfa_register in values:
            cfa = values[row.cfa_register] + row.cfa_offset & _MASK
        else:
            raise CfiError(f"the CFA is in register {row.cfa_register}")
        back = row.rules.get(row.return_column)
        if back is None or back.how is How.UNDEFINED:
            return None
        caller = dict(values)
        caller[RSP] = cfa
        for register, rule in row.rules.items():
            if register <= RIP:
                caller[register] = self._apply(rule, register, cfa, values)
        caller[RIP] = self._apply(back, row.return_column, cfa, values)
        return caller

    def _apply(self, rule: Rule, register: int, cfa: int, values: dict[int, int]) -> int:
        match rule.how:
            case How.OFFSET:
                return read_u64(self._memory, cfa + rule.value & _MASK)
            case How.VAL_OFFSET:
                return cfa + rule.value & _MASK
            case How.REGISTER:
                return values.get(rule.value, 0)
            case How.EXPRESSION:
                return read_u64(self._memory, evaluate(rule.code, values, self._memory, cfa))
            case How.VAL_EXPRESSION:
                return evaluate(rule.code, values, self._memory, cfa)
            case _:
                return values.get(register, 0)

    def _after_bad_call(self, values: dict[int, int]) -> dict[int, int]:
        """The pc is nowhere (a call through a bad pointer): the caller's address is on top of the stack."""
        caller = dict(values)
        caller[RIP] = read_u64(self._memory, values[RSP])
        caller[RSP] = values[RSP] + 8
        return caller

    def _by_frame_pointer(self, values: dict[int, int]) -> dict[int, int] | None:
        frame, sp = values[RBP], values[RSP]
        if not sp <= frame <= sp + _MAX_FRAME or frame % 8:
            return None
        back = read_u64(self._memory, frame + 8)
        mapping = self._mappings.at(back)
        if mapping is None or not mapping.executable:
            return None
        caller = {register: values[register] for register in _CALLEE_SAVED}
        caller |= {register: 0 for register in values if register not in caller}
        caller[RBP] = read_u64(self._memory, frame)
        caller[RSP] = frame + 16
        caller[RIP] = back
        return caller
