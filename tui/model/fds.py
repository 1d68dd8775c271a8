"""What a descriptor stands for at some row, and its history: found by looking back from there.

The index keeps, for each event, which descriptor it makes, names or closes. Names are decoded only for what
is asked about. Processes inherit the descriptors of their parent domain up to the event that made them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from interfaces.abi import Kind
from interfaces.calls import BY_NAME, name_of
from tracefile.passing import RECEIVING, Origin, origins
from tui.model.columns import BLOCK_SHIFT, PAIR, RANGE, DescriptorUses, kind_of_code, nr_of_code
from tui.model.decode import Decoded, path_of, unquoted
from tui.model.index import EventIndex

_STANDARD = ("stdin", "stdout", "stderr")
_CLOSES = frozenset({BY_NAME["close"].number, BY_NAME["close_range"].number})
_NAMES = frozenset({BY_NAME["connect"].number, BY_NAME["bind"].number})
_DUPS = frozenset(BY_NAME[name].number for name in ("dup", "dup2", "dup3", "fcntl"))
FIXED = {
    "epoll_create": "epoll", "epoll_create1": "epoll", "eventfd": "eventfd", "eventfd2": "eventfd",
    "inotify_init": "inotify", "inotify_init1": "inotify", "signalfd": "signalfd", "signalfd4": "signalfd",
    "timerfd_create": "timer", "userfaultfd": "userfaultfd", "perf_event_open": "perf",
    "fanotify_init": "fanotify", "pipe": "pipe", "pipe2": "pipe", "socketpair": "socketpair",
}  # fmt: skip
_NAMELESS = frozenset({"unix"})
"""Addresses that tell nothing: a peer without one is shown by the address that it connected to."""
_RECEIVED = "received over a socket"
_MEMORY = 4096
_HOPS = 64

Decode = Callable[[int], Decoded]


@dataclass(frozen=True, slots=True)
class Use:
    """An event that makes, names or closes a descriptor."""

    row: int
    nr: int

    @property
    def closes(self) -> bool:
        return self.nr in _CLOSES


@dataclass(frozen=True, slots=True)
class History:
    """One life of a descriptor: `label` is its path or peer, rows are None where they are not recorded."""

    fd: int
    label: str
    opened: int | None
    closed: int | None
    named: tuple[int, ...] = ()


class Descriptors:
    """Resolves descriptors of a trace; `decode` gives the decoded event of a row."""

    def __init__(self, index: EventIndex, decode: Decode) -> None:
        self._index = index
        self._decode = decode
        self._labels: OrderedDict[tuple[int, int], str] = OrderedDict()
        self._parents: dict[int, tuple[int, int] | None] = {}
        self._origins: dict[tuple[int, int], dict[int, Origin]] = {}
        self._matched = 0

    def label(self, row: int, fd: int) -> str:
        """The path or peer of descriptor `fd` for the process of `row`, before that row happened.

        Empty where nothing is known.
        """
        return self._label(self._domain(row), row, fd, 0)

    def history(self, row: int, fd: int) -> History:
        """The life of the descriptor that is `fd` at `row`: where opened and closed."""
        domain = self._domain(row)
        opened: int | None = None
        named = []
        for use in self._back(domain, row, fd):
            if use.nr in _NAMES:
                named.append(use.row)
                continue
            if not use.closes:
                opened = use.row
            break
        closed = next((use.row for use in self._forward(domain, row, fd) if use.closes), None)
        return History(fd, self.label(row, fd), opened, closed, tuple(reversed(named)))

    def label_of_opening(self, row: int) -> str:
        """What the descriptor stands for that the event at `row` made."""
        return self._named_by(row, self._domain(row), 0)

    def _domain(self, row: int) -> int:
        return self._index.tasks[self._index.task_id(row)].domain

    def _label(self, domain: int, row: int, fd: int, hops: int) -> str:
        if fd < 0 or hops > _HOPS:
            return ""
        for use in self._back(domain, row, fd):
            if use.closes:
                return ""
            if use.nr in RECEIVING:
                return self._passed(use.row, fd, hops)
            return self._named_by(use.row, domain, hops)
        parent = self._parent(domain)
        if parent is not None:
            return self._label(*parent, fd, hops + 1)
        return _STANDARD[fd] if fd < len(_STANDARD) else ""

    def _passed(self, row: int, fd: int, hops: int) -> str:
        """What a descriptor stands for that a message brought: what it was to the sender."""
        if len(self._index.passed) != self._matched:
            self._matched = len(self._index.passed)
            self._origins = origins(self._index.passed)
        origin = self._origins.get(self._index.place(row), {}).get(fd)
        sent = self._index.row_of(origin.domain, origin.event) if origin is not None else None
        if origin is None or sent is None:
            return _RECEIVED
        return self._label(origin.domain, sent, origin.fd, hops + 1) or _RECEIVED

    def _named_by(self, row: int, domain: int, hops: int) -> str:
        key = (domain, row)
        found = self._labels.get(key)
        if found is None:
            found = self._labels[key] = self._name(row, domain, hops)
            if len(self._labels) > _MEMORY:
                self._labels.popitem(last=False)
        return found

    def _name(self, row: int, domain: int, hops: int) -> str:
        event = self._decode(row)
        name = name_of(event.nr)
        if name in FIXED:
            return FIXED[name]
        if event.nr in _DUPS:
            return self._label(domain, row, event.args[0] & 0xFFFFFFFF, hops + 1)
        if (path := path_of(event)) is not None:
            return path
        fields = {field.name: field for field in event.fields}
        if name in ("connect", "bind", "accept", "accept4"):
            address = fields.get("addr") or fields.get("uaddr") or fields.get("upeer_sockaddr")
            text = socket_address(address.children) if address is not None else ""
            if text in _NAMELESS or not text:
                return self._label(domain, row, event.args[0] & 0xFFFFFFFF, hops + 1) or text or "socket"
            return text
        if name == "socket":
            return "socket " + event.fields[0].value.removeprefix("AF_").lower()
        if name == "memfd_create" and event.fields:
            return "memfd:" + unquoted(event.fields[0].value)
        return name

    def _back(self, domain: int, row: int, fd: int) -> Iterator[Use]:
        """Uses before a row, latest first."""
        number = row >> BLOCK_SHIFT
        limit = row
        while number >= 0:
            block = self._index.blocks[number]
            for uses in reversed(block.uses):
                places = self._matching(number, uses, domain, fd)
                if limit < block.first + block.count:
                    places = places[: np.searchsorted(places, limit - block.first)]
                for place in places[::-1]:
                    at = block.first + int(place)
                    if self._concerns(at, domain, fd):
                        yield Use(at, nr_of_code(int(block.code[place])))
            number -= 1

    def _forward(self, domain: int, row: int, fd: int) -> Iterator[Use]:
        """Uses at a row and after it, in order."""
        number = row >> BLOCK_SHIFT
        while number < len(self._index.blocks):
            block = self._index.blocks[number]
            for uses in list(block.uses):
                places = self._matching(number, uses, domain, fd)
                if row > block.first:
                    places = places[np.searchsorted(places, row - block.first) :]
                for place in places:
                    at = block.first + int(place)
                    if self._concerns(at, domain, fd):
                        yield Use(at, nr_of_code(int(block.code[place])))
            number += 1

    def _matching(self, number: int, uses: DescriptorUses, domain: int, fd: int) -> npt.NDArray[np.uint16]:
        block = self._index.blocks[number]
        chosen = (uses.fd == fd) | (uses.fd == PAIR) | (uses.fd == RANGE)
        at = uses.at[chosen]
        own: npt.NDArray[np.bool_] = self._index.domain_table()[block.task[at]] == domain
        found: npt.NDArray[np.uint16] = at[own]
        return found

    def _concerns(self, row: int, domain: int, fd: int) -> bool:
        """Whether the event at `row` really is about `fd`: looks into the few that do not say so by one
        number."""
        block = self._index.blocks[row >> BLOCK_SHIFT]
        code = int(block.code[row - block.first])
        name = name_of(nr_of_code(code)) if kind_of_code(code) == Kind.SYSCALL else ""
        if name in ("recvmsg", "recvmmsg"):
            return fd in self._index.received.get(self._index.place(row), ())
        if name == "close_range":
            first, last = self._decode(row).args[:2]
            return first & 0xFFFFFFFF <= fd <= last & 0xFFFFFFFF
        if name in ("pipe", "pipe2", "socketpair"):
            return any(
                child.value == str(fd)
                for field in self._decode(row).fields
                if field.type == "fd[]"
                for child in field.children
            )
        return True

    def _parent(self, domain: int) -> tuple[int, int] | None:
        """(parent's domain, row up to which the domain inherits), None for the first."""
        if domain not in self._parents:
            self._parents[domain] = self._index.birth(domain)
        return self._parents[domain]


def socket_address(children: tuple[object, ...]) -> str:
    """`10.0.0.1:80`, a path, or another text of a decoded socket address."""
    values = {getattr(child, "name", ""): str(getattr(child, "value", "")) for child in children}
    if "sun_path" in values:
        return "unix:" + unquoted(values["sun_path"])
    host = values.get("sin_addr") or values.get("sin6_addr")
    port = values.get("sin_port") or values.get("sin6_port")
    if host is None:
        return values.get("sa_family", "").removeprefix("AF_").lower()
    host = unquoted(host.partition("(")[2].rstrip(")") or host)
    port = (port or "").partition("(")[2].rstrip(")") or (port or "")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
