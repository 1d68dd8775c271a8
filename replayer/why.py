"""Why a call waited or failed: who made what it waited for.

`explain(reader, place)` answers from the log alone: the write that fed a read (through pipes and sockets of
recorded processes), the thread that woke a futex, the child that was waited for, the event that opened or
closed a descriptor. Who holds a lock that is never released is in memory: see `lock_owner`.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from interfaces.abi import RESTART, EventFlag, Kind, Region, RegionKind
from interfaces.calls import CALLS
from interfaces.decode import format_event
from interfaces.names.signals import signal_name
from replayer.descriptors import (
    ACCEPTING,
    NUMBERS,
    READING,
    WRITING,
    Descriptors,
    End,
    EventRef,
    numbers,
    signed,
)
from replayer.errors import LibraryTraceError, NothingToReplayError
from replayer.place import Place
from tracefile import EventView, TraceReader

_WAITING_FOR_CHILD = numbers("wait4", "waitid")
_SLEEPING = numbers("nanosleep", "clock_nanosleep", "pause", "rt_sigsuspend")
_POLLING = numbers("poll", "ppoll")
_EPOLL = numbers("epoll_wait", "epoll_pwait", "epoll_pwait2")
_FUTEX = NUMBERS["futex"]
_FUTEX_WAITS = (0, 6, 9, 11, 13)
_FUTEX_WAKES = (1, 3, 4, 5, 7, 10)
_KILLING = numbers("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_POLL_BITS = 0x3F


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that explains the call. `what` is a sentence; `at` the event it is about, where there is
    one, and `call` that event as text."""

    what: str
    at: EventRef | None = None
    call: str = ""
    pid: int = 0


@dataclass(slots=True)
class Explanation:
    """The call that was asked about, how long it took (seconds, None: never returned), and why."""

    place: Place
    task: int
    call: str
    seconds: float | None
    blocked: bool
    causes: list[Cause] = field(default_factory=list)


def explain(reader: TraceReader, place: Place) -> Explanation:
    """Why the event at `place` waited or failed; NothingToReplayError where it is no call.

    The begin of a blocking call stands for the call itself.
    """
    return _Explainer(reader, place).run()


