"""A place in a recording as people write it: TRACE, TRACE@PID, TRACE@PID:EVENT, TRACE:EVENT.

EVENT is the number that `rr-py dump --numbers` shows; the place is right behind that event. PID may be
PID/DOMAIN where a process ran several programs; by default it is the last of them that has the event.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from replayer import scope
from replayer.errors import NothingToReplayError
from tracefile import DomainInfo, TraceReader

_PLACE = re.compile(r"(?P<trace>.*?)(?:@(?P<pid>\d+)(?:/(?P<domain>\d+))?)?(?::(?P<event>\d+|end))?")


@dataclass(frozen=True, slots=True)
class PlaceText:
    """What was written, in parts; None where left out. `trace` "" means the newest trace here; `at_end`: the
    event is "end", the last one."""

    trace: str
    pid: int | None = None
    domain: int | None = None
    event: int | None = None
    at_end: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A domain of an open trace and the number of an event that it has."""

    domain: int
    pid: int
    event: int


def parse(text: str) -> PlaceText:
    """The parts of a place; a file name that looks like one is taken as a file name only if it is a place
    with nothing before the @ or colon."""
    match = _PLACE.fullmatch(text)
    assert match is not None
    pid, domain, event = match["pid"], match["domain"], match["event"]
    return PlaceText(
        match["trace"],
        int(pid) if pid else None,
        int(domain) if domain else None,
        int(event) if event and event != "end" else None,
        event == "end",
    )


def resolve(reader: TraceReader, text: PlaceText) -> Place:
    """The place in this trace; NothingToReplayError when it does not have it.

    Without a process it is the recorded program, without an event the last one.
    """
    infos = _domains(reader, text)
    if text.event is None:
        info = infos[-1]
        if not info.event_count:
            raise NothingToReplayError(f"process {info.pid} has no events", "Choose another: see `rr-py ps`.")
        return Place(info.domain, info.pid, info.event_count - 1)
    for info in reversed(infos):
        if text.event < info.event_count:
            return Place(info.domain, text.pid or info.pid, text.event)
    most = max(info.event_count for info in infos)
    raise NothingToReplayError(
        f"there is no event {text.event} in process {infos[-1].pid}: it has {most}, numbered from 0",
        "See `rr-py dump --numbers`.",
    )


def _domains(reader: TraceReader, text: PlaceText) -> list[DomainInfo]:
    if text.pid is None:
        first = reader.domains[scope.whole(reader).starts[0]]
        found = [info for info in reader.domains.values() if info.pid == first.pid and info.kind == "exec"]
        return sorted(found, key=lambda info: info.domain)
    if text.domain is not None:
        info = reader.domains.get(text.domain)
        if info is None or info.pid != text.pid:
            raise NothingToReplayError(
                f"process {text.pid} has no domain {text.domain}", "See `rr-py ps --json` for those it has."
            )
        return [info]
    found = sorted(
        (info for info in reader.domains.values() if info.pid == text.pid), key=lambda info: info.domain
    )
    if found:
        return found
    home = scope._shared_home(reader, text.pid)
    if home is None:
        raise NothingToReplayError(
            f"{reader.path} has no process {text.pid}", "See `rr-py ps` for those it has."
        )
    return [home]
