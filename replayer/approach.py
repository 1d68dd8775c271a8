"""Finding the instruction before a place.

Nothing runs backwards, and nothing counts instructions. From the last known place before, single steps lead
to it if they are few. Otherwise the starts of the basic blocks of the functions on the stack are counted in
a first run; the last one met is near, and steps are few from there.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import capstone

from interfaces.abi import Kind, SignalPlace
from replayer.debuggee import HITS, Debuggee, Stop, Triggers, Why
from replayer.debugring import BREAKPOINTS
from replayer.errors import CopyError
from replayer.memory import MemoryFault
from replayer.position import Position, Segment
from replayer.unwind import Unwinder

if TYPE_CHECKING:
    from replayer.timeline import Timeline

_FEW_STEPS = 2000
_MANY_STEPS = 60_000
_FRAMES = 4
_LONGEST_FUNCTION = 1 << 16
_MOST_REACHED = 4096
_STRETCH = 256
_ROUNDS = 8
_BEGINNING = (Kind.RELEASE, Kind.DATA, Kind.YIELD, Kind.RESUME, Kind.CHECKSUM)


class Approach:
    """Answers for one timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._anchor: tuple[Position, Debuggee] | None = None
        """A place that is gone to again and again, and a process that stands there."""

    def previous(self, position: Position, tid: int | None = None) -> Position | None:
        """The place one instruction before; None where there is none that can be shown."""
        try:
            return self._previous(self._timeline.interruptions.real(position))
        finally:
            self._let_go()

    def _visit(self, position: Position) -> Debuggee:
        """A process at a place that is visited more than once; the caller closes it."""
        if self._anchor is None or self._anchor[0] != position:
            self._let_go()
            self._anchor = position, self._timeline.visit(position)
        try:
            return self._anchor[1].copy()
        except CopyError:
            return self._timeline.visit(position)

    def _let_go(self) -> None:
        if self._anchor is not None:
            self._anchor[1].close()
            self._anchor = None

    def _previous(self, position: Position) -> Position | None:
        if position.chain:
            last = position.chain[-1]
            if last.steps:
                return _shorter(position, replace(last, steps=last.steps - 1))
            base = _shorter(position, replace(last, hits=last.hits - 1))
            return self._between(base, position, Segment(last.triggers, 1), position.event)
        begin = self._begin_of_call(position.event)
        if begin < self._timeline.first:
            if position.event > self._timeline.first:
                return Position(self._timeline.first)
            return None
        return self._between(Position(begin), position, Segment(), begin + 1)

    def _begin_of_call(self, event: int) -> int:
        """Events that have happened before the call began that the last event is the end of."""
        reader, domain = self._timeline.reader, self._timeline.domain
        number = event - 1
        task = reader.event(domain, number).task
        if reader.event(domain, number).kind != Kind.SYSCALL:
            return number
        at = number
        while at > 0:
            one = reader.event(domain, at - 1)
            if one.task == task and one.kind not in _BEGINNING:
                break
            at -= 1
            if one.task == task:
                number = at
        return number

    # ---- between a known place and the end ----

    def _between(self, base: Position, end: Position, goal: Segment, until: int) -> Position | None:
        """The place one step before `goal`'s trigger is met, or event `until` happens, coming from `base`."""
        tid = self._task_behind(base)
        for _round in range(_ROUNDS):
            process = self._visit(base)
            try:
                stop = self._step(process, base, goal, until, tid, _FEW_STEPS)
            finally:
                process.close()
            if self._reached(stop, goal, until):
                return base.stepped(self._steps_before(stop), tid)
            nearer = self._nearer(base, end, goal, until, tid)
            if nearer is None:
                break
            base = nearer
        process = self._visit(base)
        try:
            stop = self._step(process, base, goal, until, tid, _MANY_STEPS)
        finally:
            process.close()
        if self._reached(stop, goal, until):
            return base.stepped(self._steps_before(stop), tid)
        return base.stepped(stop.stepped, tid) if stop.stepped else base

    def _step(
        self, process: Debuggee, base: Position, goal: Segment, until: int, tid: int, steps: int
    ) -> Stop:
        return process.go(until, goal.triggers, over=not base.at_event, steps=steps, tid=tid)

    def _task_behind(self, base: Position) -> int:
        reader, total = self._timeline.reader, self._timeline.total
        return reader.event(self._timeline.domain, min(base.event, total - 1)).task

    @staticmethod
    def _reached(stop: Stop, goal: Segment, until: int) -> bool:
        if goal.hits:
            return stop.why in HITS
        return stop.event >= until and stop.why is not Why.STEP

    def _steps_before(self, stop: Stop) -> int:
        """Steps that end before the last instruction; a call is not counted when it stops inside."""
        if stop.why is Why.SIGNAL:
            event = self._timeline.reader.event(self._timeline.domain, stop.event)
            return max(stop.stepped - (event.args[0] == SignalPlace.FAULT), 0)
        if stop.why in (Why.BREAKPOINT, Why.WATCH) and not stop.by_call:
            return max(stop.stepped - 1, 0)
        return stop.stepped

    def _nearer(self, base: Position, end: Position, goal: Segment, until: int, tid: int) -> Position | None:
        """The last start of a basic block before the end, None where none is met after `base`."""
        starts = self._blocks_at(self._visit(base), base, tid, inside=bool(base.chain))
        starts |= self._blocks_at(self._timeline.visit(end), end, tid)
        counted = frozenset(sorted(starts - goal.triggers.breakpoints)[: BREAKPOINTS - 64])
        if not counted:
            return None
        process = self._visit(base)
        try:
            watched = Triggers(goal.triggers.breakpoints, goal.triggers.watches, counted)
            stop = process.go(until, watched, over=not base.at_event)
        finally:
            process.close()
        return base.hit(Triggers(counted), stop.counted) if stop.counted else None

    def _blocks_at(self, process: Debuggee, position: Position, tid: int, inside: bool = False) -> set[int]:
        """Block starts of the functions on the stack of a process that stands there; it is closed. `inside`:
        also of what is called next."""
        starts: set[int] = set()
        try:
            with suppress(MemoryFault, OSError):
                unwinder = Unwinder(process, process.mappings())
                frames = unwinder.backtrace(process.state(tid).registers, _FRAMES)
                for frame in frames:
                    starts |= self._blocks(process, unwinder, frame.pc)
            if inside:
                starts |= self._called(process, position, tid)
        finally:
            process.close()
        return starts

    def _called(self, process: Debuggee, position: Position, tid: int) -> set[int]:
        """Block starts of the function that the code at a place calls next."""
        for _attempt in range(4):
            with suppress(MemoryFault, OSError):
                unwinder = Unwinder(process, process.mappings())
                pc = process.state(tid).registers.rip
                limits = _function(unwinder, pc) or (pc, pc + 1)
                stop = process.go(self._timeline.total, over=True, steps=_FEW_STEPS, tid=tid, within=limits)
                if stop.why is not Why.STEP or stop.event != position.event:
                    return set()
                found = self._blocks(process, Unwinder(process, process.mappings()), stop.pc)
                if found:
                    return found
        return set()

    @staticmethod
    def _blocks(process: Debuggee, unwinder: Unwinder, pc: int) -> set[int]:
        limits = _function(unwinder, pc)
        if limits is None:
            return reachable_starts(process, pc)
        start, end = limits
        try:
            code = process.read(start, min(end - start, _LONGEST_FUNCTION))
        except MemoryFault:
            return set()
        return block_starts(code, start)


