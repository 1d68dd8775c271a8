"""Who holds a lock that a thread waits for: read from the memory of a replay that stands there.

A glibc mutex or reader-writer lock holds its owner's thread id next to the futex word; that layout has been
the same since 2007.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from interfaces.abi import Kind
from interfaces.decode import format_event
from replayer.descriptors import NUMBERS, EventRef
from replayer.memory import MemoryFault
from replayer.session import Paused, Session
from replayer.why import Cause, Explanation
from tracefile import EventView, TraceReader

_OWNER = 8
_WAITS = (0, 6, 9, 13)
_CHAIN = 32


def waits_for_lock(trace: Path, found: Explanation) -> list[Cause]:
    """The thread that holds the mutex a thread waits for, and what that one waits for, as far as it goes.

    Empty where the call is no wait for a mutex, or the replay cannot be stopped there.
    """
    with TraceReader.open(trace) as reader:
        event = reader.event(found.place.domain, found.place.event)
        begin = _begin(reader, event)
    if begin is None:
        return []
    with Session.open(trace, found.place.domain, ignore_cpu=True) as session:
        for_ever = found.seconds is None
        total = session.reader.event_count(session.domain)
        pause = session.run_to(total if for_ever else begin.number + 1)
        if not isinstance(pause, Paused):
            return []
        return list(_chain(session, pause, begin))


def _begin(reader: TraceReader, event: EventView) -> EventView | None:
    """The event at which a futex wait gives way to others, None when it is no such wait."""
    if event.nr != NUMBERS["futex"] or event.args[1] & 127 not in _WAITS:
        return None
    if event.kind == Kind.RELEASE:
        return event
    for number in range(event.number - 1, max(event.number - 100_000, -1), -1):
        before = reader.event(event.domain, number)
        if before.task == event.task:
            return before if before.kind == Kind.RELEASE else None
    return None


def _chain(session: Session, pause: Paused, begin: EventView) -> Iterator[Cause]:
    waits = _waiting(session, pause)
    waits[begin.task] = begin
    seen = [begin.task]
    at: EventView | None = begin
    while at is not None and len(seen) < _CHAIN:
        owner = _owner(pause, at.args[0])
        if owner not in {thread.tid for thread in pause.threads()} or owner == at.task:
            return
        at = waits.get(owner)
        if at is None:
            yield Cause(f"thread {owner} holds the lock at that time", None)
            return
        ref = EventRef(at.time_in, at.domain, at.number, owner)
        pid = session.reader.domains[at.domain].pid
        yield Cause(f"thread {owner} holds the lock and waits itself", ref, format_event(at, at.regions), pid)
        if owner in seen:
            yield Cause(f"deadlock: threads {', '.join(map(str, seen))} wait for each other")
            return
        seen.append(owner)


def _owner(pause: Paused, word: int) -> int:
    with suppress(MemoryFault):
        data = pause.read(word, _OWNER + 4)
        owner: int = struct.unpack_from("<I", data, _OWNER)[0]
        return owner
    return 0


def _waiting(session: Session, pause: Paused) -> dict[int, EventView]:
    """For each thread the futex wait it is in."""
    found: dict[int, EventView] = {}
    for chunk in session.reader.chunks(session.domain):
        if chunk.first_event >= pause.event:
            break
        for one in chunk.views(0, min(len(chunk), pause.event - chunk.first_event)):
            if one.kind == Kind.RELEASE and one.nr == NUMBERS["futex"]:
                found[one.task] = one
            elif one.task in found and one.kind != Kind.DATA:
                del found[one.task]
    return found
