"""Places in a replay, between events too, named so that they can be found again in any run.

A place is an event and what was done since: runs until triggers were met so many times, and single steps.
The same is met in the same order each time, so no instructions need to be counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from replayer.debuggee import NOTHING, Triggers


@dataclass(frozen=True, slots=True)
class Segment:
    """A run until `triggers` were met `hits` times (0: no run), then `steps` steps of thread `tid`."""

    triggers: Triggers = NOTHING
    hits: int = 0
    steps: int = 0
    tid: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """After `event` events, and then what `chain` says."""

    event: int
    chain: tuple[Segment, ...] = ()

    @property
    def at_event(self) -> bool:
        """Whether it is right behind an event."""
        return not self.chain

    def hit(self, triggers: Triggers, count: int = 1) -> Position:
        """The place where `triggers` have been met `count` more times."""
        if self.chain:
            last = self.chain[-1]
            if last.triggers == triggers and last.hits and not last.steps:
                return Position(self.event, (*self.chain[:-1], replace(last, hits=last.hits + count)))
        return Position(self.event, (*self.chain, Segment(triggers, count)))

    def stepped(self, steps: int, tid: int) -> Position:
        """The place `steps` steps further on."""
        if not steps:
            return self
        if self.chain:
            last = self.chain[-1]
            if not last.steps or last.tid == tid:
                more = replace(last, steps=last.steps + steps, tid=tid)
                return Position(self.event, (*self.chain[:-1], more))
        return Position(self.event, (*self.chain, Segment(steps=steps, tid=tid)))

    def rest_after(self, earlier: Position) -> tuple[Segment, ...] | None:
        """What leads from `earlier` here, None when it cannot be told that `earlier` is on the way.

        A position right behind an event is on the way to all later ones.
        """
        if earlier.event < self.event:
            return self.chain if earlier.event <= self.event else None
        if earlier.event > self.event:
            return None
        if not earlier.chain:
            return self.chain
        whole = earlier.chain[:-1]
        if self.chain[: len(whole)] != whole or len(self.chain) < len(earlier.chain):
            return None
        mine, theirs = self.chain[len(whole)], earlier.chain[-1]
        rest = self.chain[len(earlier.chain) :]
        if mine == theirs:
            return rest
        if mine.triggers != theirs.triggers:
            return None
        if mine.hits == theirs.hits and theirs.steps < mine.steps and mine.tid == (theirs.tid or mine.tid):
            return (Segment(steps=mine.steps - theirs.steps, tid=mine.tid), *rest)
        if theirs.hits and mine.hits > theirs.hits and not theirs.steps:
            return (replace(mine, hits=mine.hits - theirs.hits), *rest)
        return None

    def __str__(self) -> str:
        parts = [f"event {self.event}"]
        for one in self.chain:
            if one.hits:
                parts.append(f"{one.hits} hit{'s' if one.hits > 1 else ''}")
            if one.steps:
                parts.append(f"{one.steps} step{'s' if one.steps > 1 else ''}")
        return " + ".join(parts)
