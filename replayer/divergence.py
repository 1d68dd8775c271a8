"""What a replay that went another way says: what was expected, what happened, in which task, and the stack.

The report is made while the task is parked, from its memory and the registers the core saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from interfaces.abi import Divergence, Event, Kind, Region, RegionKind
from replayer.memory import Memory, MemoryFault
from replayer.unwind import Frame
from tracefile import EventView

_SHOWN = 16
_FRAMES = 32
_REASONS = {
    Divergence.CALL: "another call than recorded",
    Divergence.ARGS: "other arguments than recorded",
    Divergence.IP: "the same call from another place than recorded",
    Divergence.INPUT: "other input to the call than recorded",
    Divergence.FAULT: "a fault that the recorded program did not have there",
    Divergence.CHECKSUM: "memory is not what it was",
    Divergence.MEMORY: "the address space cannot be laid out as recorded",
    Divergence.END: "the program goes on after the end of the log",
    Divergence.KIND: "something else than recorded came next",
}


@dataclass(frozen=True, slots=True)
class FoundEvent:
    """What the program did instead; `args` are the registers at the call."""

    task: int
    kind: int
    nr: int
    ip: int
    args: tuple[int, ...]
    result: int = 0
    flags: int = 0

    @classmethod
    def of(cls, event: Event) -> FoundEvent:
        """A copy of what the core wrote into the ring."""
        return cls(event.task, event.kind, event.nr, event.ip, tuple(event.args), event.result, event.flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergenceReport:
    """A divergence as data. `event` is the number, in `domain`, of the event that was expected.

    `pid`, `task` and `comm` are the recorded ones; `details` are lines that say what exactly differs;
    `frames` is the stack of the task, innermost first.
    """

    reason: Divergence
    domain: int
    event: int
    events: int
    pid: int
    task: int
    comm: str
    expected: str
    found: str
    details: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = field(default=(), repr=False)

    def text(self) -> str:
        """The report for people, several lines."""
        why = _REASONS.get(self.reason, "unknown reason")
        lines = [
            f"the replay diverged at event {self.event} of {self.events} in domain {self.domain}, "
            f"task {self.task} of process {self.pid} ({self.comm or '?'}): {why}",
            f"  expected: {self.expected}",
            f"  found:    {self.found}",
            *(f"  {line}" for line in self.details),
        ]
        if self.frames:
            lines.append("  stack:")
            lines += [f"    {frame}" for frame in self.frames[:_FRAMES]]
            if len(self.frames) > _FRAMES:
                lines.append(f"    ... and {len(self.frames) - _FRAMES} more frames")
        else:
            lines.append("  stack: not available")
        return "\n".join(lines)


def describe(event: EventView | FoundEvent, regions: Sequence[Region] = ()) -> str:
    """One line for an event of the trace, or for what was found: a call that was not made has no result."""
    from interfaces.decode import format_event

    text = format_event(event, regions)
    if isinstance(event, EventView):
        return text
    if event.kind == Kind.SYSCALL:
        return text.rpartition(" = ")[0] or text
    return f"{text} at {event.ip:#x}" if event.ip else text


def differences(
    reason: Divergence, expected: EventView, found: FoundEvent, memory: Memory | None
) -> list[str]:
    """Lines that say what exactly differs."""
    if expected.task != found.task:
        return [f"it was the turn of task {expected.task}, not of task {found.task}"]
    match reason:
        case Divergence.ARGS:
            return _arguments(expected, found)
        case Divergence.IP:
            return [f"called from {found.ip:#x}, recorded from {expected.ip:#x}"]
        case Divergence.INPUT if memory is not None:
            return _inputs(expected, memory)
        case Divergence.MEMORY:
            return [f"at address {found.args[0]:#x}"]
        case _:
            return []


def _arguments(expected: EventView, found: FoundEvent) -> list[str]:
    from interfaces.calls import CALLS

    call = CALLS.get(expected.nr) if expected.kind == Kind.SYSCALL else None
    lines = []
    for index, (was, now) in enumerate(zip(expected.args, found.args, strict=True)):
        if was != now:
            name = f" ({call.args[index].name})" if call is not None and index < len(call.args) else ""
            lines.append(f"argument {index + 1}{name}: recorded {was:#x}, now {now:#x}")
    return lines


def _inputs(expected: EventView, memory: Memory) -> list[str]:
    """Where each input of the call first differs from memory."""
    lines = []
    for region in expected.regions:
        if region.kind != RegionKind.IN or not region.data:
            continue
        try:
            now = memory.read(region.addr, len(region.data))
        except MemoryFault:
            lines.append(f"argument {region.arg + 1}: {region.addr:#x} is not mapped")
            continue
        if now != region.data:
            at = next(index for index, (a, b) in enumerate(zip(now, region.data, strict=True)) if a != b)
            was, is_now = region.data[at : at + _SHOWN], now[at : at + _SHOWN]
            lines.append(
                f"argument {region.arg + 1}, byte {at} at {region.addr + at:#x}: "
                f"recorded {was.hex(' ')} {was!r}, now {is_now.hex(' ')} {is_now!r}"
            )
    return lines


def inputs_now(expected: EventView, found: FoundEvent, memory: Memory) -> list[Region]:
    """What the found call reads, as far as the expected call tells where that is."""
    if found.nr != expected.nr:
        return []
    regions = []
    for region in expected.regions:
        if region.kind == RegionKind.IN and found.args[region.arg : region.arg + 1] == (region.addr,):
            with suppress(MemoryFault):
                data = memory.read(region.addr, len(region.data))
                regions.append(Region(region.addr, region.kind, region.arg, data))
    return regions
