"""Call-frame information: from a program counter to the rules that restore the caller's registers.

Reads .eh_frame through the binary search table of .eh_frame_hdr, out of the process's own memory, so that
one lookup costs one FDE and not the parsing of a library; and .debug_frame (Go, or code without .eh_frame)
out of a file. The rules are evaluated by `unwind`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import IntEnum

from replayer.memory import Memory, MemoryFault

_MASK = (1 << 64) - 1
_MAX_ENTRY = 1 << 20
_MAX_ENTRIES = 1 << 20


class CfiError(Exception):
    """Call-frame information that cannot be understood; the caller falls back to frame pointers."""


class How(IntEnum):
    """How a register of the caller is found."""

    UNDEFINED = 0
    SAME = 1
    OFFSET = 2  # saved at CFA + value
    VAL_OFFSET = 3  # is CFA + value
    REGISTER = 4  # is in another register
    EXPRESSION = 5  # saved at the address an expression gives
    VAL_EXPRESSION = 6  # is what an expression gives


@dataclass(frozen=True, slots=True)
class Rule:
    """One register's rule; `value` is an offset in bytes or a register number, `code` a DWARF expression."""

    how: How
    value: int = 0
    code: bytes = b""


@dataclass(slots=True)
class Row:
    """The rules that hold at one address. The CFA is register + offset, or an expression."""

    cfa_register: int = 7
    cfa_offset: int = 8
    cfa_code: bytes | None = None
    rules: dict[int, Rule] = field(default_factory=dict)
    return_column: int = 16
    signal_frame: bool = False

    def copy(self) -> Row:
        """A row that can be changed without changing this one."""
        return Row(
            self.cfa_register,
            self.cfa_offset,
            self.cfa_code,
            dict(self.rules),
            self.return_column,
            self.signal_frame,
        )


class Cursor:
    """Reads little-endian numbers out of bytes; CfiError at the end. `address` is where data[0] lies."""

    def __init__(self, data: bytes, address: int, position: int = 0) -> None:
        self.data = data
        self.address = address
        self.position = position

    def number(self, size: int, signed: bool = False) -> int:
        """A fixed-size integer."""
        end = self.position + size
        if end > len(self.data):
            raise CfiError("call-frame information ends early")
        value = int.from_bytes(self.data[self.position : end], "little", signed=signed)
        self.position = end
        return value

    def uleb(self) -> int:
        """An unsigned LEB128 number, at most 64 bits are meaningful."""
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 70:
                raise CfiError("a LEB128 number of more than 10 bytes")

    def sleb(self) -> int:
        """A signed LEB128 number."""
        start = self.position
        value = self.uleb()
        bits = 7 * (self.position - start)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

    def block(self) -> bytes:
        """Bytes with a ULEB128 length before them."""
        size = self.uleb()
        end = self.position + size
        if end > len(self.data):
            raise CfiError("a block lies outside its entry")
        result = self.data[self.position : end]
        self.position = end
        return result

    def string(self) -> bytes:
        """Bytes up to a NUL, which is consumed."""
        end = self.data.find(b"\0", self.position)
        if end < 0:
            raise CfiError("a string without an end")
        result = self.data[self.position : end]
        self.position = end + 1
        return result

    def pointer(self, encoding: int, data_base: int = 0) -> int:
        """A pointer in a DW_EH_PE encoding (indirect ones are returned as the address of the pointer)."""
        if encoding == 0xFF:
            return 0
        here = self.address + self.position
        form = encoding & 0x0F
        if form == 0x01:
            value = self.uleb()
        elif form == 0x09:
            value = self.sleb()
        elif form in _FIXED:
            value = self.number(*_FIXED[form])
        else:
            raise CfiError(f"pointer encoding {encoding:#x}")
        base = encoding & 0x70
        if base == 0x10:
            value += here
        elif base == 0x30:
            value += data_base
        elif base not in (0x00, 0x50):
            raise CfiError(f"pointer encoding {encoding:#x}")
        return value & _MASK


