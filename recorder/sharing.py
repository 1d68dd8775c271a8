"""Which domains share memory, and which of two a process has to leave when it begins to.

Address spaces that share writable memory need one order of events. A process that maps an object which
another domain has mapped moves to that domain's log, if it is alone in its own; otherwise the sharing is
reported by name and what goes through that memory may not replay.
"""

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from interfaces import abi
from interposer import procfs
from interposer.channel import Message
from recorder.domains import Domain, Process

_Key = tuple[int, int, int]


class Decision(NamedTuple):
    """The domain to join, or (`late`) one that it is too late to join and the name of what is shared."""

    join: Domain | None = None
    late: Domain | None = None
    name: str = ""


class Sharing:
    """The objects that domains have mapped shared: what they unmap again still counts."""

    def __init__(self, withdraw: Callable[[int, int], None]) -> None:
        """`withdraw`: whoever maps the file of that device and inode has to ask from now on."""
        self._withdraw = withdraw
        self._mapped: dict[_Key, dict[int, bool]] = {}
        self._unasked: set[_Key] = set()
        self._written: set[_Key] = set()

    def may_go_unasked(self, status: os.stat_result) -> bool:
        """Whether processes may map this file shared, to read it, without asking: true until one asks to
        write it. From then on who mapped it unasked is looked for."""
        key = (status.st_dev, status.st_ino, 0)
        if key in self._written:
            return False
        self._unasked.add(key)
        return True

    def asked(
        self, process: Process, message: Message, fds: tuple[int, ...] | list[int], domains: dict[int, Domain]
    ) -> Decision:
        """A process is about to share memory. `domains`: all that live. OSError: the object is gone."""
        own = process.domain
        if message.a == abi.Share.ALL:
            others = [domain for number, domain in sorted(domains.items()) if number < own.number]
            return Decision(join=others[0]) if others else Decision()
        if message.a == abi.Share.SYSV:
            key, name = (-1, -1, message.b), f"System V segment {message.b}"
        elif fds:
            status = os.fstat(fds[0])
            key, name = (status.st_dev, status.st_ino, 0), os.readlink(f"/proc/self/fd/{fds[0]}")
        else:
            return Decision()
        writable = bool(message.c & 1)
        known = self._mapped.setdefault(key, {})
        if writable:
            self._written.add(key)
            if key in self._unasked:
                self._unasked.discard(key)
                self._withdraw(*key[:2])
                known |= {number: False for number in _readers(key[1], name, domains) if number not in known}
        others = [
            domains[number]
            for number, writes in sorted(known.items())
            if number != own.number and number in domains and (writes or writable)
        ]
        if others and not message.d and len(own.processes) == 1 and others[0].ring is not None:
            known[others[0].number] = known.get(others[0].number, False) or writable
            return Decision(join=others[0], name=name)
        known[own.number] = known.get(own.number, False) or writable
        return Decision(late=others[0] if others else None, name=name)

    def joined(self, old: int, new: int) -> None:
        """All a process of domain `old` has mapped is from now on domain `new`'s."""
        for known in self._mapped.values():
            if old in known:
                known[new] = known.get(new, False) or known.pop(old)

    def forget(self, number: int) -> None:
        """The domain has ended."""
        for key in [
            key for key, known in self._mapped.items() if known.pop(number, None) is not None and not known
        ]:
            del self._mapped[key]


def _readers(inode: int, name: str, domains: dict[int, Domain]) -> Iterator[int]:
    """The domains of which a process maps the file, by its inode or by its path."""
    for number, domain in domains.items():
        for process in domain.processes:
            try:
                mappings = procfs.mappings(process.pid)
            except OSError:
                continue
            if any(inode == one.inode or name == one.path for one in mappings if one.is_file):
                yield number
                break
