"""A line for an event of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from interfaces.abi import Kind, Region, RegionKind, SignalPlace, Stop
from interfaces.decode import records, scalars
from interfaces.decode.call import format_call
from interfaces.decode.field import NUMBER, PROCESS, EventLike, Style, plain
from interfaces.decode.structures import integer
from interfaces.names.signals import signal_name


def _process(number: int, style: Style) -> str:
    return PROCESS if style.deterministic else str(number)


def _signal(event: EventLike, regions: list[Region], style: Style) -> str:
    data = next((region.data for region in regions if region.kind == RegionKind.INFO), b"")
    name = signal_name(event.nr)
    if not data:
        return f"--- {name} ---"
    return f"--- {name} {records.signal_information('info', data, style).value} ---"


def _rdtsc(event: EventLike, regions: list[Region], style: Style) -> str:
    counter = scalars.hidden(str(event.result & (2**64 - 1)), NUMBER, style)
    if event.args[0]:
        return f"RDTSCP = {counter}, {scalars.hidden(f'{event.args[1]:#x}', NUMBER, style)}"
    return f"RDTSC = {counter}"


PROCESSOR_LEAVES = {
    0x1: ("ebx",), 0xB: ("edx",), 0x1F: ("edx",), 0x8000001E: ("eax", "ebx"), 0x80000026: ("edx",),
}  # fmt: skip
"""Registers that tell which processor the instruction ran on."""


def _cpuid(event: EventLike, regions: list[Region], style: Style) -> str:
    leaf, subleaf, *registers = event.args
    local = PROCESSOR_LEAVES.get(leaf & 0xFFFFFFFF, ()) if style.deterministic else ()
    answer = ", ".join(
        f"{name}={NUMBER if name in local else hex(value)}"
        for name, value in zip(("eax", "ebx", "ecx", "edx"), registers, strict=False)
    )
    return f"CPUID({leaf:#x}, {subleaf:#x}) = {{{answer}}}"


def _task_start(event: EventLike, regions: list[Region], style: Style) -> str:
    what = "process" if event.args[2] else "thread"
    return f"+++ {what} {_process(event.task, style)} starts, made by {_process(event.args[0], style)} +++"


def _task_exit(event: EventLike, regions: list[Region], style: Style) -> str:
    return f"+++ thread exits with {event.result} +++"


def _exec(event: EventLike, regions: list[Region], style: Style) -> str:
    return f"+++ program starts at {scalars.address(event.args[0], style)} +++"


def _executed(event: EventLike, regions: list[Region], style: Style) -> str:
    where = f"as domain {event.args[0]}" if event.args[0] else "unrecorded"
    return f"+++ execve succeeded: goes on {where} +++"


def _fork(event: EventLike, regions: list[Region], style: Style) -> str:
    return f"+++ forked from process {_process(event.args[1], style)} (domain {event.args[0]}) +++"


def _checksum(event: EventLike, regions: list[Region], style: Style) -> str:
    return f"CHECKSUM of {event.args[0]} bytes = {event.result & (2**64 - 1):#018x}"


def _death(event: EventLike, regions: list[Region], style: Style) -> str:
    return f"+++ killed by {signal_name(event.nr)}{' (core dumped)' if event.args[0] else ''} +++"


def _stopped(event: EventLike, regions: list[Region], style: Style) -> str:
    try:
        why = Stop(event.result).name
    except ValueError:
        why = str(event.result)
    return f"+++ recording stops here: {why} +++"


def _release(event: EventLike, regions: list[Region], style: Style) -> str:
    text = format_call(event, regions, deterministic=style.deterministic, strings=style.strings)
    return text.removesuffix(") = ?") + " <unfinished ...>"


def _syscall(event: EventLike, regions: list[Region], style: Style) -> str:
    return format_call(event, regions, deterministic=style.deterministic, strings=style.strings)


def _preempt(event: EventLike, regions: list[Region], style: Style) -> str:
    return "PREEMPT: stopped between calls"


def _data(event: EventLike, regions: list[Region], style: Style) -> str:
    return f"DATA: {sum(len(region.data) for region in regions)} bytes of the next call"


def _library_call(event: EventLike, regions: list[Region], style: Style) -> str:
    from interfaces.libspec import naming

    return naming.text(event, regions, style.strings)


def _join(event: EventLike, regions: list[Region], style: Style) -> str:
    return f"+++ goes on in domain {event.args[0]}, with which it shares memory +++"


def _joined(event: EventLike, regions: list[Region], style: Style) -> str:
    return f"+++ process {_process(event.args[1], style)} comes from domain {event.args[0]} +++"


Describe = Callable[[EventLike, list[Region], Style], str]

KINDS: dict[int, Describe] = {
    Kind.SYSCALL: _syscall, Kind.RELEASE: _release, Kind.SIGNAL: _signal, Kind.RDTSC: _rdtsc,
    Kind.CPUID: _cpuid,
    Kind.TASK_START: _task_start, Kind.TASK_EXIT: _task_exit, Kind.EXEC: _exec, Kind.FORK: _fork,
    Kind.PREEMPT: _preempt, Kind.DATA: _data, Kind.CHECKSUM: _checksum, Kind.DEATH: _death,
    Kind.EXECED: _executed,
    Kind.STOPPED: _stopped, Kind.LIBCALL: _library_call, Kind.JOIN: _join, Kind.JOINED: _joined,
}  # fmt: skip


def signal_place(event: Any) -> str:
    """Where a signal event came in: "entry", "exit", "fault", "preempt"."""
    try:
        return SignalPlace(int(plain(event).args[0])).name.lower()
    except ValueError:
        return "?"


def signal_sender(regions: Iterable[Region]) -> int | None:
    """The process that sent a signal, as far as its information says."""
    for region in regions:
        if region.kind == RegionKind.INFO and integer(region.data, 8, 4, True) in (0, -1, -6):
            return integer(region.data, 16, 4)
    return None


def format_event(
    event: Any, regions: Iterable[Region] = (), *, deterministic: bool = False, strings: int = 32
) -> str:
    """One line for any event: a call as `format_call` gives it, a signal as strace shows it, and so on."""
    event = plain(event)
    style = Style(deterministic, strings)
    describe = KINDS.get(event.kind)
    if describe is None:
        try:
            return Kind(event.kind).name
        except ValueError:
            return f"event of kind {event.kind}"
    return describe(event, list(regions), style)
