"""Replaying to a place the user wrote as TRACE@PID:EVENT."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from replayer.session import Paused, Session


@contextmanager
def at(text: str | None, ignore_cpu: bool = False) -> Iterator[tuple[Session, Paused]]:
    """A session that stands right behind the event; TraceError or ReplayError where that is not possible."""
    from replayer import place
    from replayer.errors import ReplayError
    from replayer.session import Paused, Session
    from rr_py.traces import chosen
    from tracefile import TraceReader

    parsed = place.parse(text or "")
    path = chosen(parsed.trace or None)
    with TraceReader.open(path) as reader:
        found = place.resolve(reader, parsed)
    with Session.open(path, found.domain, ignore_cpu=ignore_cpu) as session:
        pause = session.run_to(found.event + 1)
        if not isinstance(pause, Paused):
            raise ReplayError(
                f"the replay ended after {pause.events} events, before event {found.event}: {pause.message}",
                "See what `rr-py replay` says of this recording.",
            )
        yield session, pause
