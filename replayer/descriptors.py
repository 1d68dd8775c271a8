"""Who opened which descriptor, and how the ends of pipes and sockets belong together, from the log alone.

`Descriptors(reader)` goes once through the calls about descriptors of all domains, parents first, with a
table of open descriptors for every process: copied by fork, shared by threads, thinned out by exec. What was
received over a socket (SCM_RIGHTS) is what it was to the sender, where that was recorded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from interfaces.abi import Kind, RegionKind
from interfaces.calls import CALLS
from tracefile import EventView, TraceReader
from tracefile.passing import Passed, all_of, by_event, origins

NUMBERS = {call.name: number for number, call in CALLS.items()}
_CLOEXEC = 0o2000000
_CLONE_FILES = 0x400
_F_DUPFD, _F_SETFD, _F_DUPFD_CLOEXEC = 0, 2, 1030
_INET = (2, 10)


def numbers(*names: str) -> frozenset[int]:
    """Call numbers by name; names the table does not have are left out."""
    return frozenset(NUMBERS[name] for name in names if name in NUMBERS)


OPENING = numbers("open", "openat", "openat2", "creat")
SPECIAL = numbers(
    "eventfd", "eventfd2", "epoll_create", "epoll_create1", "timerfd_create", "signalfd", "signalfd4",
    "inotify_init", "inotify_init1", "memfd_create", "pidfd_open", "userfaultfd", "fanotify_init",
)  # fmt: skip
ACCEPTING = numbers("accept", "accept4")
PAIRS = numbers("pipe", "pipe2", "socketpair")
DUPLICATING = numbers("dup", "dup2", "dup3")
CLONING = numbers("clone", "clone3", "fork", "vfork")
READING = numbers("read", "readv", "recvfrom", "recvmsg", "recvmmsg", "pread64", "preadv", "splice")
WRITING = numbers("write", "writev", "sendto", "sendmsg", "sendmmsg", "sendfile", "pwrite64", "pwritev")
_TABLE = (
    OPENING | SPECIAL | ACCEPTING | PAIRS | DUPLICATING | CLONING
    | numbers("socket", "bind", "connect", "close", "close_range", "fcntl", "exit_group")
)  # fmt: skip
_STREAM = READING | WRITING


@dataclass(frozen=True, slots=True, order=True)
class EventRef:
    """An event by its place in the trace. `time` (ns) orders events of different domains, roughly."""

    time: int
    domain: int
    event: int
    task: int = 0


@dataclass(slots=True, eq=False)
class End:
    """What a descriptor stands for: one end of a pipe or connection, or a whole file. Shared by duplicates.

    `opened` is None for what the program was started with; `peer` is the other end, where it is known.
    """

    kind: str
    text: str
    opened: EventRef | None
    peer: End | None = None
    closed: list[EventRef] = field(default_factory=list)
    written: list[tuple[EventRef, int]] = field(default_factory=list)
    read: list[tuple[EventRef, int]] = field(default_factory=list)
    address: bytes = b""


@dataclass(slots=True)
class _Slot:
    end: End
    cloexec: bool = False


class Table:
    """The descriptors of one process."""

    def __init__(self, slots: dict[int, _Slot] | None = None) -> None:
        self._slots: dict[int, _Slot] = dict(slots or {})

    def get(self, fd: int) -> End | None:
        """What `fd` stands for, None where it is not open or not known."""
        slot = self._slots.get(fd)
        return slot.end if slot is not None else None

    def put(self, fd: int, end: End, cloexec: bool, ref: EventRef) -> None:
        """`fd` now stands for `end`."""
        self.close(fd, ref)
        self._slots[fd] = _Slot(end, cloexec)

    def close(self, fd: int, ref: EventRef) -> None:
        """`fd` is closed."""
        slot = self._slots.pop(fd, None)
        if slot is not None:
            slot.end.closed.append(ref)

    def set_cloexec(self, fd: int, value: bool) -> None:
        """FD_CLOEXEC of `fd` is changed."""
        if fd in self._slots:
            self._slots[fd].cloexec = value

    def copy(self, *, executed: bool = False) -> Table:
        """A child's table, or that of a program image that replaces this one."""
        return Table(
            {fd: _Slot(s.end, s.cloexec) for fd, s in self._slots.items() if not (executed and s.cloexec)}
        )

    def clear(self, ref: EventRef, low: int = 0, high: int = 1 << 32) -> None:
        """All descriptors in [low, high] are closed."""
        for fd in [fd for fd in self._slots if low <= fd <= high]:
            self.close(fd, ref)


