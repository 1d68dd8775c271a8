"""Counting a thread's arrivals at an instruction, in nanoseconds each, between two events.

The instruction is replaced by a jump to a stub, which counts, compares, carries the instruction out and goes
back. It is put back when the run is over, and the stub's page is gone then. Its data lie where the core keeps
the slots of patched call sites: a debugged process has none. So a place in a long computation can be named by
its number of arrivals, found by comparing registers and memory with those of a process that stands there, and
gone to again.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic, sleep

import capstone
import numpy as np

from interfaces import abi
from interposer.kernel import futex_wake
from replayer.corelayout import SLOT_TABLE, hidden
from replayer.debuggee import ALL_HITS, NOTHING, Debuggee, Stop, Triggers, Why
from replayer.debugring import REQUEST_MAP, REQUEST_NONE, REQUEST_UNMAP
from replayer.errors import CopyError, NothingToReplayError
from replayer.memory import MemoryFault
from replayer.unwind import Unwinder

MANY = 2000
"""From so many arrivals on it is worth while."""
_SLOT, _DATA = SLOT_TABLE, SLOT_TABLE + 0x1000
_RAX, _FLAGS, _COUNT, _EXPECTED = _DATA, _DATA + 8, _DATA + 16, _DATA + 64
_JUMP = b"\xff\x24\x25" + struct.pack("<I", _SLOT)
_LONGEST = 24
_ANSWER, _MOMENT = 5.0, 0.0002
_FARTHEST, _STRIDE, _HIGHEST = 0x60000000, 0x1000000, 0x7FFFFFFFE000
_ARITHMETIC = 0x8D5
_NUMBERS = {
    "rax": 0, "rcx": 1, "rdx": 2, "rbx": 3, "rsp": 4, "rbp": 5, "rsi": 6, "rdi": 7,
    "r8": 8, "r9": 9, "r10": 10, "r11": 11, "r12": 12, "r13": 13, "r14": 14, "r15": 15,
}  # fmt: skip
_MOST_WORDS = 64
_MOST_CANDIDATES = 2000
_PIECE = 1 << 20
_X86 = capstone.x86
_TRAPPED = {
    _X86.X86_INS_RDTSC, _X86.X86_INS_RDTSCP, _X86.X86_INS_CPUID, _X86.X86_INS_PUSHFQ, _X86.X86_INS_INT3,
    _X86.X86_INS_INT, _X86.X86_INS_SYSCALL, _X86.X86_INS_HLT, _X86.X86_INS_UD2,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Site:
    """An instruction that can be replaced, with as many behind it as the jump takes."""

    address: int
    code: bytes
    relative: tuple[tuple[int, int, int], ...] = ()
    """Where a displacement from the instruction pointer is, the end of its instruction, what it leads to."""

    def moved(self, address: int) -> bytes | None:
        """The instructions as they must be elsewhere; None where that is too far away."""
        code = bytearray(self.code)
        for at, end, target in self.relative:
            try:
                struct.pack_into("<i", code, at, target - (address + end))
            except struct.error:
                return None
        return bytes(code)

    def overlaps(self, addresses: frozenset[int]) -> bool:
        """Whether one of the addresses lies in what is replaced."""
        return any(0 <= one - self.address < len(self.code) for one in addresses)


def site_at(process: Debuggee, address: int) -> Site | None:
    """The site at an address; None where its instructions cannot be moved, or are jumped into."""
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    try:
        code = process.read(address, _LONGEST)
    except MemoryFault:
        return None
    size = 0
    relative = []
    for one in decoder.disasm(code, address):
        groups = (capstone.CS_GRP_JUMP, capstone.CS_GRP_CALL, capstone.CS_GRP_RET, capstone.CS_GRP_INT)
        if any(one.group(group) for group in groups) or one.id in _TRAPPED:
            return None
        if (target := _relative(one)) is not None:
            relative.append((size + one.encoding.disp_offset, size + one.size, target))
        size += one.size
        if size >= len(_JUMP):
            inside = range(address + 1, address + size)
            found = Site(address, code[:size], tuple(relative))
            return None if _entered(process, decoder, inside) else found
    return None


def _relative(one: capstone.CsInsn) -> int | None:
    """The address that an operand gives from the instruction pointer."""
    for operand in one.operands:
        if operand.type == capstone.x86.X86_OP_MEM and operand.mem.base == capstone.x86.X86_REG_RIP:
            return int(one.address + one.size + operand.mem.disp)
    return None


def _entered(process: Debuggee, decoder: capstone.Cs, inside: range) -> bool:
    """Whether a jump of the function leads, or a thread goes on, into a range of addresses."""
    for block in process.threads():
        with suppress(MemoryFault):
            if process.state(block.tid).registers.rip in inside:
                return True
    limits = _function(process, inside.start)
    if limits is None:
        return True
    with suppress(MemoryFault):
        for one in decoder.disasm(process.read(limits[0], limits[1] - limits[0]), limits[0]):
            jumps = one.group(capstone.CS_GRP_JUMP) and one.operands[0].type == capstone.x86.X86_OP_IMM
            if jumps and one.operands[0].imm in inside:
                return True
    return False


def _function(process: Debuggee, address: int) -> tuple[int, int] | None:
    module = Unwinder(process, process.mappings()).modules.at(address)
    for table in module.frames() if module is not None else ():
        found = table.find(address)
        if found is not None:
            return found.start, found.end
    return None


# ---- the stub ----


def _absolute(opcode: bytes, register: int, address: int) -> bytes:
    """An instruction with a register and a quadword at a 32-bit address."""
    rex = 0x48 | register >> 3 << 2
    return bytes([rex]) + opcode + bytes([0x04 | (register & 7) << 3, 0x25]) + struct.pack("<I", address)


@dataclass(slots=True)
class _State:
    registers: dict[str, int]
    words: dict[int, int]


def _stub(site: Site, count: int, state: _State | None, page: int) -> tuple[bytes, int, bytes]:
    """Code for a page, the address of its trap, and data. Without a state it traps after `count` arrivals."""
    checks: list[bytes] = []
    expected: list[int] = []
    code = _absolute(b"\x89", 0, _RAX) + b"\x9f\x0f\x90\xc0" + _absolute(b"\x89", 0, _FLAGS)
    if state is None:
        code += _absolute(b"\xff", 1, _COUNT)  # dec
        hits = [b"\x0f\x84"]  # jz
    else:
        code += _absolute(b"\xff", 0, _COUNT)  # inc
        for name, value in state.registers.items():
            load = _absolute(b"\x8b", 0, _RAX) if name == "rax" else b""
            checks.append(load + _absolute(b"\x3b", _NUMBERS[name], _EXPECTED + 8 * len(expected)))
            expected.append(value)
        for address, value in state.words.items():
            load = b"\x48\xa1" + struct.pack("<Q", address)
            checks.append(load + _absolute(b"\x3b", 0, _EXPECTED + 8 * len(expected)))
            expected.append(value)
        hits = []
    restore = _absolute(b"\x8b", 0, _FLAGS) + b"\x04\x7f\x9e" + _absolute(b"\x8b", 0, _RAX)
    leave = b"\xff\x25\0\0\0\0" + struct.pack("<Q", site.address + len(site.code))
    if hits:
        back = restore + _moved(site, page + len(code) + 6 + len(restore)) + leave
        code += hits[0] + struct.pack("<i", len(back)) + back
        trap = page + len(code)
        code += b"\xcc"
    else:
        ends = len(code) + sum(len(one) + 6 for one in checks) + 1
        for one in checks:
            code += one
            code += b"\x0f\x85" + struct.pack("<i", ends - (len(code) + 6))  # jne
        trap = page + len(code)
        code += b"\xcc" + restore + _moved(site, page + ends + len(restore)) + leave
    data = struct.pack("<QQq", 0, 0, count).ljust(_EXPECTED - _DATA, b"\0")
    return code, trap, data + struct.pack(f"<{len(expected)}Q", *expected)


def _moved(site: Site, address: int) -> bytes:
    code = site.moved(address)
    assert code is not None, "the page is near"
    return code


def _page_near(process: Debuggee, site: Site) -> int:
    """A page for the stub, from where all that the instructions lead to can be reached.
    NothingToReplayError where there is none."""
    taken = sorted((one.start, one.end) for one in process.mappings())
    for distance in range(1, _FARTHEST // _STRIDE):
        for page in (site.address + sign * distance * _STRIDE for sign in (-1, 1)):
            page &= ~4095
            if (
                page < _STRIDE
                or page >= _HIGHEST
                or site.moved(page) is None
                or site.moved(page + 4096) is None
            ):
                continue
            free = all(page + 4096 <= start or page >= end for start, end in taken)
            if free and not hidden(page) and _request(process, REQUEST_MAP, page):
                return page
    raise NothingToReplayError("there is no room for code that counts", "Use breakpoints and steps.")


def _request(process: Debuggee, what: int, page: int) -> bool:
    """Ask the core of the parked process for a page, or to take it away; whether that was possible."""
    debug = process._debug
    debug.request_addr, debug.reply = page, 0
    debug.request = what
    futex_wake(ctypes.addressof(process._live.ring.control) + abi.Ring.stopped.offset)
    deadline = monotonic() + _ANSWER
    while debug.request != REQUEST_NONE:
        if monotonic() > deadline:
            raise CopyError("the process does not answer", "This is a defect: please report it.")
        sleep(_MOMENT)
    process._forget()
    return int(debug.reply) == 0


class Counter:
    """A site that is replaced in a process; `close` puts it back. `trap` is the address where it stops."""

    def __init__(self, process: Debuggee, site: Site, count: int = 0, state: _State | None = None) -> None:
        self._process, self._site = process, site
        process.disarm()
        self._page = _page_near(process, site)
        code, self.trap, data = _stub(site, count, state, self._page)
        process.put(self._page, code)
        process.put(_DATA, data)
        process.put(_SLOT, struct.pack("<Q", self._page))
        process.put(site.address, _JUMP.ljust(len(site.code), b"\x90"))

    @property
    def count(self) -> int:
        """Arrivals so far, where it compares."""
        return int.from_bytes(self._process.get(_COUNT, 8), "little")

    def arrived(self, stop: Stop) -> bool:
        """Whether the stop is the stub's."""
        return stop.why is Why.BREAKPOINT and stop.pc == self.trap

    def close(self) -> None:
        """Put the instructions back; a thread in the stub stands at them."""
        process, site = self._process, self._site
        with suppress(NothingToReplayError):
            process.disarm()
            process.put(site.address, site.code)
            with suppress(MemoryFault):
                if process.state(process.tid).registers.rip == self.trap:
                    process.set_registers(process.tid, self.registers())
            _request(process, REQUEST_UNMAP, self._page)

    def registers(self) -> dict[str, int]:
        """Those of a thread in the stub as they were at the site, as far as they have changed."""
        rax, saved = struct.unpack("<QQ", self._process.get(_RAX, 16))
        flags = self._process.state(self._process.tid).registers.eflags & ~_ARITHMETIC
        flags |= saved >> 8 & 0xD5 | (saved & 1) << 11
        return {"rax": rax, "rip": self._site.address, "eflags": flags}


