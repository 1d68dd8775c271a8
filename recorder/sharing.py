"""Which domains share memory, and which of two a process has to leave when it begins to.

Address spaces that share writable memory need one order of events. A process that maps an object which
another domain has mapped moves to that domain's log, if it is alone in its own; otherwise the sharing is
reported by name and what goes through that memory may not replay.
"""

import os
from typing import NamedTuple

from interfaces import abi
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

    def __init__(self) -> None:
        self._mapped: dict[_Key, dict[int, bool]] = {}

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
