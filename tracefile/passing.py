"""Descriptors that were passed over sockets (SCM_RIGHTS): which message brought which descriptors from whom.

Only what both sides did within the recording can be told. A message that brings descriptors is matched with
the earliest one that was not sent later, begins with the same bytes, and is not taken yet: rather one of
another process, with as many descriptors. (Times are those of a coarse clock, and equal ones say nothing.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from interfaces.abi import Kind, Region, RegionKind, parse_regions
from interfaces.arrays import numpy
from interfaces.calls import BY_NAME
from tracefile.chunk import Chunk, EventView
from tracefile.reader import TraceReader

SENDING = frozenset(BY_NAME[name].number for name in ("sendmsg", "sendmmsg"))
RECEIVING = frozenset(BY_NAME[name].number for name in ("recvmsg", "recvmmsg"))
_SEVERAL = frozenset(BY_NAME[name].number for name in ("sendmmsg", "recvmmsg"))
_NUMBERS = sorted(SENDING | RECEIVING)
_RIGHTS = struct.pack("<ii", 1, 1)
_HEADER, _OF_SEVERAL, _CMSG = 56, 64, 16
_DATA = 64


@dataclass(frozen=True, slots=True)
class Passed:
    """A message with descriptors, at its event: sent or received when (ns), which, and how its data begins.

    An event may have several. Of a call that blocked, a sent message is at the event in which it began.
    """

    domain: int
    event: int
    sent: bool
    time: int
    fds: tuple[int, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a received descriptor comes from: descriptor `fd` of the process that made the event."""

    domain: int
    event: int
    fd: int


def in_chunk(chunk: Chunk) -> Iterator[Passed]:
    """The messages with descriptors among a chunk's events. TraceFormatError where it is damaged."""
    np = numpy()
    events = chunk.events
    numbers, kinds = events["nr"], events["kind"]
    chosen = np.flatnonzero(np.isin(numbers, _NUMBERS) & (events["payload_len"] > 0))
    if len(chosen):
        chosen = chosen[(kinds[chosen] == Kind.SYSCALL) | (kinds[chosen] == Kind.RELEASE)]
    if not len(chosen) or chunk.payload.find(_RIGHTS) < 0:
        return
    for i in chosen.tolist():
        if chunk.event_payload(i).find(_RIGHTS) < 0:
            continue
        event = chunk.view(i)
        sent = event.nr in SENDING
        failed = event.kind == Kind.SYSCALL and event.result < 0
        if failed or (event.kind == Kind.RELEASE and not sent):
            continue
        time = event.time_in if sent else event.time_out
        try:
            messages = list(_messages(event, RegionKind.IN if sent else RegionKind.OUT))
        except ValueError:
            continue
        for fds, data in messages:
            if fds:
                yield Passed(event.domain, event.number, sent, time, fds, data)


def all_of(reader: TraceReader) -> list[Passed]:
    """The messages with descriptors of a whole trace. TraceFormatError where it is damaged."""
    return [
        one for domain in sorted(reader.domains) for chunk in reader.chunks(domain) for one in in_chunk(chunk)
    ]


def by_event(messages: Iterable[Passed]) -> dict[tuple[int, int], Passed]:
    """(domain, event) -> what its messages carried, all together."""
    found: dict[tuple[int, int], Passed] = {}
    for one in messages:
        before = found.get((one.domain, one.event))
        found[one.domain, one.event] = one if before is None else replace(before, fds=before.fds + one.fds)
    return found


def origins(messages: Iterable[Passed]) -> dict[tuple[int, int], dict[int, Origin]]:
    """(domain, event) of each received message -> descriptor -> where it comes from, as far as known."""
    ordered = sorted(messages, key=lambda one: one.time)
    waiting = [one for one in ordered if one.sent]
    found: dict[tuple[int, int], dict[int, Origin]] = {}
    for one in ordered:
        if one.sent:
            continue
        fitting = [sent for sent in waiting if _fits(sent, one)]
        if fitting:
            match = min(fitting, key=lambda sent: (sent.domain == one.domain, len(sent.fds) != len(one.fds)))
            waiting.remove(match)
            found.setdefault((one.domain, one.event), {}).update(
                (fd, Origin(match.domain, match.event, of))
                for fd, of in zip(one.fds, match.fds, strict=False)
            )
    return found


def _fits(sent: Passed, received: Passed) -> bool:
    size = min(len(sent.data), len(received.data))
    if sent.domain == received.domain and sent.event > received.event:
        return False
    same = sent.data[:size] == received.data[:size]
    return same and sent.time <= received.time and len(sent.fds) >= len(received.fds)


def _messages(event: EventView, kind: RegionKind) -> Iterator[tuple[tuple[int, ...], bytes]]:
    """(descriptors, how the data begins) of each message of a call. ValueError: the payload is no regions.

    A call for several messages logs them one behind the other, each beginning with its header.
    """
    regions = parse_regions(event.payload)
    address = event.args[1]
    if event.nr not in _SEVERAL:
        yield _message(regions, address, kind)
        return
    count = event.result if event.kind == Kind.SYSCALL else event.args[2] & 0xFFFFFFFF
    begins = [
        i
        for i, region in enumerate(regions)
        if region.kind == kind
        and _HEADER <= len(region.data) <= _OF_SEVERAL
        and region.addr in range(address, address + count * _OF_SEVERAL, _OF_SEVERAL)
    ]
    for begin, end in zip(begins, [*begins[1:], len(regions)], strict=True):
        yield _message(regions[begin:end], regions[begin].addr, kind)


def _message(regions: list[Region], address: int, kind: RegionKind) -> tuple[tuple[int, ...], bytes]:
    """(descriptors, how the data begins) of the msghdr at an address."""
    header = next((r.data for r in reversed(regions) if r.addr == address and len(r.data) >= _HEADER), b"")
    if not header:
        return (), b""
    (name,) = struct.unpack_from("<Q", header)
    vector, _, control = struct.unpack_from("<QQQ", header, 16)
    places = {region.addr: region.data for region in regions if region.kind == kind}
    around = (address, name, vector, control)
    data = next((content for place, content in places.items() if place not in around), b"")
    return tuple(_rights(places.get(control, b""))), data[:_DATA]


def _rights(control: bytes) -> Iterator[int]:
    at = 0
    while at + _CMSG <= len(control):
        (size,) = struct.unpack_from("<Q", control, at)
        if size < _CMSG or at + size > len(control):
            return
        if control[at + 8 : at + _CMSG] == _RIGHTS:
            for (fd,) in struct.iter_unpack("<i", control[at + _CMSG : at + size - size % 4]):
                yield fd
        at += size + 7 & ~7