class _Explainer:
    def __init__(self, reader: TraceReader, place: Place) -> None:
        self._reader = reader
        self._asked = place
        self._descriptors: Descriptors | None = None

    def run(self) -> Explanation:
        if isinstance(self._reader.meta.get("library"), dict):
            raise LibraryTraceError(self._reader.meta)
        event, ended = self._call(self._reader.event(self._asked.domain, self._asked.event))
        if event.kind not in (Kind.SYSCALL, Kind.RELEASE):
            raise NothingToReplayError(
                f"event {event.number} is no call: {format_event(event, event.regions)}",
                "Choose a call: see `rr-py dump --numbers`.",
            )
        self._event = event
        place = Place(self._asked.domain, self._asked.pid, event.number)
        blocked = bool(event.flags & EventFlag.BLOCKED) or not ended
        seconds = max(event.time_out - event.time_in, 0) / 1e9 if ended else None
        found = Explanation(place, event.task, self._text(event), seconds, blocked)
        if not ended:
            found.causes.append(Cause("it never returned: the recording ends while it waits"))
        found.causes.extend(self._signals(event))
        found.causes.extend(self._waited_for(event, ended))
        if ended and -4095 <= event.result < 0:
            found.causes.extend(self._failed(event))
        return found

    def _call(self, event: EventView) -> tuple[EventView, bool]:
        """The call that an event belongs to, and whether it returned."""
        if event.kind != Kind.RELEASE:
            return event, True
        for later in self._events(event.domain, event.number + 1):
            if later.task == event.task and later.kind == Kind.SYSCALL:
                return later, True
            if later.task == event.task and later.kind not in (Kind.DATA, Kind.SIGNAL):
                break
        return event, False

    def _events(self, domain: int, start: int = 0) -> Iterator[EventView]:
        for chunk in self._reader.chunks(domain, start):
            skip = max(start - chunk.first_event, 0)
            yield from chunk.views(skip)

    def _text(self, event: EventView) -> str:
        return format_event(event, event.regions)

    def _cause(self, what: str, ref: EventRef | None) -> Cause:
        if ref is None:
            return Cause(what)
        event = self._reader.event(ref.domain, ref.event)
        return Cause(what, ref, self._text(event), self._reader.domains[ref.domain].pid)

    def _known(self) -> Descriptors:
        if self._descriptors is None:
            ref = EventRef(self._event.time_out, self._event.domain, self._event.number, self._event.task)
            self._descriptors = Descriptors(self._reader, ref)
        return self._descriptors

    # ---- what it waited for ----

    def _waited_for(self, event: EventView, ended: bool) -> Iterator[Cause]:
        nr = event.nr
        if nr == _FUTEX:
            yield from self._futex(event, ended)
        elif nr in _WAITING_FOR_CHILD:
            yield from self._child(event)
        elif nr in _POLLING:
            yield from self._polled(event)
        elif nr in _EPOLL:
            yield from self._epolled(event)
        elif nr in _SLEEPING:
            if nr in numbers("nanosleep", "clock_nanosleep"):
                yield Cause("it slept for the time it was given")
        elif nr in READING or nr in WRITING or nr in ACCEPTING or self._by_descriptor(nr):
            yield from self._descriptor(event, signed(event.args[0]))

    def _by_descriptor(self, nr: int) -> bool:
        call = CALLS.get(nr)
        return call is not None and bool(call.args) and call.args[0].type == "fd"

    def _descriptor(self, event: EventView, fd: int) -> Iterator[Cause]:
        end = self._known().at.get(fd)
        if end is None:
            if event.result == -errno.EBADF:
                yield self._cause(f"descriptor {fd} is not open", None)
                closed = self._known().closed_before.get(fd)
                if closed is not None:
                    yield self._cause(f"descriptor {fd} was closed", closed)
            return
        if event.nr in READING:
            yield from self._fed(event, end)
        elif event.nr in ACCEPTING:
            mine = EventRef(event.time_out, event.domain, event.number, event.task)
            for other in self._ends_opened_at(mine):
                if other.peer is not None and other.peer.opened is not None:
                    yield self._cause("the other side connected: its socket was made", other.peer.opened)
        elif event.nr in WRITING and event.result == -errno.EPIPE and end.peer is not None:
            yield self._cause("the other end was closed", self._last(end.peer.closed, event))
        elif event.nr in WRITING and event.flags & EventFlag.BLOCKED and end.peer is not None:
            reads = [ref for ref, _size in end.peer.read]
            yield self._cause("it waited for room, which a read made", self._last(reads, event))
        yield self._opened(fd, end)

    def _ends_opened_at(self, ref: EventRef) -> Iterator[End]:
        known = self._known()
        for found in known._listening.values():
            for opened, end in found:
                if (opened.domain, opened.event) == (ref.domain, ref.event):
                    yield end

    def _opened(self, fd: int, end: End) -> Cause:
        what = f"descriptor {fd} is {'the ' if end.kind == 'pipe' else ''}{end.text}"
        if end.opened is None:
            return Cause(f"{what}, which the program was started with")
        return self._cause(f"{what}, opened", end.opened)

    def _fed(self, event: EventView, end: End) -> Iterator[Cause]:
        """The write that a read got its first byte from; for the end of a stream, who closed it."""
        source = end.peer if end.kind in ("pipe", "socket") else end
        if source is None or end.kind not in ("pipe", "socket", "eventfd"):
            return
        if event.result == 0:
            yield self._cause("there is no more: the other end was closed", self._last(source.closed, event))
            return
        if event.result == -errno.EAGAIN:
            later = [ref for ref, _size in source.written if ref.time >= event.time_in]
            yield self._cause("nothing had been written; the next write was", min(later, default=None))
            return
        if event.result < 0 or event.kind != Kind.SYSCALL:
            return
        if end.kind == "eventfd":
            yield self._cause("it was made ready", self._last([ref for ref, _s in end.written], event))
            return
        before = sum(
            size
            for ref, size in sorted(end.read)
            if (ref.time, ref.domain, ref.event) < (event.time_out, event.domain, event.number)
        )
        at = 0
        for ref, size in sorted(source.written):
            at += size
            if at > before:
                yield self._cause("what it read was written", ref)
                return

    @staticmethod
    def _last(refs: list[EventRef], event: EventView) -> EventRef | None:
        """The latest of them that is not behind the event; the first one where clocks are too coarse."""
        before = [ref for ref in refs if ref.time <= event.time_out]
        return max(before) if before else min(refs, default=None)

    def _polled(self, event: EventView) -> Iterator[Cause]:
        if event.result == 0:
            yield Cause("nothing became ready in the time it was given")
        for region in event.regions:
            if region.kind == RegionKind.OUT and region.arg == 0:
                for fd, _events, ready in struct.iter_unpack("<ihh", region.data[: len(region.data) & ~7]):
                    if ready & _POLL_BITS:
                        yield from self._ready(event, fd)

    def _epolled(self, event: EventView) -> Iterator[Cause]:
        if event.result == 0:
            yield Cause("nothing became ready in the time it was given")
        control = NUMBERS["epoll_ctl"]
        watched: dict[int, int] = {}
        for chunk in self._reader.chunks(event.domain):
            rows = np.flatnonzero((chunk.events["nr"] == control) & (chunk.events["kind"] == Kind.SYSCALL))
            for row in rows:
                one = chunk.view(int(row))
                if one.number < event.number and one.args[0] == event.args[0] and one.result == 0:
                    data = next((r.data for r in one.regions if r.kind == RegionKind.IN and r.arg == 3), b"")
                    if len(data) >= 12:
                        watched[int.from_bytes(data[4:12], "little")] = signed(one.args[2])
        for region in event.regions:
            if region.kind == RegionKind.OUT and region.arg == 1:
                for at in range(0, min(len(region.data), 12 * max(event.result, 0)), 12):
                    key = int.from_bytes(region.data[at + 4 : at + 12], "little")
                    if key in watched:
                        yield from self._ready(event, watched[key])

    def _ready(self, event: EventView, fd: int) -> Iterator[Cause]:
        end = self._known().at.get(fd)
        if end is None:
            yield Cause(f"descriptor {fd} became ready")
            return
        source = end.peer if end.kind in ("pipe", "socket") else end
        if source is not None and end.kind in ("pipe", "socket", "eventfd"):
            refs = [ref for ref, _size in source.written if ref.time <= event.time_out]
            refs += [ref for ref in source.closed if ref.time <= event.time_out]
            if refs:
                yield self._cause(f"descriptor {fd} became ready", max(refs))
        yield self._opened(fd, end)

    def _futex(self, event: EventView, ended: bool) -> Iterator[Cause]:
        if event.args[1] & 127 not in _FUTEX_WAITS:
            return
        if event.result == -errno.EAGAIN:
            yield Cause("it did not wait: the word had already changed")
            return
        if event.result == -errno.ETIMEDOUT:
            yield Cause("nobody woke it in the time it was given")
        word = event.args[0]
        last: EventView | None = None
        for chunk in self._reader.chunks(event.domain):
            if chunk.first_event > event.number and ended:
                break
            rows = chunk.events
            chosen = (rows["nr"] == _FUTEX) & (rows["kind"] == Kind.SYSCALL) & (rows["task"] != event.task)
            chosen &= (rows["args"][:, 0] == word) | (rows["args"][:, 4] == word)
            cleared = (rows["kind"] == Kind.TASK_EXIT) & (rows["task"] != event.task)
            for row in np.flatnonzero(chosen | cleared):
                one = chunk.view(int(row))
                if one.number > event.number and ended:
                    break
                if self._wakes(one, word):
                    last = one
        if last is not None and event.result == 0 and ended:
            ref = EventRef(last.time_out, last.domain, last.number, last.task)
            how = "ended" if last.kind == Kind.TASK_EXIT else "woke it"
            yield self._cause(f"thread {last.task} {how}", ref)

    @staticmethod
    def _wakes(event: EventView, word: int) -> bool:
        if event.kind == Kind.TASK_EXIT:
            return any(region.kind == RegionKind.OUT and region.addr == word for region in event.regions)
        return event.args[1] & 127 in _FUTEX_WAKES and event.result > 0

    def _child(self, event: EventView) -> Iterator[Cause]:
        pid = event.result
        if event.nr == NUMBERS["waitid"] and event.result == 0:
            data = next((r.data for r in event.regions if r.kind == RegionKind.OUT and r.arg == 2), b"")
            pid = int.from_bytes(data[12:16], "little") if len(data) >= 16 else 0
        if pid <= 0:
            if event.result == -errno.ECHILD:
                yield Cause("it has no such child, or all were waited for")
            elif event.result == 0:
                yield Cause("no child had ended")
            return
        ends = [(end, info) for info in self._reader.domains.values() for end in info.ends if end.pid == pid]
        final = [(end, info) for end, info in ends if end.status in ("exited", "signaled")]
        if not final:
            yield Cause(f"child {pid} changed its state; its end is not in the recording")
            return
        end, info = final[-1]
        how = f"exited {end.code}" if end.status == "exited" else f"was killed by {signal_name(end.code)}"
        last = EventRef(end.time, info.domain, info.event_count - 1, pid) if info.event_count else None
        name = f" ({info.comm})" if info.comm else ""
        yield self._cause(f"child {pid}{name} {how}", last)

    def _signals(self, event: EventView) -> Iterator[Cause]:
        """A signal that ended the waiting, and who sent it."""
        if event.result not in (-errno.EINTR, RESTART):
            return
        for later in self._events(event.domain, event.number + 1):
            if later.task != event.task:
                continue
            if later.kind == Kind.SIGNAL:
                yield from self._sender(later)
            break

    def _sender(self, event: EventView) -> Iterator[Cause]:
        info = next((r.data for r in event.regions if r.kind == RegionKind.INFO), b"")
        code, pid = struct.unpack_from("<8xi4xi", info) if len(info) >= 20 else (0, 0)
        yield Cause(f"signal {signal_name(event.nr)} interrupted it")
        if code > 0 or not pid:
            return
        for domain, domain_info in self._reader.domains.items():
            if domain_info.pid != pid:
                continue
            sent = [
                EventRef(one.time_out, domain, one.number, one.task)
                for chunk in self._reader.chunks(domain)
                for row in np.flatnonzero(np.isin(chunk.events["nr"], list(_KILLING)))
                if (one := chunk.view(int(row))).kind == Kind.SYSCALL and one.result == 0
            ]
            after = [ref for ref in sent if ref.time >= event.time_in]
            if sent:
                yield self._cause(f"process {pid} sent it", min(after) if after else max(sent))

    # ---- why it failed ----

    def _failed(self, event: EventView) -> Iterator[Cause]:
        if event.result == RESTART:
            return
        number = -event.result
        name = errno.errorcode.get(number, str(number))
        yield Cause(f"it failed with {name}: {os.strerror(number)}")
        call = CALLS.get(event.nr)
        if call is None or number not in (errno.ENOENT, errno.ENOTDIR):
            return
        for region in event.regions:
            if region.kind == RegionKind.IN and _is_path(call.args, region):
                path = region.data.split(b"\0", 1)[0].decode(errors="replace")
                yield from self._removed(path, event)

    def _removed(self, path: str, event: EventView) -> Iterator[Cause]:
        """The call by which a recorded process took this path away."""
        wanted = numbers("unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2")
        last: EventView | None = None
        for domain in self._reader.domains:
            for chunk in self._reader.chunks(domain):
                for row in np.flatnonzero(np.isin(chunk.events["nr"], list(wanted))):
                    one = chunk.view(int(row))
                    if one.result != 0 or one.kind != Kind.SYSCALL or one.time_out > event.time_out:
                        continue
                    first = next((r.data for r in one.regions if r.kind == RegionKind.IN), b"")
                    same = first.split(b"\0", 1)[0].decode(errors="replace") == path
                    if same and (last is None or one.time_out >= last.time_out):
                        last = one
        if last is not None:
            ref = EventRef(last.time_out, last.domain, last.number, last.task)
            yield self._cause(f"{path} was taken away", ref)


def _is_path(arguments: tuple[object, ...], region: Region) -> bool:
    argument = arguments[region.arg] if region.arg < len(arguments) else None
    return getattr(argument, "type", "") == "path"
