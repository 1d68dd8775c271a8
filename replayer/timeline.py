"""A recording that can be walked through in both directions, to any instruction.

    with Timeline.open("trace.bin") as timeline:
        timeline.end()
        stop = timeline.backward(Triggers(watches=(Watch(address, 8),)))

Going back means: copy the nearest checkpoint before, and run again. Checkpoints are copies of the replaying
process; some are made on the way forward, so that no place is far from one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from replayer import machine, scope
from replayer.approach import Approach
from replayer.backtrace import StackFrame, StackReader
from replayer.debuggee import ALL_HITS, HITS, NOTHING, Debuggee, Stop, Triggers, Why
from replayer.errors import CopyError, EndedError, NothingToReplayError, ReplayError
from replayer.interrupted import Interruptions, play
from replayer.memory import MemoryFault
from replayer.position import Position, Segment
from replayer.pystack import symbols_of
from replayer.registers import Registers
from replayer.search import Search
from tracefile import EventView, TraceReader

_CHECKPOINT_EVERY = 0.4
_MAX_CHECKPOINTS = 24
_WORTH_A_CHECKPOINT = 0.05
_NEAR = 0.01
_LAST_HITS = 1500
_ATTEMPTS = 4
"""Virtual machines have been seen to lose the trap of a single step, once in 100 000: a place
that is not where it was before is looked for again, and two agreeing answers count."""
_FIRST = 2

Condition = Callable[[Debuggee], bool]
Progress = Callable[[float, str], None]


@dataclass(eq=False)
class Checkpoint:
    """A parked copy. `kept`: the user asked for it, so it stays until it is deleted.

    `process` is None where it could not be copied: then the place is gone to from another one, and the first
    place is started anew.
    """

    position: Position
    process: Debuggee | None
    kept: bool = False
    made: float = field(default_factory=time.monotonic)

    def close(self) -> None:
        """End the copy."""
        if self.process is not None:
            self.process.close()


class Timeline:
    """One domain of a trace. `process` is what stands at `position`; it is replaced when going back."""

    def __init__(
        self,
        reader: TraceReader,
        domain: int | None = None,
        *,
        echo: tuple[int, int] | None = None,
        stamped: bool = False,
        owns_reader: bool = True,
    ) -> None:
        """Start at the first place that can be shown. `echo`: descriptors for output, which is `stamped` with
        process and event. NothingToReplayError for a domain without events."""
        self.reader = reader
        self.domain = scope.whole(reader).starts[0] if domain is None else domain
        self._owns_reader = owns_reader
        self._closed = False
        self._shown = 0
        self._last: Stop | None = None
        self._visited: dict[Position, int] = {}
        self._clear: tuple[Position, Triggers, Position] | None = None
        self._echo = echo is not None
        self._descriptors = echo
        self._stamped = stamped
        self.checkpoints: list[Checkpoint] = []
        self.interruptions = Interruptions(self)
        self.progress: Progress | None = None
        self.interrupted: Callable[[], bool] | None = None
        self.total = reader.event_count(self.domain)
        """Events of the domain: the last place there is."""
        info = reader.domains.get(self.domain)
        if info is None or not self.total:
            raise NothingToReplayError(
                f"{reader.path} has no domain {self.domain} with events", "See `rr-py ps`."
            )
        self.first = min(_FIRST if info.kind == "exec" else 1, self.total)
        """The event behind which the first place is that can be shown."""
        self.process = self._fresh_start()
        self.position = Position(self.first)
        self._add_checkpoint()

    @classmethod
    def open(cls, trace: Path | str, domain: int | None = None, *, ignore_cpu: bool = False) -> Self:
        """A timeline of a trace file, without output. Raises TraceError or ReplayError."""
        reader = TraceReader.open(trace)
        try:
            if not ignore_cpu:
                machine.check(reader.meta)
            return cls(reader, domain)
        except BaseException:
            reader.close()
            raise

    def close(self) -> None:
        """End all its processes. Doing so again does nothing."""
        if not self._closed:
            self._closed = True
            self.process.close()
            for checkpoint in self.checkpoints:
                checkpoint.close()
            self.checkpoints.clear()
            if self._owns_reader:
                self.reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- forward ----

    def forward(self, triggers: Triggers = NOTHING, condition: Condition | None = None) -> Stop:
        """Go on until a trigger is met (and `condition` holds there), or to the end of the log."""
        self._check()
        if self.position.event >= self.total:
            return Stop(Why.EVENT, self.total, self.process.tid)
        over = not self.position.at_event
        last = time.monotonic()
        while True:
            stop = self._go(self.total, triggers, over=over, pause=last + _CHECKPOINT_EVERY)
            if stop.why is Why.ENDED:
                self._last_before(stop)
                return stop
            self._moved(stop, triggers)
            over = not self.position.at_event
            if stop.why is Why.EVENT and stop.event < self.total and not self._wants_to_stop():
                last = time.monotonic()
                self._add_checkpoint()
            elif stop.why not in (Why.BREAKPOINT, Why.WATCH) or condition is None or condition(self.process):
                return replace(stop, why=Why.INTERRUPTED) if self._short_of_end(stop) else stop

    def step(
        self,
        count: int = 1,
        triggers: Triggers = NOTHING,
        *,
        tid: int | None = None,
        within: tuple[int, int] | None = None,
    ) -> Stop:
        """Make `count` single steps of a thread (by default the one that runs next); other threads run when
        it waits for them. `within`: go on while the pc stays inside. Stops at triggers, too."""
        self._check()
        if self.position.event >= self.total:
            return Stop(Why.EVENT, self.total, self.process.tid)
        tid = self.running if tid is None else tid
        steps = ALL_HITS if within else count
        stop = self._go(
            self.total, triggers, over=not self.position.at_event, steps=steps, tid=tid, within=within
        )
        if stop.why is Why.EVENT and stop.event >= self.total:
            self.position = Position(stop.event)
        elif stop.why is Why.ENDED:
            self._last_before(stop)
        else:
            if stop.event == self.position.event:
                self.position = self.position.stepped(stop.stepped, tid)
            else:
                self.position = Position(stop.event).stepped(stop.stepped_in_event, tid)
            if stop.why is Why.SIGNAL:
                self.position = self.position.hit(Triggers(signals=triggers.signals))
        return stop

    def _last_before(self, ended: Stop) -> None:
        """The replay has broken down: stand at the last event it has got to."""
        self._start_over(Position(max(min(ended.event, self.total), self.first)))

    def _start_over(self, position: Position) -> None:
        """Go to a place with another process than the current one."""
        nearest = self.nearest(position)
        self._replace(self.fresh(nearest), nearest.position)
        self._run_to(position)

    @property
    def running(self) -> int:
        """The thread that executes the next instruction."""
        event = self.position.event
        return self.reader.event(self.domain, min(event, self.total - 1)).task

    def _go(self, until: int, triggers: Triggers, *, pause: float = 0.0, **more: object) -> Stop:
        """Run the current process; at the first event after the time `pause` it stops, too."""
        self._show_output()
        return self.process.go(until, triggers, interrupted=self._wants_to_stop, pause=pause, **more)  # type: ignore[arg-type]

    def _wants_to_stop(self) -> bool:
        return self.interrupted is not None and self.interrupted()

    def _short_of_end(self, stop: Stop) -> bool:
        return stop.why is Why.EVENT and stop.event < self.total

    def describe(self, triggers: Triggers, stop: Stop) -> Stop:
        """`stop` as it is at the current place, which was found without stopping there."""
        tid = self.process.tid
        pc = self.process.state(tid).registers.rip
        if self.position.at_event:
            return replace(stop, event=self.position.event, tid=tid, pc=pc)
        if self.process.signal:
            return Stop(Why.SIGNAL, self.position.event, tid, pc, signal=self.process.signal)
        if pc in triggers.breakpoints:
            return Stop(Why.BREAKPOINT, self.position.event, tid, pc)
        watch = stop.watch if stop.watch in triggers.watches else None
        if self._last is not None and self._last.why is Why.WATCH:
            watch = self._last.watch
        if watch is None and triggers.watches:
            watch = triggers.watches[0]
        return Stop(Why.WATCH, self.position.event, tid, pc, watch)

    def _moved(self, stop: Stop, triggers: Triggers) -> None:
        """The current process has run from `position` to where it stopped."""
        if stop.why in HITS and not stop.by_call:
            if stop.event == self.position.event:
                self.position = self.position.hit(triggers, stop.hits)
            else:
                self.position = Position(stop.event).hit(triggers, stop.hits_in_event)
        elif stop.why is Why.INTERRUPTED:
            base = self.position if self._same(stop) else Position(stop.event)
            self.position = self.interruptions.keep(base, triggers)
        else:
            self.position = Position(stop.event)
        self._shown = max(self._shown, stop.event)

    def _same(self, stop: Stop) -> bool:
        return stop.event == self.position.event

    def _show_output(self) -> None:
        """Output appears the first time it is reached."""
        if self._echo:
            self.process.show_output(self.position.event >= self._shown)

    # ---- going to a place ----

    def seek(self, event: int) -> None:
        """Go right behind the first `event` events. NothingToReplayError where there are not so many."""
        if not 0 < event <= self.total:
            raise NothingToReplayError(
                f"there is no place behind event {event} of domain {self.domain}: it has {self.total} events",
                f"Choose from {self.first} to {self.total}.",
            )
        self.goto(Position(max(event, self.first)))

    def end(self) -> None:
        """Go to the end of the log."""
        self.seek(self.total)

    def goto(self, position: Position) -> None:
        """Go to any place that has been visited, or right behind an event."""
        self._check()
        if position == self.position:
            return
        before = self.position
        try:
            self._go_to(position)
        except ReplayError:
            self._start_over(before)
            raise

    def _go_to(self, position: Position) -> None:
        found: list[int] = []
        for _attempt in range(_ATTEMPTS):
            rest = position.rest_after(self.position)
            nearest = self.nearest(position)
            if rest is None or nearest.position.event > self.position.event or found:
                self._replace(self.fresh(nearest), nearest.position)
            self._run_to(position)
            try:
                pc = self.registers().rip
            except MemoryFault:
                return
            if pc in (self._visited.get(position, pc), *found):
                self._visited[position] = pc
                return
            found.append(pc)
        raise ReplayError(f"{position} is another place each time", "This is a defect: please report it.")

    def nearest(self, position: Position, strictly: bool = False) -> Checkpoint:
        """The checkpoint from which `position` is reached soonest. `strictly`: it is before, not there."""
        found = [
            one
            for one in self.starts()
            if position.rest_after(one.position) is not None and not (strictly and one.position == position)
        ]
        if not found:
            raise NothingToReplayError("this is the first place that can be shown", "Go forward.")
        return max(found, key=lambda one: (one.position.event, _progress(one.position)))

    def _replace(self, process: Debuggee, position: Position) -> None:
        self.process.close()
        self.process, self.position = process, position

    def visit(self, position: Position) -> Debuggee:
        """A process of its own that stands at `position`; the caller closes it."""
        at, process = self.position, self.process
        nearest = self.nearest(position)
        self.process, self.position = self.fresh(nearest), nearest.position
        try:
            self._run_to(position)
            return self.process
        except BaseException:
            self.process.close()
            raise
        finally:
            self.process, self.position = process, at

    def _run_to(self, position: Position) -> None:
        """Run the current process, which stands before `position`, there."""
        began = time.monotonic()
        while self.position.event < position.event:
            stop = self._go(position.event, NOTHING, pause=time.monotonic() + _CHECKPOINT_EVERY)
            if stop.why is not Why.EVENT:
                raise ReplayError(
                    f"event {position.event - 1} was not reached: {stop.message or stop.why.value}",
                    "What comes before can be looked at. See also what `rr-py replay` says.",
                )
            self.position = Position(stop.event)
            if stop.event < position.event or time.monotonic() - began > _WORTH_A_CHECKPOINT:
                self._add_checkpoint()
        for segment in position.rest_after(self.position) or ():
            self._play(segment)

    def _play(self, segment: Segment) -> None:
        near = segment.hits - max(min(segment.hits // 8, _LAST_HITS), 8)
        if near > 0:
            began = time.monotonic()
            self._play_hits(segment.triggers, near)
            if time.monotonic() - began > _NEAR:
                self._add_checkpoint()
            self._play_hits(segment.triggers, segment.hits - near)
        elif segment.hits:
            self._play_hits(segment.triggers, segment.hits)
        if segment.steps:
            self.process.go(self.total, steps=segment.steps, tid=segment.tid, over=not self.position.at_event)
            self.position = self.position.stepped(segment.steps, segment.tid)

    def _play_hits(self, triggers: Triggers, count: int) -> None:
        over = not self.position.at_event
        stop = play(self.process, triggers, count, self.total, over)
        if stop is None:
            stop = self.process.go(self.total, triggers, over=over, skip=count - 1)
        if stop.why not in HITS:
            raise ReplayError("a place was not found again", "This is a defect: please report it.")
        self._last = stop
        self.position = self.position.hit(triggers, count)

    # ---- back ----

    def backward(self, triggers: Triggers, condition: Condition | None = None) -> Stop | None:
        """Go back to where a trigger was met last (and `condition` held). None when there is no such place:
        then it stands at the first one."""
        self._check()
        found = self._hit_before(triggers) if condition is None else None
        if found is None:
            found = Search(self, triggers, condition).last_before(self.position)
        if found is None:
            self.seek(self.first)
            return None
        position, stop = found
        self._last = None
        self.goto(position)
        return self.describe(triggers, stop)

    def _hit_before(self, triggers: Triggers) -> tuple[Position, Stop] | None:
        """The last match where it need not be searched: of the same triggers, one hit less."""
        if self._clear is not None and self._clear[:2] == (self.position, triggers):
            return self._clear[2], Stop(Why.WATCH, self._clear[2].event)
        last = self.position.chain[-1] if self.position.chain else None
        if last is None or last.triggers != triggers or last.steps or last.hits < 2:
            return None
        before = replace(last, hits=last.hits - 1)
        position = Position(self.position.event, (*self.position.chain[:-1], before))
        return position, Stop(Why.BREAKPOINT, position.event)

    def before_hit(self, triggers: Triggers) -> None:
        """From where a watched place has been touched to before the instruction that does it."""
        last = self.position.chain[-1] if self.position.chain else None
        previous = self._hit_before(triggers)
        if self.step_back() and previous is not None and last is not None:
            self._clear = self.position, triggers, previous[0]

    def step_back(self, tid: int | None = None) -> bool:
        """Go back by one instruction of the thread that ran last. False where there is nothing before."""
        self._check()
        target = Approach(self).previous(self.position, tid)
        if target is None:
            return False
        self.goto(target)
        return True

    # ---- looking ----

    @property
    def tid(self) -> int:
        """The thread that stopped here, by its recorded id."""
        return self.process.tid

    def threads(self) -> list[int]:
        """The recorded ids of the threads that live here."""
        return [block.tid for block in self.process.threads()]

    def registers(self, tid: int | None = None) -> Registers:
        """The general registers of a thread; MemoryFault when it has none (it has not begun)."""
        return self.process.state(self.tid if tid is None else tid).registers

    def read(self, address: int, size: int) -> bytes:
        """Memory; MemoryFault when not all of it can be read."""
        return self.process.read(address, size)

    def read_int(self, address: int, size: int = 8, *, signed: bool = False) -> int:
        """A little-endian number in memory; MemoryFault as `read`."""
        return int.from_bytes(self.process.read(address, size), "little", signed=signed)

    def stack(self, tid: int | None = None, limit: int = 256) -> tuple[StackFrame, ...]:
        """Native and Python frames of a thread, innermost first; empty for one that has not begun."""
        tid = self.tid if tid is None else tid
        reader = StackReader()
        try:
            registers = self.registers(tid)
            process = self.process
            return reader.read(process.real_pid, process, process.mappings(), registers, tid, limit)
        except MemoryFault:
            return ()
        finally:
            reader.close()

    def last_event(self) -> EventView:
        """The event that has happened last."""
        return self.reader.event(self.domain, self.position.event - 1)

    def events(self, start: int = 0) -> Iterator[EventView]:
        """The events of the domain, from number `start` on."""
        for chunk in self.reader.chunks(self.domain, start):
            yield from chunk.views(max(start - chunk.first_event, 0))

    # ---- names ----

    def address(self, name: str) -> int:
        """The address of a function or variable in what is mapped now, the program's own first.

        NothingToReplayError when no symbol table has the name.
        """
        starts: dict[str, int] = {}
        for one in self.process.mappings():
            if one.path.startswith("/") and one.offset == 0:
                starts.setdefault(one.path, one.start)
        exe = self.reader.domains[self.domain].exe
        for path in sorted(starts, key=lambda path: path != exe):
            found = symbols_of(self.process, path, starts[path], (name,))
            if name in found:
                return found[name]
        raise NothingToReplayError(
            f"no function or variable {name!r} in what is mapped at {self.position}",
            "Go on to where its library is loaded, or give an address.",
        )

    # ---- checkpoints ----

    def checkpoint(self) -> Checkpoint:
        """Keep this place."""
        made = self.here()
        self.checkpoints.append(made)
        return made

    def here(self) -> Checkpoint:
        """This place, for `restart`; the caller closes it."""
        try:
            return Checkpoint(self.position, self.process.copy(), kept=True)
        except CopyError:
            return Checkpoint(self.position, None, kept=True)

    def starts(self) -> list[Checkpoint]:
        """The checkpoints from which one can go on."""
        first = Position(self.first)
        return [one for one in self.checkpoints if one.process is not None or one.position == first]

    def keep_at(self, position: Position, process: Debuggee) -> Position:
        """Keep a parked copy as a checkpoint for good; the position."""
        self.checkpoints.append(Checkpoint(position, process, kept=True))
        return position

    def tell(self, what: str) -> None:
        """Say what takes long, to whoever listens."""
        if self.progress is not None:
            self.progress(self.position.event / self.total, what)

    def restart(self, checkpoint: Checkpoint) -> None:
        """Go to a kept place."""
        self._check()
        if checkpoint.process is None:
            self.goto(checkpoint.position)
        else:
            self._replace(self.fresh(checkpoint), checkpoint.position)

    def delete(self, checkpoint: Checkpoint) -> None:
        """Give a kept place up."""
        self.checkpoints.remove(checkpoint)
        checkpoint.close()

    def fresh(self, checkpoint: Checkpoint) -> Debuggee:
        """A process of its own that stands at a checkpoint; the caller closes it."""
        if checkpoint.process is not None:
            return checkpoint.process.copy()
        return self._fresh_start()

    def _fresh_start(self) -> Debuggee:
        return Debuggee.start(
            self.reader, self.domain, self.first, echo=self._descriptors, stamped=self._stamped
        )

    def _add_checkpoint(self) -> None:
        if any(one.position == self.position for one in self.checkpoints):
            return
        try:
            self.checkpoints.append(Checkpoint(self.position, self.process.copy()))
        except CopyError:
            if not self.checkpoints:
                self.checkpoints.append(Checkpoint(self.position, None))
            return
        self._thin_out()

    def _thin_out(self) -> None:
        """Give up the automatic checkpoint whose neighbours are nearest to each other."""
        own = [one for one in self.checkpoints if not one.kept and one.process is not None]
        if len(own) <= _MAX_CHECKPOINTS:
            return
        own.sort(key=lambda one: (one.position.event, _progress(one.position)))
        gaps = [
            (own[index + 1].position.event - own[index - 1].position.event, own[index].made, index)
            for index in range(1, len(own) - 1)
            if own[index].made < time.monotonic() - 2
        ]
        index = min(gaps)[2] if gaps else 1
        self.delete(own[index])

    def _check(self) -> None:
        if self._closed:
            raise EndedError("the timeline is closed", "Open a new one.")


def _progress(position: Position) -> tuple[int, int]:
    """Orders positions behind one event roughly: those further on later."""
    return len(position.chain), sum(one.hits * 1000 + one.steps for one in position.chain)
