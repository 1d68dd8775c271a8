"""Places where a long computation was interrupted.

Such a place has no name that leads to it: nobody counted what came before. So a copy of the process is kept
there under a name of its own, which everything behind it builds on; and only when somebody goes back from
there is the number of arrivals found that is its real name (`arrivals`), by running to it once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from replayer import arrivals
from replayer.debuggee import Debuggee, Stop, Triggers, Why
from replayer.errors import CopyError, ReplayError
from replayer.position import Position, Segment

if TYPE_CHECKING:
    from replayer.timeline import Timeline

_NOWHERE = 1 << 63
_MOST_STEPS = 200


@dataclass(frozen=True, slots=True)
class _Place:
    base: Position
    site: arrivals.Site
    process: Debuggee


class Interruptions:
    """The interrupted places of one timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._places: dict[Triggers, _Place] = {}
        self._names: dict[Triggers, Segment] = {}

    def keep(self, base: Position, triggers: Triggers) -> Position:
        """A name for the place behind `base` where the timeline's process stands, or a few instructions
        further on. `base` itself where none can be made."""
        process = self._timeline.process
        for _step in range(_MOST_STEPS):
            site = arrivals.site_at(process, process.state(process.tid).registers.rip)
            if site is not None:
                return self._name(base, site)
            stop = process.go(self._timeline.total, triggers, over=True, steps=1, tid=process.tid)
            if stop.event != base.event:
                return Position(stop.event).stepped(stop.stepped_in_event, process.tid)
            if stop.why is not Why.STEP:
                break
        return base

    def _name(self, base: Position, site: arrivals.Site) -> Position:
        try:
            copy = self._timeline.process.copy()
        except CopyError:
            return base
        name = Triggers(frozenset([_NOWHERE + len(self._places)]))
        self._places[name] = _Place(base, site, copy)
        return self._timeline.keep_at(base.hit(name), copy)

    def real(self, position: Position) -> Position:
        """The position with names that lead to it. ReplayError where one cannot be found."""
        for index, one in enumerate(position.chain):
            if one.triggers in self._places:
                found = self._real_name(one.triggers)
                place = self._places[one.triggers]
                real = Position(position.event, (*place.base.chain, found))
                if one.steps:
                    real = real.stepped(one.steps, one.tid)
                rest = position.chain[index + 1 :]
                return self.real(Position(real.event, (*real.chain, *rest)))
        return position

    def _real_name(self, name: Triggers) -> Segment:
        if name not in self._names:
            timeline, place = self._timeline, self._places[name]
            timeline.tell("looking for the place where it was interrupted")
            process = timeline.visit(place.base)
            try:
                number = arrivals.number_of(
                    process, place.process, place.site, timeline.total, timeline.interrupted
                )
            finally:
                process.close()
            if number is None:
                raise ReplayError(
                    "the place where it was interrupted was not found again",
                    "Go on from here, or seek the event before.",
                )
            self._names[name] = Segment(Triggers(frozenset([place.site.address])), number)
        return self._names[name]


def play(process: Debuggee, triggers: Triggers, count: int, until: int, over: bool) -> Stop | None:
    """Go on to where the one breakpoint of `triggers` has been met so often; `over`: without one where it
    stands. None where that has to be done in the usual way; the process has not moved then."""
    if count < arrivals.MANY or len(triggers.breakpoints) != 1 or triggers.watches:
        return None
    (address,) = triggers.breakpoints
    process.disarm()
    site = arrivals.site_at(process, address)
    return None if site is None else arrivals.run(process, site, count, until, over=over)