def run(
    process: Debuggee,
    site: Site,
    count: int,
    until: int,
    *,
    over: bool = True,
    counted: frozenset[int] = frozenset(),
    interrupted: Callable[[], bool] | None = None,
) -> Stop:
    """Go on to arrival number `count`: BREAKPOINT, or ENDED when it did not get there. `over`: one where the
    process stands now does not count. `counted`: addresses where arrivals are counted besides."""
    here = _stand_clear(process, site) and over
    counter = Counter(process, site, count + here)
    try:
        triggers = Triggers(frozenset([counter.trap]), counted=counted)
        stop = process.go(until, triggers, over=over, interrupted=interrupted)
        return replace(stop, pc=site.address) if counter.arrived(stop) else replace(stop, why=Why.ENDED)
    finally:
        counter.close()


def number_of(
    process: Debuggee, target: Debuggee, site: Site, until: int, interrupted: Callable[[], bool] | None
) -> int | None:
    """Which arrival at the site, counted from where `process` stands before it, is the one where `target`
    stands. None where it was not found, or the search was interrupted. `process` is left anywhere."""
    wanted, found = (one.state(one.tid).registers for one in (target, process))
    # Those that change are compared first.
    names = sorted(_NUMBERS, key=lambda name: getattr(wanted, name) == getattr(found, name))
    state = _State({name: getattr(wanted, name) for name in names}, {})
    before = -int(_stand_clear(process, site))
    for _candidate in range(_MOST_CANDIDATES):
        counter = Counter(process, site, before, state)
        try:
            stop = process.go(until, Triggers(frozenset([counter.trap])), over=True, interrupted=interrupted)
            if not counter.arrived(stop):
                return None
            count = counter.count
        finally:
            counter.close()
        if not _differences(process, target, state.words):
            return count or None
        before = count
        _leave(process, site)
    return None