def signed(value: int) -> int:
    """A descriptor argument as the kernel takes it: the low 32 bits, signed."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def input_text(event: EventView, argument: int) -> str:
    """The string a call names, "" where it is not in the log."""
    for region in event.regions:
        if region.kind == RegionKind.IN and region.arg == argument:
            return region.data.split(b"\0", 1)[0].decode(errors="replace")
    return ""


class Descriptors:
    """The result of the pass; `at` tells what a descriptor was when the event `stop` began."""

    def __init__(self, reader: TraceReader, stop: EventRef | None = None) -> None:
        """`stop`: the event whose table is to be kept. Raises TraceFormatError for a damaged trace."""
        self._reader = reader
        self._stop = stop
        self._start_tables: dict[int, Table] = {}
        self._listening: dict[bytes, list[tuple[EventRef, End]]] = {}
        self._connecting: dict[bytes, list[tuple[EventRef, End]]] = {}
        self._closings: dict[tuple[int, int], dict[int, EventRef]] = {}
        self.at: Table = Table()
        self.closed_before: dict[int, EventRef] = {}
        """Descriptors of the process of `stop` that are closed then, and the event that closed each."""
        messages = all_of(reader)
        self._messages = by_event(messages)
        self._origins = origins(messages)
        self._passed: dict[tuple[int, int, int], End] = {}
        for number in sorted(reader.domains):
            self._domain(number)
        self._join()

    def _domain(self, number: int) -> None:
        info = self._reader.domains[number]
        first = self._start_tables.pop(number) if number in self._start_tables else _inherited()
        tables: dict[int, Table] = {info.pid: first}
        process: dict[int, int] = {}
        pending: dict[int, Table] = {}
        for event in self._relevant(number):
            pid = process.get(event.task, info.pid)
            ref = EventRef(event.time_out, number, event.number, event.task)
            if event.kind == Kind.TASK_START:
                process[event.task] = event.args[1]
                if event.args[2] and event.args[1] not in tables:
                    maker = tables[process.get(event.args[0], info.pid)]
                    tables[event.args[1]] = pending.pop(event.args[1], maker.copy())
                continue
            table = tables.setdefault(pid, Table())
            if self._stop is not None and (number, event.number) == (self._stop.domain, self._stop.event):
                self.at = table.copy()
                self.closed_before = dict(self._closings.get((number, pid), {}))
            if event.kind == Kind.EXECED:
                self._start_tables[event.args[0]] = table.copy(executed=True)
                continue
            if event.kind == Kind.DEATH:
                table.clear(ref)
                continue
            message = self._messages.get((number, event.number))
            if message is not None:
                self._pass(message, ref, table)
            if event.kind == Kind.SYSCALL:
                self._call(event, ref, table, pid, pending)

    def _relevant(self, number: int) -> Iterator[EventView]:
        wanted = np.array(sorted(_TABLE | _STREAM))
        for chunk in self._reader.chunks(number):
            kinds = chunk.events["kind"]
            chosen = (kinds == Kind.SYSCALL) & np.isin(chunk.events["nr"], wanted)
            chosen |= np.isin(kinds, [Kind.TASK_START, Kind.EXECED, Kind.DEATH])
            for domain, event in self._messages:
                if domain == number and 0 <= event - chunk.first_event < len(chunk):
                    chosen[event - chunk.first_event] = True
            if self._stop is not None and number == self._stop.domain:
                place = self._stop.event - chunk.first_event
                if 0 <= place < len(chunk):
                    chosen[place] = True
            for row in np.flatnonzero(chosen):
                yield chunk.view(int(row))

    def _pass(self, message: Passed, ref: EventRef, table: Table) -> None:
        """Descriptors leave with a message, or come with one.

        Whoever is looked at first makes what they stand for; a sender that comes later tells the rest.
        """
        known = self._origins.get((message.domain, message.event), {})
        for fd in message.fds:
            if message.sent:
                end, place = table.get(fd), (message.domain, message.event, fd)
                before = self._passed.get(place)
                if end is not None and before is not None:
                    before.kind, before.text, before.opened = end.kind, end.text, end.opened
                    before.peer, before.address = end.peer, end.address
                elif end is not None:
                    self._passed[place] = end
                continue
            origin = known.get(fd)
            received = End("received", "received over a socket", ref)
            if origin is not None:
                received = self._passed.setdefault((origin.domain, origin.event, origin.fd), received)
            table.put(fd, received, False, ref)

    def _call(
        self, event: EventView, ref: EventRef, table: Table, pid: int, pending: dict[int, Table]
    ) -> None:
        nr, result, args = event.nr, event.result, event.args
        fd = signed(args[0])
        if nr in READING:
            end = table.get(fd)
            if end is not None and end.kind in _STREAMS and result >= 0:
                end.read.append((ref, result))
        elif nr in WRITING:
            end = table.get(fd)
            if end is not None and end.kind in _STREAMS and result > 0:
                end.written.append((ref, result))
        elif nr == NUMBERS["close"]:
            if result == 0:
                self._closings.setdefault((ref.domain, pid), {})[fd] = ref
            table.close(fd, ref)
        elif nr == NUMBERS["exit_group"]:
            table.clear(ref)
        elif nr == NUMBERS["connect"] and result in (0, -115):
            end, key = table.get(fd), _address(event, 1)
            if end is not None and key:
                end.text = f"connection to {address_text(event, 1)}"
                self._connecting.setdefault(key, []).append((ref, end))
        elif result >= 0:
            self._made(event, ref, table, pending)

    def _made(self, event: EventView, ref: EventRef, table: Table, pending: dict[int, Table]) -> None:
        nr, result, args = event.nr, event.result, event.args
        if nr in OPENING:
            at_folder = nr in numbers("openat", "openat2")
            path = input_text(event, 1 if at_folder else 0)
            cloexec = bool(args[2 if at_folder else 1] & _CLOEXEC)
            table.put(result, End("file", path, ref), cloexec, ref)
        elif nr in SPECIAL:
            name = CALLS[nr].name.rstrip("0124").removesuffix("_create").removesuffix("_init")
            flags = args[0] if nr in numbers("epoll_create1", "inotify_init1") else args[1]
            table.put(result, End(name, name, ref), bool(flags & _CLOEXEC), ref)
        elif nr in PAIRS:
            self._pair(event, ref, table)
        elif nr == NUMBERS["socket"]:
            end = End("socket", "socket", ref)
            table.put(result, end, bool(args[1] & _CLOEXEC), ref)
        elif nr == NUMBERS["bind"]:
            listening = table.get(signed(args[0]))
            if listening is not None:
                listening.address = _address(event, 1)
                listening.text = f"socket bound to {address_text(event, 1)}"
        elif nr in ACCEPTING:
            listener = table.get(signed(args[0]))
            key = listener.address if listener is not None else b""
            end = End("socket", f"connection accepted on {listener.text if listener else '?'}", ref)
            table.put(result, end, nr == NUMBERS["accept4"] and bool(args[3] & _CLOEXEC), ref)
            if key:
                self._listening.setdefault(key, []).append((ref, end))
        elif nr in DUPLICATING:
            known = table.get(signed(args[0]))
            if known is not None and result != signed(args[0]):
                table.put(result, known, nr == NUMBERS["dup3"] and bool(args[2] & _CLOEXEC), ref)
        elif nr == NUMBERS["fcntl"]:
            self._fcntl(event, ref, table)
        elif nr == NUMBERS["close_range"]:
            if args[2] & 4:
                for fd in range(args[0], min(args[1], 1 << 16) + 1):
                    table.set_cloexec(fd, True)
            else:
                table.clear(ref, args[0], args[1])
        elif nr in CLONING and result > 0:
            domain = next((r.data for r in event.regions if r.kind == RegionKind.DOMAIN), b"")
            number = int.from_bytes(domain, "little")
            shares = nr == NUMBERS["clone"] and bool(args[0] & _CLONE_FILES)
            if number and number != ref.domain:
                self._start_tables[number] = table if shares else table.copy()
            elif not shares:
                pending[result] = table.copy()

    def _fcntl(self, event: EventView, ref: EventRef, table: Table) -> None:
        fd, command = signed(event.args[0]), event.args[1]
        known = table.get(fd)
        if known is None:
            return
        if command in (_F_DUPFD, _F_DUPFD_CLOEXEC):
            table.put(event.result, known, command == _F_DUPFD_CLOEXEC, ref)
        elif command == _F_SETFD:
            table.set_cloexec(fd, bool(event.args[2] & 1))

    def _pair(self, event: EventView, ref: EventRef, table: Table) -> None:
        socket = event.nr == NUMBERS["socketpair"]
        argument = 3 if socket else 0
        data = next((r.data for r in event.regions if r.kind == RegionKind.OUT and r.arg == argument), b"")
        if len(data) < 8:
            return
        left, right = struct.unpack_from("<ii", data)
        kind = "socket" if socket else "pipe"
        names = ("reading end of a pipe", "writing end of a pipe") if not socket else ("socket pair",) * 2
        ends = [End(kind, name, ref) for name in names]
        ends[0].peer, ends[1].peer = ends[1], ends[0]
        flags = event.args[1] if socket or event.nr == NUMBERS["pipe2"] else 0
        for fd, end in zip((left, right), ends, strict=True):
            table.put(fd, end, bool(flags & _CLOEXEC), ref)

    def _join(self) -> None:
        """Connections: the nth connect to an address meets the nth accept on it."""
        for key, connecting in self._connecting.items():
            listening = self._listening.get(key, [])
            pairs = zip(sorted(connecting, key=_when), sorted(listening, key=_when), strict=False)
            for (_a, left), (_b, right) in pairs:
                left.peer, right.peer = right, left


_STREAMS = ("pipe", "socket", "eventfd")


def _when(item: tuple[EventRef, End]) -> EventRef:
    return item[0]


def _inherited() -> Table:
    names = {0: "standard input", 1: "standard output", 2: "standard error"}
    return Table({fd: _Slot(End("inherited", name, None)) for fd, name in names.items()})


def _address_bytes(event: EventView, argument: int) -> bytes:
    return next((r.data for r in event.regions if r.kind == RegionKind.IN and r.arg == argument), b"")


def _address(event: EventView, argument: int) -> bytes:
    """What tells addresses apart: family and port, or family and path."""
    data = _address_bytes(event, argument)
    if len(data) < 4:
        return b""
    family = int.from_bytes(data[:2], "little")
    return b"inet" + data[2:4] if family in _INET else data[: event.args[2] & 0xFFFF]


def address_text(event: EventView, argument: int) -> str:
    """A socket address for people."""
    data = _address_bytes(event, argument)
    if len(data) < 4:
        return "?"
    family = int.from_bytes(data[:2], "little")
    if family == 2 and len(data) >= 8:
        return f"{'.'.join(map(str, data[4:8]))}:{int.from_bytes(data[2:4], 'big')}"
    if family == 10:
        return f"port {int.from_bytes(data[2:4], 'big')}"
    path = data[2 : event.args[2] & 0xFFFF]
    name = path[1:].rstrip(b"\0") if path[:1] == b"\0" else path.split(b"\0")[0]
    return ("@" if path[:1] == b"\0" else "") + name.decode(errors="replace")
