"""The log that a replay at library interfaces reads: every event with its payload behind it.

Bytes that macros of the C library (getc_unlocked) took from a stream are logged with the next call on that
stream, when they are known. Replay needs them earlier: they are laid into the call before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from interfaces import abi
from interfaces.abi import RegionKind
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
SIGNAL_PLACE = struct.Struct("<IIQQ")
TIMED = 2
"""`where` of a signal that came while the program computed."""


def flat_log(reader: TraceReader, plan: Plan) -> Iterator[bytes]:
    """The events of a recording, each with its payload behind it. Raises ReplayError."""
    laid = _laid(reader, plan)
    last = _replaced(reader, plan)
    np = numpy()
    for chunk in reader.chunks(_DOMAIN):
        events, payload = chunk.events.copy(), np.frombuffer(chunk.payload, dtype=np.uint8)
        for number, result in last.items():
            if chunk.first_event <= number < chunk.first_event + len(events):
                events["result"][number - chunk.first_event] = result
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


def _replaced(reader: TraceReader, plan: Plan) -> dict[int, int]:
    """Number of each execve that succeeded -> the status with which its process ends in replay, plus one."""
    np = numpy()
    names = plan.functions().items()
    calls = [number for number, item in names if isinstance(item, Function) and item.special == "exec"]
    found: dict[int, int] = {}
    if not calls:
        return found
    for chunk in reader.chunks(_DOMAIN):
        events = chunk.events
        rows = np.flatnonzero(np.isin(events["nr"], calls) & (events["flags"] & LibFlag.RELEASE != 0))
        tasks = {task: number for number, task in found.items()}
        for task in {*tasks, *events["task"][rows].tolist()}:
            mine = np.flatnonzero(events["task"] == task)
            if len(mine):
                found.pop(tasks.get(task, -1), None)
                if int(mine[-1]) in rows:
                    found[chunk.first_event + int(mine[-1])] = task
    main = reader.domains[_DOMAIN]
    code = main.end.code if main.end is not None and main.end.status == "exited" else 0
    return {number: 1 + (code if task == main.pid else 0) for number, task in found.items()}


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
