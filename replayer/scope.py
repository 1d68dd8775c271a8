"""Which domains a replay needs, which of them it starts itself, and whose output it shows.

The whole tree starts with the recorded program; every other process is made by one that is replayed. One
process starts at the nearest program image on the way to it: its ancestors are replayed as far as the fork
that leads to it.
"""

from __future__ import annotations

from typing import NamedTuple

from interfaces.abi import Kind
from replayer.errors import NothingToReplayError
from tracefile import DomainInfo, TraceReader


class Scope(NamedTuple):
    """`domains` are replayed (None: all), beginning with `starts`. `echoed` are those whose output is shown
    (None: all).

    `until` says of a domain which domains must have been made before it may be ended early. `pid` is the
    process that was asked for, None for the whole tree.
    """

    starts: tuple[int, ...]
    domains: frozenset[int] | None = None
    echoed: frozenset[int] | None = None
    until: dict[int, frozenset[int]] | None = None
    pid: int | None = None

    def wants(self, domain: int) -> bool:
        """Whether a domain is to be replayed."""
        return self.domains is None or domain in self.domains


def whole(reader: TraceReader) -> Scope:
    """Everything; NothingToReplayError when the trace holds no program."""
    roots = [info for info in reader.domains.values() if info.parent_domain == 0 and info.kind == "exec"]
    if not roots:
        raise NothingToReplayError(
            f"{reader.path} holds no program: recording stopped before it started", "Record again."
        )
    return Scope((min(info.domain for info in roots),))


def one_process(reader: TraceReader, pid: int) -> Scope:
    """One recorded process; NothingToReplayError when the trace does not have it."""
    mine = [info for info in reader.domains.values() if info.pid == pid]
    if not mine:
        home = _shared_home(reader, pid)
        if home is None:
            raise NothingToReplayError(
                f"{reader.path} has no process {pid}", "See `rr-py ps` for those it has."
            )
        mine = [home]
    echoed = frozenset(info.domain for info in mine)
    starts: list[int] = []
    needed = set(echoed)
    until: dict[int, set[int]] = {}
    for info in sorted(mine, key=lambda info: info.domain):
        if info.parent_domain in echoed:
            continue
        start = _walk_up(reader, info, needed, until)
        if start not in starts and not (start != info.domain and start in echoed):
            starts.append(start)
    for info in _sharing(reader, set(needed)):
        needed.add(info.domain)
        starts.append(_walk_up(reader, info, needed, until))
    starts = list(dict.fromkeys(starts))
    return Scope(
        tuple(starts),
        frozenset(needed),
        echoed,
        {domain: frozenset(children) for domain, children in until.items() if domain not in echoed},
        pid,
    )


def _walk_up(reader: TraceReader, info: DomainInfo, needed: set[int], until: dict[int, set[int]]) -> int:
    """The domain with the image that leads to `info`, noting what lies between."""
    seen = {info.domain}
    while info.kind == "fork":
        parent = reader.domains.get(info.parent_domain)
        if parent is None or parent.domain in seen:
            raise NothingToReplayError(
                f"process {info.pid} was forked from domain {info.parent_domain}, which is not in the trace",
                "The trace is damaged: record again.",
            )
        until.setdefault(parent.domain, set()).add(info.domain)
        needed.add(parent.domain)
        seen.add(parent.domain)
        info = parent
    return info.domain


def _sharing(reader: TraceReader, wanted: set[int]) -> list[DomainInfo]:
    """The domains that can only be replayed together with those `wanted`: their processes have moved from one
    to another, because they share memory."""
    moves = [
        (info.domain, end.code)
        for info in reader.domains.values()
        for end in info.ends
        if end.status == "execed" and end.code
    ]
    found: set[int] = set()
    while more := {n for pair in moves if (wanted | found) & set(pair) for n in pair} - wanted - found:
        found |= more
    return [reader.domains[number] for number in sorted(found) if number in reader.domains]


def _shared_home(reader: TraceReader, pid: int) -> DomainInfo | None:
    """The domain in which a process without a domain of its own lived (it shared its parent's memory)."""
    for info in reader.domains.values():
        for chunk in reader.chunks(info.domain):
            events = chunk.events
            starts = events[(events["kind"] == Kind.TASK_START) & (events["args"][:, 1] == pid)]
            if len(starts):
                return info
    return None


def one_domain(reader: TraceReader, number: int) -> Scope:
    """One domain, and of its ancestors what leads to it; NothingToReplayError for an unknown one."""
    info = reader.domains.get(number)
    if info is None:
        raise NothingToReplayError(
            f"{reader.path} has no domain {number}", "See `rr-py ps` for those it has."
        )
    needed = {number}
    until: dict[int, set[int]] = {}
    starts = [_walk_up(reader, info, needed, until)]
    for other in _sharing(reader, set(needed)):
        needed.add(other.domain)
        starts.append(_walk_up(reader, other, needed, until))
    return Scope(
        tuple(dict.fromkeys(starts)),
        frozenset(needed),
        frozenset({number}),
        {domain: frozenset(children) for domain, children in until.items()},
        info.pid,
    )