def _stand_clear(process: Debuggee, site: Site) -> bool:
    """Leave the site's inside; whether the process stands at its beginning."""
    pc = process.state(process.tid).registers.rip
    if site.address < pc < site.address + len(site.code):
        _leave(process, site)
    return pc == site.address


def _leave(process: Debuggee, site: Site) -> None:
    limits = site.address, site.address + len(site.code)
    process.go(1 << 62, NOTHING, over=True, steps=ALL_HITS, tid=process.tid, within=limits)


def _differences(process: Debuggee, target: Debuggee, words: dict[int, int]) -> bool:
    """Whether memory or vector registers differ. Words that do are noted, with what they should be."""
    mine, theirs = process.state(process.tid), target.state(target.tid)
    if mine.registers != theirs.registers or mine.xsave[32:416] != theirs.xsave[32:416]:
        return True
    for mapping in target.mappings():
        if not mapping.writable or hidden(mapping.start):
            continue
        for start in range(mapping.start, mapping.end, _PIECE):
            size = min(mapping.end - start, _PIECE)
            try:
                one, other = process.read(start, size), target.read(start, size)
            except MemoryFault:
                continue
            if one == other:
                continue
            differ = np.flatnonzero(np.frombuffer(one, "<u8") != np.frombuffer(other, "<u8"))
            for index in differ[:4]:
                if len(words) < _MOST_WORDS:
                    at = int(index) * 8
                    words[start + at] = int.from_bytes(other[at : at + 8], "little")
            return True
    return False