def _shorter(position: Position, last: Segment) -> Position:
    rest = position.chain[:-1]
    return Position(position.event, (*rest, last) if last.hits or last.steps else rest)


def _function(unwinder: Unwinder, pc: int) -> tuple[int, int] | None:
    """Where the function around `pc` begins and ends, None where there is no call-frame information."""
    module = unwinder.modules.at(pc)
    if module is None:
        return None
    for table in module.frames():
        fde = table.find(pc)
        if fde is not None:
            return fde.start, fde.end
    return None


def reachable_starts(process: Debuggee, pc: int) -> set[int]:
    """The starts of the basic blocks that direct jumps lead to from an instruction: where nothing tells the
    function's limits (code made at run time), only what is reached is sure to be an instruction."""
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    starts: set[int] = set()
    seen: set[int] = set()
    left = [pc]
    while left and len(seen) < _MOST_REACHED:
        here = left.pop()
        if here in seen or abs(here - pc) > _LONGEST_FUNCTION:
            continue
        starts.add(here)
        for one in decoder.disasm(_code_at(process, here), here):
            if one.address in seen:
                break
            seen.add(one.address)
            jumps = one.group(capstone.CS_GRP_JUMP)
            after = one.address + one.size
            if jumps and one.operands and one.operands[0].type == capstone.x86.X86_OP_IMM:
                left.append(one.operands[0].imm)
            if one.group(capstone.CS_GRP_RET) or one.id == capstone.x86.X86_INS_JMP:
                break
            if jumps or one.group(capstone.CS_GRP_CALL):
                left.append(after)
                break
    return starts


def _code_at(process: Debuggee, address: int) -> bytes:
    """A stretch of code, as much as can be read."""
    for size in (_STRETCH, min(-address % 4096 or 4096, _STRETCH)):
        with suppress(MemoryFault):
            return process.read(address, size)
    return b""


def block_starts(code: bytes, address: int) -> set[int]:
    """The function's entry, where its jumps lead, and what follows its jumps and calls."""
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    starts = {address}
    for one in decoder.disasm(code, address):
        jumps = one.group(capstone.CS_GRP_JUMP)
        if not jumps and not one.group(capstone.CS_GRP_CALL) and not one.group(capstone.CS_GRP_RET):
            continue
        starts.add(one.address + one.size)
        if jumps and one.operands and one.operands[0].type == capstone.x86.X86_OP_IMM:
            starts.add(one.operands[0].imm)
    end = address + len(code)
    return {one for one in starts if address <= one < end}
