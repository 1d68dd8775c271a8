"""The log that a replay at library interfaces reads: every event with its payload behind it.

Bytes that macros of the C library (getc_unlocked) took from a stream are logged with the next call on that
stream, when they are known. Replay needs them earlier: they are laid into the call before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from interfaces import abi
from interfaces.abi import Kind, RegionKind
from interfaces.arrays import numpy
from interfaces.libspec.model import Function
from interfaces.libspec.show import LibFlag
from interposer.library.engine import Plan
from replayer.errors import ReplayError
from tracefile import TraceReader

_DOMAIN = 1
_TAKEN, _LAID = 250, 252
_REGION = struct.Struct("<QIBBH")
_ERRNO_SIZE = 24
_LAST = (1 << 64) - 1
"""Time of an event that is the last of a process that was killed; 1 and a status less: that becomes another
program there.
"""
SIGNAL_PLACE = struct.Struct("<IIQQ")
TIMED = 2
"""`where` of a signal that came while the program computed."""


def flat_log(reader: TraceReader, plan: Plan, dead: Killed) -> Iterator[bytes]:
    """The events of a recording, each with its payload behind it. `dead`: see `killed`. Raises
    ReplayError.
    """
    laid = _laid(reader, plan)
    replaced = _replaced(reader, plan)
    stamps = dict.fromkeys(dead.last, _LAST)
    stamps.update((number, _LAST - 1 - status) for number, status in replaced.after.items())
    np = numpy()
    for chunk in reader.chunks(_DOMAIN):
        events, payload = chunk.events.copy(), np.frombuffer(chunk.payload, dtype=np.uint8)
        for number, status in replaced.at_once.items():
            if chunk.first_event <= number < chunk.first_event + len(events):
                events["result"][number - chunk.first_event] = status + 1
        for number, stamp in stamps.items():
            if chunk.first_event <= number < chunk.first_event + len(events):
                events["time_out"][number - chunk.first_event] = stamp
        for number in dead.unheard:
            if chunk.first_event <= number < chunk.first_event + len(events):
                events["args"][number - chunk.first_event, 4] = 1
        lengths = events["payload_len"].astype(np.int64)
        ends = np.cumsum(lengths)
        if len(events) and int(ends[-1]) != len(payload):
            raise ReplayError(f"the events from {chunk.first_event} on do not match their payload")
        rows = np.arange(len(events), dtype=np.int64)
        out = np.empty(96 * len(events) + len(payload), dtype=np.uint8)
        starts = rows * 96 + (ends - lengths)
        out[starts[:, None] + np.arange(96)] = events.view(np.uint8).reshape(len(events), 96)
        if len(payload):
            out[np.arange(len(payload)) + 96 * (np.repeat(rows, lengths) + 1)] = payload
        data = out.tobytes()
        at = 0
        for row in range(len(events)):
            region = laid.get(chunk.first_event + row)
            if region is None:
                continue
            start = int(starts[row])
            yield data[at:start]
            yield _with(data[start : start + 96 + int(lengths[row])], region)
            at = start + 96 + int(lengths[row])
        yield data[at:]


def signal_places(reader: TraceReader) -> bytes:
    """struct rr_due of signals.c for each signal that came outside a logged call."""
    np = numpy()
    wanted = LibFlag.SIGNAL | LibFlag.CALLBACK
    found = []
    for chunk in reader.chunks(_DOMAIN):
        events = chunk.events
        for row in np.flatnonzero((events["flags"] & wanted) == wanted).tolist():
            _, points, where, delay = (int(word) for word in events["args"][row][:4])
            if where:
                found.append(SIGNAL_PLACE.pack(int(events["task"][row]), where, points, delay))
    return b"".join(found)


def _with(record: bytes, region: bytes) -> bytes:
    """An event and its payload with a region more; errno stays last."""
    event = abi.Event.from_buffer_copy(record)
    at = len(record) - (_ERRNO_SIZE if event.flags & LibFlag.ERRNO else 0)
    event.payload_len += len(region)
    return bytes(event) + record[96:at] + region + record[at:]


@dataclass(frozen=True, slots=True)
class _Replaced:
    """Processes that became other programs: a number of an event -> the status with which the process ends
    there in replay. `at_once`: at the execve; `after`: at the end of a signal's handler that interrupted it.
    """

    at_once: dict[int, int]
    after: dict[int, int]

    def add(self, execve: int, last: int, status: int) -> None:
        (self.at_once if last == execve else self.after)[last] = status


def _replaced(reader: TraceReader, plan: Plan) -> _Replaced:
    """Each execve that succeeded: what follows it in its task, but for signals that came within it, is the
    beginning of another program, or nothing where that was not recorded.
    """
    np = numpy()
    calls = _special(plan, "exec")
    found = _Replaced({}, {})
    if not calls:
        return found
    returned = LibFlag.SIGNAL | LibFlag.RETURN
    begun: dict[int, tuple[int, int]] = {}
    for chunk in reader.chunks(_DOMAIN):
        events = chunk.events
        of_exec = np.isin(events["nr"], calls)
        entered = of_exec & (events["flags"] & LibFlag.RELEASE != 0)
        failed = of_exec & (events["flags"] & (LibFlag.RELEASE | LibFlag.ENTER) == 0)
        replaced = events["kind"] == Kind.EXECED
        handled = events["flags"] & returned == returned
        asked = np.isin(events["task"], [*begun, *events["task"][entered].tolist()])
        for row in np.flatnonzero(asked).tolist():
            task, number = int(events["task"][row]), chunk.first_event + row
            if entered[row]:
                begun[task] = (number, number)
            elif task in begun:
                execve, last = begun[task]
                if replaced[row] or failed[row]:
                    del begun[task]
                    if replaced[row] and last:
                        found.add(execve, last, 0)
                else:
                    begun[task] = (execve, number if handled[row] else 0)
    main = reader.domains[_DOMAIN]
    code = main.end.code if main.end is not None and main.end.status == "exited" else 0
    for task, (execve, last) in begun.items():
        if last:
            found.add(execve, last, code if task == main.pid else 0)
    return found


@dataclass(frozen=True, slots=True)
class Killed:
    """Processes that did not end by themselves: `last` are the numbers of the last events of such,
    `unheard` those of the forks that made others of them, which made no call. The first process is not
    among them: how that ended is known.
    """

    last: frozenset[int] = frozenset()
    unheard: frozenset[int] = frozenset()


def killed(reader: TraceReader, plan: Plan) -> Killed:
    """Find the processes that were killed."""
    np = numpy()
    ends, forks = _special(plan, "end"), _special(plan, "fork")
    if not ends:
        return Killed()
    last: dict[int, tuple[int, int]] = {}
    made: dict[int, int] = {}
    for chunk in reader.chunks(_DOMAIN):
        events = chunk.events
        for row in np.flatnonzero(events["kind"] == Kind.EXECED).tolist():
            made.setdefault(int(events["task"][row]), -1)
        forked = np.isin(events["nr"], forks) & (events["flags"] & LibFlag.RELEASE != 0)
        for row in np.flatnonzero(forked).tolist():
            made[int(events["args"][row][5])] = chunk.first_event + row
        tasks, at = np.unique(events["task"][::-1], return_index=True)
        for task, row in zip(tasks.tolist(), (len(events) - 1 - at).tolist(), strict=True):
            last[task] = (chunk.first_event + row, int(events["nr"][row]))
    made.pop(reader.domains[_DOMAIN].pid, None)
    return Killed(
        frozenset(last[task][0] for task in made if task in last and last[task][1] not in ends),
        frozenset(number for task, number in made.items() if task not in last),
    )


def _special(plan: Plan, special: str) -> list[int]:
    names = plan.functions().items()
    return [number for number, item in names if isinstance(item, Function) and item.special == special]


def _laid(reader: TraceReader, plan: Plan) -> dict[int, bytes]:
    """Number of an event -> the region with the bytes that macros take after it."""
    np = numpy()
    streams = [
        number
        for number, item in plan.functions().items()
        if isinstance(item, Function) and any(extra.kind == "stream" for extra in item.outputs)
    ]
    found: dict[int, bytes] = {}
    if not streams:
        return found
    last: dict[int, int] = {}
    begun: dict[int, bytes] = {}
    for chunk in reader.chunks(_DOMAIN):
        events = chunk.events
        for row in np.flatnonzero(np.isin(events["nr"], streams)).tolist():
            event = events[row]
            flags, task = int(event["flags"]), int(event["task"])
            if flags & LibFlag.AHEAD and task not in begun:
                begun[task] = _payload(chunk, event)[16 if flags & LibFlag.PART else 0 :]
            if flags & LibFlag.PART:
                continue
            stream = int(event["args"][5])
            payload = begun.pop(task, None)
            before = last.get(stream)
            if payload is not None and before is not None and (region := _region(payload)):
                found[before] = region
            last[stream] = chunk.first_event + row
    return found


def _payload(chunk: Any, event: Any) -> bytes:
    start = int(event["payload_off"])
    return bytes(chunk.payload[start : start + int(event["payload_len"])])


def _region(payload: bytes) -> bytes:
    """The bytes that macros take, as a region of the call before."""
    at = 0
    while at + _REGION.size <= len(payload):
        _, size, kind, arg, _ = _REGION.unpack_from(payload, at)
        if kind == RegionKind.OUT:
            if arg != _TAKEN:
                break
            taken = payload[at + _REGION.size : at + _REGION.size + size]
            return _REGION.pack(0, size, RegionKind.OUT, _LAID, 0) + taken + bytes(-size % 8)
        at += _REGION.size + (size + 7 & ~7)
    return b""