_FIXED = {
    0x00: (8, False), 0x02: (2, False), 0x03: (4, False), 0x04: (8, False),
    0x0A: (2, True), 0x0B: (4, True), 0x0C: (8, True),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cie:
    """What many FDEs share."""

    code_align: int
    data_align: int
    return_column: int
    encoding: int
    augmented: bool
    signal_frame: bool
    instructions: bytes


@dataclass(frozen=True, slots=True)
class Fde:
    """The frame description of one range of addresses (run-time addresses)."""

    start: int
    end: int
    cie: Cie
    instructions: bytes
    instructions_at: int

    def row(self, pc: int) -> Row:
        """The rules at `pc`; CfiError for instructions that are not understood."""
        row = Row(return_column=self.cie.return_column, signal_frame=self.cie.signal_frame)
        _run(self.cie.instructions, 0, self.cie, self.start, None, row, Row())
        initial = row.copy()
        _run(self.instructions, self.instructions_at, self.cie, self.start, pc, row, initial)
        return row


def _run(code: bytes, address: int, cie: Cie, location: int, pc: int | None, row: Row, initial: Row) -> None:
    """Carry out call-frame instructions on `row` until the row of `pc` is complete (None: all of them)."""
    cursor = Cursor(code, address)
    saved: list[Row] = []
    while cursor.position < len(code):
        op = cursor.number(1)
        high, low = op & 0xC0, op & 0x3F
        advance = 0
        if high == 0x40:
            advance = low
        elif high == 0x80:
            row.rules[low] = Rule(How.OFFSET, cursor.uleb() * cie.data_align)
        elif high == 0xC0:
            _restore(row, initial, low)
        elif low == 0x01:
            target = cursor.pointer(cie.encoding)
            if pc is not None and target > pc:
                return
            location = target
        elif low in (0x02, 0x03, 0x04):
            advance = cursor.number(1 << (low - 2))
        elif low == 0x0A:
            saved.append(row.copy())
        elif low == 0x0B:
            if not saved:
                raise CfiError("a state is restored that was never remembered")
            old = saved.pop()
            row.cfa_register, row.cfa_offset, row.cfa_code = old.cfa_register, old.cfa_offset, old.cfa_code
            row.rules = old.rules
        else:
            _change(low, cursor, cie, row, initial)
        if advance:
            location += advance * cie.code_align
            if pc is not None and location > pc:
                return


def _restore(row: Row, initial: Row, register: int) -> None:
    if register in initial.rules:
        row.rules[register] = initial.rules[register]
    else:
        row.rules.pop(register, None)


def _change(op: int, cursor: Cursor, cie: Cie, row: Row, initial: Row) -> None:
    """The instructions that change the CFA or one register's rule."""
    if op == 0x00:
        return
    if op == 0x0C:
        row.cfa_register, row.cfa_offset, row.cfa_code = cursor.uleb(), cursor.uleb(), None
    elif op == 0x0D:
        row.cfa_register, row.cfa_code = cursor.uleb(), None
    elif op == 0x0E:
        row.cfa_offset = cursor.uleb()
    elif op == 0x0F:
        row.cfa_code = cursor.block()
    elif op == 0x12:
        row.cfa_register, row.cfa_offset, row.cfa_code = cursor.uleb(), cursor.sleb() * cie.data_align, None
    elif op == 0x13:
        row.cfa_offset = cursor.sleb() * cie.data_align
    elif op == 0x2E:
        cursor.uleb()
    elif op in _REGISTER_OPS:
        register = cursor.uleb()
        if op == 0x05:
            row.rules[register] = Rule(How.OFFSET, cursor.uleb() * cie.data_align)
        elif op == 0x06:
            _restore(row, initial, register)
        elif op == 0x07:
            row.rules[register] = Rule(How.UNDEFINED)
        elif op == 0x08:
            row.rules[register] = Rule(How.SAME)
        elif op == 0x09:
            row.rules[register] = Rule(How.REGISTER, cursor.uleb())
        elif op == 0x10:
            row.rules[register] = Rule(How.EXPRESSION, code=cursor.block())
        elif op == 0x11:
            row.rules[register] = Rule(How.OFFSET, cursor.sleb() * cie.data_align)
        elif op == 0x14:
            row.rules[register] = Rule(How.VAL_OFFSET, cursor.uleb() * cie.data_align)
        elif op == 0x15:
            row.rules[register] = Rule(How.VAL_OFFSET, cursor.sleb() * cie.data_align)
        elif op == 0x16:
            row.rules[register] = Rule(How.VAL_EXPRESSION, code=cursor.block())
        else:
            row.rules[register] = Rule(How.OFFSET, -cursor.uleb() * cie.data_align)
    else:
        raise CfiError(f"call-frame instruction {op:#x}")


_REGISTER_OPS = frozenset({0x05, 0x06, 0x07, 0x08, 0x09, 0x10, 0x11, 0x14, 0x15, 0x16, 0x2F})


def _read_entry(memory: Memory, address: int) -> tuple[Cursor, int]:
    """The CIE or FDE at `address`: a cursor behind its length, and the address of what follows it."""
    size = int.from_bytes(memory.read(address, 4), "little")
    head = 4
    if size == 0xFFFFFFFF:
        size = int.from_bytes(memory.read(address + 4, 8), "little")
        head = 12
    if not 0 < size <= _MAX_ENTRY:
        raise CfiError(f"an entry of {size} bytes at {address:#x}")
    return Cursor(memory.read(address + head, size), address + head), address + head + size


def _parse_cie(cursor: Cursor, eh: bool) -> Cie:
    """The CIE whose id was just read."""
    version = cursor.number(1)
    augmentation = cursor.string()
    if version >= 4:
        cursor.number(2)
    code_align, data_align = cursor.uleb(), cursor.sleb()
    return_column = cursor.number(1) if version == 1 else cursor.uleb()
    encoding = 0
    signal_frame = False
    augmented = augmentation.startswith(b"z")
    if augmented:
        size = cursor.uleb()
        end = cursor.position + size
        for letter in augmentation[1:]:
            if letter == ord("R"):
                encoding = cursor.number(1)
            elif letter == ord("P"):
                cursor.pointer(cursor.number(1))
            elif letter == ord("L"):
                cursor.number(1)
            elif letter == ord("S"):
                signal_frame = True
            elif letter != ord("B"):
                break
        cursor.position = end
    elif augmentation and eh:
        raise CfiError(f"CIE augmentation {augmentation!r}")
    return Cie(
        code_align,
        data_align,
        return_column,
        encoding,
        augmented,
        signal_frame,
        cursor.data[cursor.position :],
    )


class EhFrame:
    """The .eh_frame of one loaded module, found through its .eh_frame_hdr at `header` (run-time address)."""

    def __init__(self, memory: Memory, header: int, size: int) -> None:
        """Read the search table; CfiError when it is of an unknown kind, MemoryFault at a hole."""
        self._memory = memory
        self._cies: dict[int, Cie] = {}
        head = Cursor(memory.read(header, size), header)
        version, frame_encoding, count_encoding, table_encoding = (head.number(1) for _ in range(4))
        if version != 1 or table_encoding != 0x3B or count_encoding == 0xFF:
            raise CfiError(f"an .eh_frame_hdr of version {version} with table encoding {table_encoding:#x}")
        head.pointer(frame_encoding, header)
        count = head.pointer(count_encoding, header)
        count = min(count, (size - head.position) // 8)
        self._header = header
        self._table = memoryview(head.data)[head.position : head.position + count * 8].cast("i")
        self._count = count

    def find(self, pc: int) -> Fde | None:
        """The FDE that covers `pc`, or None; CfiError when it cannot be understood."""
        relative = pc - self._header
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if self._table[2 * middle] <= relative:
                low = middle + 1
            else:
                high = middle
        if not low:
            return None
        fde = self._parse(self._header + self._table[2 * low - 1])
        return fde if fde.start <= pc < fde.end else None

    def _parse(self, address: int) -> Fde:
        cursor, _next = _read_entry(self._memory, address)
        here = cursor.address + cursor.position
        distance = cursor.number(4)
        if not distance:
            raise CfiError(f"a CIE where an FDE is expected, at {address:#x}")
        cie = self._cie(here - distance)
        start = cursor.pointer(cie.encoding)
        length = cursor.pointer(cie.encoding & 0x0F)
        if cie.augmented:
            cursor.block()
        return Fde(
            start, start + length, cie, cursor.data[cursor.position :], cursor.address + cursor.position
        )

    def _cie(self, address: int) -> Cie:
        cie = self._cies.get(address)
        if cie is None:
            cursor, _next = _read_entry(self._memory, address)
            if cursor.number(4) != 0:
                raise CfiError(f"no CIE at {address:#x}")
            cie = self._cies[address] = _parse_cie(cursor, eh=True)
        return cie


class ScannedFrame:
    """Frame descriptions without a search table, so that all entries are walked once.

    That is .debug_frame (from a file, linked addresses), and .eh_frame of static programs (in memory).
    """

    def __init__(self, memory: Memory, start: int, size: int, *, eh: bool, bias: int = 0) -> None:
        """Index `size` bytes at `start` of `memory`; `bias` is added to the addresses of a .debug_frame.

        CfiError when damaged, MemoryFault at a hole.
        """
        self._memory = memory
        self._start = start
        self._eh = eh
        self._bias = bias
        self._cies: dict[int, Cie] = {}
        found: list[tuple[int, int]] = []
        position = start
        while position + 4 < start + size:
            if eh and not int.from_bytes(memory.read(position, 4), "little"):
                break
            cursor, after = _read_entry(memory, position)
            cie = self._cie_of(cursor, position)
            if cie is not None:
                found.append((cursor.pointer(cie.encoding) + bias, position))
            if len(found) > _MAX_ENTRIES:
                raise CfiError("more than a million frame descriptions")
            position = after
        found.sort()
        self._starts = [first for first, _position in found]
        self._positions = [position for _first, position in found]

    def find(self, pc: int) -> Fde | None:
        """The FDE that covers `pc`, or None; CfiError when it cannot be understood."""
        index = bisect_right(self._starts, pc) - 1
        if index < 0:
            return None
        cursor, _next = _read_entry(self._memory, self._positions[index])
        cie = self._cie_of(cursor, self._positions[index])
        if cie is None:
            return None
        first = cursor.pointer(cie.encoding) + self._bias
        length = cursor.pointer(cie.encoding & 0x0F)
        if cie.augmented:
            cursor.block()
        code = cursor.data[cursor.position :]
        fde = Fde(first, first + length, cie, code, cursor.address + cursor.position)
        return fde if fde.start <= pc < fde.end else None

    def _cie_of(self, cursor: Cursor, position: int) -> Cie | None:
        """The CIE of the FDE at `position`, whose id the cursor reads; None when it is a CIE itself."""
        wide = cursor.address - position == 12
        here = cursor.address
        identity = cursor.number(8 if wide and not self._eh else 4)
        if self._eh:
            return self._cie(here - identity) if identity else None
        return self._cie(self._start + identity) if identity != (_MASK if wide else 0xFFFFFFFF) else None

    def _cie(self, address: int) -> Cie:
        cie = self._cies.get(address)
        if cie is None:
            cursor, _next = _read_entry(self._memory, address)
            cursor.number(8 if cursor.address - address == 12 and not self._eh else 4)
            cie = self._cies[address] = _parse_cie(cursor, eh=self._eh)
        return cie


def evaluate(code: bytes, registers: dict[int, int], memory: Memory, initial: int | None = None) -> int:
    """The value of a DWARF expression; CfiError for what is not understood, MemoryFault at a hole.

    `initial` is pushed first (the CFA, for register rules). A loop is cut off after 10 000 steps.
    """
    stack: list[int] = [] if initial is None else [initial]
    cursor = Cursor(code, 0)
    for _step in range(10_000):
        if cursor.position >= len(code):
            if not stack:
                raise CfiError("an expression without a result")
            return stack[-1] & _MASK
        try:
            _step_expression(cursor, stack, registers, memory)
        except (IndexError, KeyError, ZeroDivisionError, ValueError):
            raise CfiError("a malformed expression") from None
    raise CfiError("an endless expression")


_CONSTANTS = {
    0x03: (8, False), 0x08: (1, False), 0x09: (1, True), 0x0A: (2, False), 0x0B: (2, True),
    0x0C: (4, False), 0x0D: (4, True), 0x0E: (8, False), 0x0F: (8, True),
}  # fmt: skip


def _signed(value: int) -> int:
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def _binary(op: int, left: int, right: int) -> int | None:
    """The result of a two-operand operation on 64-bit words, None if `op` is none."""
    signed_left, signed_right = _signed(left), _signed(right)
    match op:
        case 0x1A:
            return left & right
        case 0x1B:
            quotient = abs(signed_left) // abs(signed_right)
            return quotient if (signed_left < 0) == (signed_right < 0) else -quotient
        case 0x1C:
            return left - right
        case 0x1D:
            return left % right
        case 0x1E:
            return left * right
        case 0x21:
            return left | right
        case 0x22:
            return left + right
        case 0x24:
            return left << right if right < 64 else 0
        case 0x25:
            return left >> right
        case 0x26:
            return signed_left >> min(right, 63)
        case 0x27:
            return left ^ right
        case 0x29:
            return int(signed_left == signed_right)
        case 0x2A:
            return int(signed_left >= signed_right)
        case 0x2B:
            return int(signed_left > signed_right)
        case 0x2C:
            return int(signed_left <= signed_right)
        case 0x2D:
            return int(signed_left < signed_right)
        case 0x2E:
            return int(signed_left != signed_right)
    return None


def _step_expression(cursor: Cursor, stack: list[int], registers: dict[int, int], memory: Memory) -> None:
    """Carry out one operation."""
    op = cursor.number(1)
    if 0x30 <= op <= 0x4F:
        stack.append(op - 0x30)
    elif 0x50 <= op <= 0x6F:
        stack.append(registers[op - 0x50])
    elif 0x70 <= op <= 0x8F:
        stack.append(registers[op - 0x70] + cursor.sleb() & _MASK)
    elif op == 0x92:
        register = cursor.uleb()
        stack.append(registers[register] + cursor.sleb() & _MASK)
    elif op in _CONSTANTS:
        stack.append(cursor.number(*_CONSTANTS[op]) & _MASK)
    elif op == 0x10:
        stack.append(cursor.uleb() & _MASK)
    elif op == 0x11:
        stack.append(cursor.sleb() & _MASK)
    elif op == 0x06:
        stack.append(int.from_bytes(memory.read(stack.pop(), 8), "little"))
    elif op == 0x94:
        stack.append(int.from_bytes(memory.read(stack.pop(), cursor.number(1)), "little"))
    elif op == 0x12:
        stack.append(stack[-1])
    elif op == 0x13:
        stack.pop()
    elif op == 0x14:
        stack.append(stack[-2])
    elif op == 0x15:
        stack.append(stack[-1 - cursor.number(1)])
    elif op == 0x16:
        stack[-1], stack[-2] = stack[-2], stack[-1]
    elif op == 0x17:
        stack[-1], stack[-2], stack[-3] = stack[-2], stack[-3], stack[-1]
    elif op == 0x19:
        stack[-1] = abs(_signed(stack[-1])) & _MASK
    elif op == 0x1F:
        stack[-1] = -stack[-1] & _MASK
    elif op == 0x20:
        stack[-1] = ~stack[-1] & _MASK
    elif op == 0x23:
        stack[-1] = stack[-1] + cursor.uleb() & _MASK
    elif op in (0x28, 0x2F):
        distance = cursor.number(2, signed=True)
        if op == 0x2F or stack.pop():
            cursor.position += distance
            if cursor.position < 0:
                raise CfiError("an expression jumps before its start")
    elif op != 0x96:
        right, left = stack.pop(), stack.pop()
        result = _binary(op, left, right)
        if result is None:
            raise CfiError(f"expression operation {op:#x}")
        stack.append(result & _MASK)


def lookup(tables: list[EhFrame | ScannedFrame], pc: int) -> Row | None:
    """The rules at `pc` from the first table that covers it and can be understood, or None."""
    for table in tables:
        try:
            fde = table.find(pc)
            if fde is not None:
                return fde.row(pc)
        except (CfiError, MemoryFault):
            continue
    return None
