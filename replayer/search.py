"""Finding the last place before another at which a trigger is met: by running again from checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from replayer import arrivals
from replayer.debuggee import ALL_HITS, HITS, Debuggee, Stop, Triggers, Why
from replayer.position import Position, Segment

if TYPE_CHECKING:
    from replayer.timeline import Timeline

Found = tuple[Position, Stop]
_TELL_EVERY = 1.0


class Search:
    """One search; the timeline's own process is not touched."""

    def __init__(
        self, timeline: Timeline, triggers: Triggers, condition: Callable[[Debuggee], bool] | None
    ) -> None:
        self._timeline = timeline
        self._triggers = triggers
        self._condition = condition
        self._told = time.monotonic()
        self._running: Debuggee | None = None
        self._goal: Position | None = None
        """The place that is no match itself, even if a trigger is met there: where the search began."""

    def last_before(self, end: Position) -> Found | None:
        """The last match before `end`, None when there is none back to the first place."""
        end = self._timeline.interruptions.real(end)
        self._goal = end
        starts = sorted(
            {one.position.event: one for one in self._timeline.starts() if one.position.at_event}.values(),
            key=lambda one: one.position.event,
        )
        before = [one for one in starts if end.rest_after(one.position) is not None and one.position != end]
        for one in reversed(before):
            process = self._timeline.fresh(one)
            try:
                found = self._through(process, one.position, end)
            finally:
                self._running = None
                process.close()
            if found is not None or self._stopped():
                return found
            end = one.position
            self._goal = None
        return None

    def _stopped(self) -> bool:
        interrupted = self._timeline.interrupted
        return interrupted is not None and interrupted()

    def _through(self, process: Debuggee, start: Position, end: Position) -> Found | None:
        """The last match in a run from `start` to `end`."""
        last: Found | None = None
        here = start
        self._running = process
        skip = ALL_HITS if self._condition is None else 0
        while here.event < end.event:
            stop = process.go(
                end.event, self._triggers, over=not here.at_event, skip=skip, interrupted=self._pause
            )
            if stop.why is Why.ENDED or self._stopped():
                return last
            self._tell(stop.event)
            if skip and stop.hits:
                base = here if stop.hits_event == here.event else Position(stop.hits_event)
                count = stop.hits if stop.hits_event == here.event else stop.hits_in_event
                last = base.hit(self._triggers, count), stop
            here = self._where(here, stop)
            if self._matches(stop) and here != self._goal and self._holds(process, stop):
                last = here, stop
        return self._last_stretch(process, here, end) or last

    def _where(self, here: Position, stop: Stop) -> Position:
        if stop.why in HITS and not stop.by_call:
            if stop.event == here.event:
                return here.hit(self._triggers, stop.hits)
            return Position(stop.event).hit(self._triggers, stop.hits_in_event)
        if stop.why is Why.INTERRUPTED:
            return here
        return Position(stop.event)

    @staticmethod
    def _matches(stop: Stop) -> bool:
        return stop.why in HITS

    def _holds(self, process: Debuggee, stop: Stop) -> bool:
        return self._condition is None or stop.why is Why.SIGNAL or self._condition(process)

    def _last_stretch(self, process: Debuggee, here: Position, end: Position) -> Found | None:
        """Between the last event and `end`: what leads to `end` is followed, and our triggers counted."""
        last: Found | None = None
        rest = end.rest_after(here) or ()
        for number, segment in enumerate(rest, 1):
            final = number == len(rest)
            if segment.hits:
                here, found = self._hits(process, here, segment, final and not segment.steps)
                last = found or last
            left = segment.steps
            while left:
                stop = process.go(
                    self._timeline.total, self._triggers, over=not here.at_event, steps=left, tid=segment.tid
                )
                if not stop.stepped and not self._matches(stop):
                    return last
                left -= stop.stepped
                here = here.stepped(stop.stepped, segment.tid)
                if self._matches(stop) and (left or not final) and self._holds(process, stop):
                    last = here, stop
        return last

    def _hits(
        self, process: Debuggee, here: Position, segment: Segment, final: bool
    ) -> tuple[Position, Found | None]:
        """Follow a run to its last hit; `final`: that hit is where the search began, and no match."""
        if segment.hits >= arrivals.MANY and len(segment.triggers.breakpoints) == 1:
            fast = self._many_hits(process, here, segment, final)
            if fast is not None:
                return fast
        both = self._triggers | segment.triggers
        last: Found | None = None
        left = segment.hits
        while left:
            stop = process.go(self._timeline.total, both, over=not here.at_event)
            if not self._matches(stop):
                break
            here = here.hit(both)
            theirs, ours = _meets(segment.triggers, stop), _meets(self._triggers, stop)
            left -= theirs
            if ours and (left or not final) and self._holds(process, stop):
                last = here, stop
        return here, last

    def _many_hits(
        self, process: Debuggee, here: Position, segment: Segment, final: bool
    ) -> tuple[Position, Found | None] | None:
        """The same for many arrivals at one place, which need not stop; None where that cannot be done."""
        (address,) = segment.triggers.breakpoints
        ours = self._triggers.breakpoints
        process.disarm()
        site = arrivals.site_at(process, address)
        if site is None or site.overlaps(ours - {address}):
            return None
        there = here.hit(segment.triggers, segment.hits)
        if self._condition is not None or self._triggers.watches:
            return there, self._stops_on_the_way(process, here, site, segment.hits)
        total, over = self._timeline.total, not here.at_event
        if address in ours:
            before = here.hit(segment.triggers, segment.hits - 1)
            stop = arrivals.run(process, site, segment.hits - 1, total, over=over)
            there, last = self._hits(process, before, replace(segment, hits=1), final)
            return there, last or (before, stop)
        stop = arrivals.run(process, site, segment.hits, total, over=over, counted=ours)
        return there, (here.hit(self._triggers, stop.counted), stop) if stop.counted else None

    def _stops_on_the_way(
        self, process: Debuggee, here: Position, site: arrivals.Site, count: int
    ) -> Found | None:
        """The last match up to an arrival at the site."""
        last: Found | None = None
        counter = arrivals.Counter(process, site, count)
        try:
            both = self._triggers | Triggers(frozenset([counter.trap]))
            while True:
                stop = process.go(self._timeline.total, both, over=not here.at_event, interrupted=self._pause)
                if counter.arrived(stop) or not self._matches(stop) or self._stopped():
                    return last
                here = here.hit(self._triggers)
                if self._holds(process, stop):
                    last = here, stop
        finally:
            counter.close()

    def _pause(self) -> bool:
        """Asked all the time while a process runs."""
        if self._running is not None:
            self._tell(self._running.event)
        return self._stopped()

    def _tell(self, event: int) -> None:
        if self._timeline.progress is not None and time.monotonic() - self._told > _TELL_EVERY:
            self._told = time.monotonic()
            self._timeline.progress(event / self._timeline.total, f"searching backwards: event {event}")


def _meets(triggers: Triggers, stop: Stop) -> bool:
    if stop.why is Why.BREAKPOINT:
        return stop.pc in triggers.breakpoints
    if stop.why is Why.SIGNAL:
        return stop.signal in triggers.signals
    return stop.watch in triggers.watches
