"""One replaying process under a debugger's control: run to a breakpoint, a touched place, a step, an event.

The core counts hits and steps itself and parks the task when the count is reached, so that nothing is slow
in between. Whatever is parked can be read, written, and copied.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from time import monotonic
from typing import Self

from interposer.kernel import tgkill
from replayer import scope
from replayer.copying import copy_process
from replayer.corelayout import ThreadBlock, hidden, thread_blocks
from replayer.debugregs import set_watches, touched
from replayer.debugring import BREAKPOINTS, WATCHES, Debug, Park, debug_area
from replayer.domain import LiveDomain
from replayer.errors import EndedError, NothingToReplayError, ReplayError
from replayer.inspect import mappings_of, report_divergence
from replayer.memory import Mappings, MemoryFault, ProcessMemory
from replayer.registers import _CONTEXT_NAMES, _CONTEXT_OFFSET
from replayer.replaying import incomplete_text, stuck_text
from replayer.supervisor import Supervisor
from replayer.teleport import leave_core
from replayer.threadstate import ThreadState, fs_base_of, read_state
from tracefile import TraceReader

ALL_HITS = 1 << 62
_SIGSTKFLT = 16
_TRAP = 0xCC
_POKE_AFTER = 0.1


@dataclass(frozen=True, slots=True, order=True)
class Watch:
    """A watched place: 1, 2, 4 or 8 bytes at an address that is a multiple of that. `reads`: reading counts
    too; otherwise only writing another value does."""

    address: int
    size: int
    reads: bool = False


@dataclass(frozen=True, slots=True)
class Triggers:
    """What stops a run: addresses of breakpoints, watched places, and signals (numbers) that are about to be
    delivered to a handler. Arrivals at `counted` addresses are counted only (`Stop.counted`)."""

    breakpoints: frozenset[int] = frozenset()
    watches: tuple[Watch, ...] = ()
    counted: frozenset[int] = frozenset()
    signals: frozenset[int] = frozenset()

    def __or__(self, other: Triggers) -> Triggers:
        watches = self.watches + tuple(one for one in other.watches if one not in self.watches)
        return Triggers(self.breakpoints | other.breakpoints, watches, signals=self.signals | other.signals)

    def __bool__(self) -> bool:
        return bool(self.breakpoints or self.watches or self.signals)


NOTHING = Triggers()


class Why(Enum):
    """Why a run stopped."""

    EVENT = "event"
    BREAKPOINT = "breakpoint"
    WATCH = "watch"
    STEP = "step"
    INTERRUPTED = "interrupted"
    SIGNAL = "signal"
    CALL = "call"
    ENDED = "ended"


HITS = (Why.BREAKPOINT, Why.WATCH, Why.SIGNAL)
"""A trigger was met."""

_WHY = {
    Park.EVENT: Why.EVENT,
    Park.BREAK: Why.BREAKPOINT,
    Park.STEP: Why.STEP,
    Park.WATCH: Why.WATCH,
    Park.CALL_WATCH: Why.WATCH,
    Park.FAULT: Why.SIGNAL,
    Park.POKED: Why.INTERRUPTED,
    Park.CALL: Why.CALL,
    Park.SIGNAL: Why.SIGNAL,
}


@dataclass(frozen=True, slots=True)
class Stop:
    """Where and why a run stopped. `event` events have happened.

    `hits` and `hits_in_event` count what the triggers met since the run began and since event
    `hits_event`; `stepped_in_event` steps behind event `event` were made. `by_call`: what was touched was
    touched by the call that the last event is. `message` says how it ended, for ENDED.
    """

    why: Why
    event: int
    tid: int = 0
    pc: int = 0
    watch: Watch | None = None
    by_call: bool = False
    signal: int = 0
    hits: int = 0
    hits_event: int = 0
    hits_in_event: int = 0
    stepped: int = 0
    stepped_in_event: int = 0
    counted: int = 0
    message: str = ""


@dataclass(slots=True)
class _Armed:
    triggers: Triggers = NOTHING
    values: dict[Watch, bytes] = field(default_factory=dict)


class Debuggee:
    """A parked process of one domain. `close` ends it; everything else needs it to be there."""

    def __init__(self, supervisor: Supervisor, number: int) -> None:
        """Use `start` or `copy`."""
        self._supervisor = supervisor
        self._number = number
        self._armed = _Armed()
        self._memory: ProcessMemory | None = None
        self._memory_of = 0
        self._diverting = False
        self._writers: dict[int, int] = {}
        self._mappings: Mappings | None = None
        self._blocks: list[ThreadBlock] | None = None
        self._fs: dict[int, int] = {}
        self._closed = False

    @classmethod
    def start(
        cls,
        reader: TraceReader,
        domain: int,
        event: int,
        *,
        echo: tuple[int, int] | None,
        stamped: bool = False,
    ) -> Self:
        """Replay a domain up to its event `event` (at least 1) and stay there. `echo`: descriptors for
        output, which `show_output` switches on. ReplayError when it does not get there."""
        supervisor = Supervisor(
            reader,
            scope.one_domain(reader, domain),
            echo=echo,
            verify=False,
            timeout=float("inf"),
            debugging=True,
        )
        supervisor.stamped = stamped
        try:
            supervisor.stops[domain] = event
            supervisor.start()
            debuggee = cls(supervisor, domain)
            stop = debuggee._wait(None)
            if stop.why is not Why.EVENT:
                raise ReplayError(
                    f"the replay ended before event {event}: {stop.message}",
                    "See what `rr-py replay` says of this recording.",
                )
            return debuggee
        except BaseException:
            supervisor.close()
            raise

    def copy(self, *, alone: bool = False) -> Debuggee:
        """The same process once more, on its own; CopyError where that cannot be. `alone`: without those that
        share its memory, for code that was not recorded (`divert`)."""
        copied = Debuggee(copy_process(self._supervisor, self._number, alone=alone), self._number)
        before = self._armed.triggers
        copied._armed = _Armed(Triggers(before.breakpoints, counted=before.counted), {})
        for slot in copied._debug.watches:
            slot.len = 0
        return copied

    def close(self) -> None:
        """End the process. Doing so again does nothing."""
        if not self._closed:
            self._closed = True
            self._forget()
            if self._memory is not None:
                self._memory.close()
            for descriptor in self._writers.values():
                os.close(descriptor)
            self._writers.clear()
            self._supervisor.close()

    # ---- running ----

    def go(
        self,
        until: int,
        triggers: Triggers = NOTHING,
        *,
        over: bool = False,
        skip: int = 0,
        steps: int = 0,
        tid: int = 0,
        within: tuple[int, int] | None = None,
        interrupted: Callable[[], bool] | None = None,
        pause: float = 0.0,
    ) -> Stop:
        """Run until event `until` has happened, a trigger was met `skip` + 1 times, or thread `tid` has made
        `steps` steps (or has left the addresses `within`).

        `over`: a breakpoint where it stands now does not count. `interrupted` is asked all the time; when
        it is true the run stops soon. `pause`: at the first event after that time (of `monotonic`) it
        stops, too.
        """
        self._check()
        self._arm(triggers)
        debug, control = self._debug, self._live.ring.control
        debug.steps, debug.step_tid = steps, tid
        debug.range_start, debug.range_end = within or (0, 0)
        debug.skip, debug.hits, debug.hits_in_event = skip, 0, 0
        debug.stepped, debug.stepped_in_event, debug.soft_hits = 0, 0, 0
        debug.hits_event = debug.stepped_event = control.event_count
        debug.go_over = int(over)
        debug.stop_signals = sum(1 << number - 1 for number in triggers.signals)
        del debug, control
        if self._diverting:
            self._diverting = False
            self._leave_core(until)
        else:
            self._release(until)
        return self._wait(interrupted, pause)

    def _leave_core(self, until: int) -> None:
        """Go on in the program itself, whatever the core was about to do."""
        real_tid, context = self._real_tid, self.context(self.tid)
        self._forget()
        control = self._live.ring.control
        control.stop_at = until
        control.stopped = 0
        leave_core(real_tid, context)

    def _release(self, until: int) -> None:
        self._forget()
        self._live.go_on(until)

    def _wait(self, interrupted: Callable[[], bool] | None, pause: float = 0.0) -> Stop:
        """Serve the process until it is parked for a reason that the caller must know."""
        asked = 0.0
        while True:
            if pause and monotonic() > pause and not self._parked and not self._supervisor.over:
                pause = 0.0
                self._live.ring.control.stop_at = self._live.count() + 1
            if not asked:
                self._supervisor.run(partial(self._wakes, interrupted, pause))
            if self._parked:
                if self._debug.reason != Park.TASK:
                    return self._stopped()
                self._watch_thread(self.tid)
                self._live.go_on(int(self._live.ring.control.stop_at))
            elif self._supervisor.over:
                return self._ended()
            elif interrupted is None or not (asked or interrupted()):
                continue
            elif not asked:
                asked = monotonic()
                self._live.ring.control.stop_at = self._live.count() + 1
            elif monotonic() - asked > _POKE_AFTER:
                asked = monotonic()
                self._poke()
            else:
                self._supervisor._step()

    def _wakes(self, interrupted: Callable[[], bool] | None, pause: float) -> bool:
        """Whether `_wait` has something to do."""
        timed_out = bool(pause) and monotonic() > pause
        return self._parked or timed_out or (interrupted is not None and interrupted())

    @property
    def _parked(self) -> bool:
        live = self._supervisor.domains.get(self._number)
        return live is not None and live.paused

    def _poke(self) -> None:
        """Interrupt the thread that computes."""
        owner = int(self._live.ring.control.owner)
        task = self._live.tasks.get(owner)
        if task is not None:
            tgkill(task.real_pid, task.real_tid, _SIGSTKFLT)

    def _stopped(self) -> Stop:
        debug, control = self._debug, self._live.ring.control
        reason = Park(debug.reason)
        if reason == Park.EVENT and debug.core_watch and self._changed():
            reason = Park.CALL_WATCH
        stop = Stop(
            _WHY[reason],
            int(control.event_count),
            int(control.stopped_tid),
            by_call=reason == Park.CALL_WATCH,
            signal=int(debug.signal) if reason in (Park.FAULT, Park.CALL, Park.SIGNAL) else 0,
            hits=int(debug.hits),
            hits_event=int(debug.hits_event),
            hits_in_event=int(debug.hits_in_event),
            stepped=int(debug.stepped),
            counted=int(debug.soft_hits),
            stepped_in_event=int(debug.stepped_in_event) if debug.stepped_event == control.event_count else 0,
        )
        del debug, control
        pc = 0
        with suppress(MemoryFault):
            pc = self.state(stop.tid).registers.rip
        watch = self._touched(stop.tid) if stop.why is Why.WATCH else None
        return replace(stop, pc=pc, watch=watch)

    def _ended(self) -> Stop:
        supervisor = self._supervisor
        events = sum(one.count() for one in supervisor.domains.values() if one.number == self._number)
        message = "the process has ended"
        if supervisor.diverged is not None:
            message = report_divergence(supervisor, supervisor.diverged).text()
        elif supervisor.stuck is not None:
            message = stuck_text(supervisor.stuck)
        elif supervisor.incomplete:
            message = incomplete_text(supervisor.reader, supervisor.incomplete)
        return Stop(Why.ENDED, events, message=message)

    def show_output(self, shown: bool) -> None:
        """Whether what the program writes appears, from now on."""
        assert self._supervisor._page is not None
        self._supervisor._page.fields.replay_echo = 3 if shown else 0

    def divert(self) -> None:
        """From now on calls are not compared with the log: for running code that was not recorded, in a copy
        that is thrown away."""
        self._debug.diverted = 1
        self._diverting = True

    # ---- triggers ----

    def _arm(self, triggers: Triggers) -> None:
        if len(triggers.breakpoints | triggers.counted) > BREAKPOINTS:
            raise ReplayError(
                f"{len(triggers.breakpoints)} breakpoints, and {BREAKPOINTS} are possible", "Delete some."
            )
        if len(triggers.watches) > WATCHES:
            raise ReplayError(
                f"{len(triggers.watches)} watched places, and the processor has {WATCHES}", "Delete some."
            )
        before = self._armed.triggers
        if (triggers.breakpoints, triggers.counted) != (before.breakpoints, before.counted):
            self._arm_breakpoints(triggers.breakpoints | triggers.counted, triggers.breakpoints)
        if triggers.watches or self._armed.triggers.watches:
            self._arm_watches(triggers.watches, triggers.watches != self._armed.triggers.watches)
        self._armed.triggers = triggers

    def _arm_breakpoints(self, addresses: Iterable[int], hard: frozenset[int]) -> None:
        debug = self._debug
        wanted = sorted(addresses)
        before = {one.addr: (one.byte, one.inserted) for one in debug.breaks[: debug.nbreak]}
        for address in before.keys() - set(wanted):
            byte, inserted = before[address]
            if inserted and self._has_trap(address):
                self._put_in_all(address, byte)
        debug.nbreak = len(wanted)
        for index, address in enumerate(wanted):
            slot = debug.breaks[index]
            slot.addr = address
            byte, inserted = before.get(address, (0, 0))
            if not inserted:
                with suppress(MemoryFault, OSError):
                    byte = self._reading().read(address, 1)[0]
                    self._put_in_all(address, _TRAP)
                    inserted = 1
            slot.byte, slot.inserted, slot.soft = byte, inserted, int(address not in hard)

    def _arm_watches(self, watches: tuple[Watch, ...], changed: bool) -> None:
        debug = self._debug
        self._armed.values = {}
        for index in range(WATCHES):
            slot = debug.watches[index]
            if index >= len(watches):
                slot.len = 0
                continue
            watch = watches[index]
            data = bytes(watch.size)
            with suppress(MemoryFault):
                data = self.read(watch.address, watch.size)
            self._armed.values[watch] = data
            slot.addr, slot.len, slot.kind = watch.address, watch.size, 2 if watch.reads else 1
            slot.value = int.from_bytes(data, "little")
        if changed:
            places = [(one.address, one.size, one.reads) for one in watches]
            for task in list(self._live.tasks.values()):
                if task.real_pid in self._live.processes:
                    set_watches(task.real_tid, places)

    def _watch_thread(self, tid: int) -> None:
        """Set the watches of a thread that has just begun, as soon as its word that it has is read."""
        while tid not in self._live.tasks and not self._supervisor.over:
            self._supervisor._step()
        task = self._live.tasks.get(tid)
        if task is not None:
            places = [(one.address, one.size, one.reads) for one in self._armed.triggers.watches]
            set_watches(task.real_tid, places)

    def _changed(self) -> bool:
        """Whether what the core touched for the last event is a match."""
        for watch, before in self._armed.values.items():
            with suppress(MemoryFault):
                if watch.reads or self.read(watch.address, watch.size) != before:
                    return True
        return False

    def _touched(self, tid: int) -> Watch | None:
        """Which watched place the stop is about."""
        for watch, before in self._armed.values.items():
            with suppress(MemoryFault):
                if self.read(watch.address, watch.size) != before:
                    return watch
        task = self._live.tasks.get(tid)
        bits = touched(task.real_tid) if task is not None else 0
        for index, watch in enumerate(self._armed.triggers.watches):
            if bits >> index & 1:
                return watch
        return self._armed.triggers.watches[0] if self._armed.triggers.watches else None

    # ---- looking and changing ----

    @property
    def event(self) -> int:
        """Events that have happened."""
        return self._live.count()

    @property
    def tid(self) -> int:
        """The thread that stopped."""
        return int(self._live.ring.control.stopped_tid)

    @property
    def signal(self) -> int:
        """The signal that is delivered to a handler next, where that is why it has stopped; else 0."""
        debug = self._debug
        return int(debug.signal) if debug.reason == Park.SIGNAL else 0

    @property
    def real_pid(self) -> int:
        """The process as the kernel knows it now."""
        self._check()
        task = self._live.tasks.get(self.tid)
        return task.real_pid if task is not None else min(self._live.processes)

    @property
    def _real_tid(self) -> int:
        """The thread that stopped, as the kernel knows it; the first of its process may have ended."""
        task = self._live.tasks.get(self.tid)
        return task.real_tid if task is not None else self.real_pid

    def mappings(self) -> Mappings:
        """What is mapped now, with recorded paths."""
        if self._mappings is None:
            self._mappings = mappings_of(self._real_tid, self._supervisor.contents)
        return self._mappings

    def threads(self) -> list[ThreadBlock]:
        """The threads that live."""
        if self._blocks is None:
            self._blocks = thread_blocks(self._reading(), list(self.mappings()))
        return self._blocks

    def context(self, tid: int) -> int:
        """The address of a thread's saved registers; MemoryFault when it has none."""
        if tid == self.tid:
            context = int(self._live.ring.control.diverged_regs)
        else:
            context = next((block.context for block in self.threads() if block.tid == tid), 0)
        if not context:
            raise MemoryFault(0, 0)
        return context

    def state(self, tid: int) -> ThreadState:
        """All registers of a thread; MemoryFault when it has none to show (it has not begun)."""
        state = read_state(self._reading(), self.context(tid))
        if tid not in self._fs:
            task = self._live.tasks.get(tid)
            self._fs[tid] = fs_base_of(task.real_tid) if task is not None else 0
        return replace(state, fs_base=self._fs[tid])

    def set_registers(self, tid: int, values: Mapping[str, int]) -> None:
        """Change general registers of a thread; MemoryFault when it has none."""
        context = self.context(tid)
        for name, value in values.items():
            if name in _CONTEXT_NAMES:
                at = context + _CONTEXT_OFFSET + 8 * _CONTEXT_NAMES.index(name)
                self._put(at, struct.pack("<Q", value & (1 << 64) - 1))

    def read(self, address: int, size: int) -> bytes:
        """Memory as the program sees it, without breakpoints; MemoryFault for what is not there or not the
        program's."""
        if hidden(address) or hidden(address + max(size, 1) - 1):
            raise MemoryFault(address, size)
        data = self._reading().read(address, size)
        debug = self._debug
        changed = bytearray(data)
        for one in debug.breaks[: debug.nbreak]:
            if one.inserted and 0 <= one.addr - address < size and changed[one.addr - address] == _TRAP:
                changed[one.addr - address] = one.byte
        return bytes(changed)

    def write(self, address: int, data: bytes) -> None:
        """Change memory of the program; MemoryFault as `read`."""
        self.read(address, len(data))
        debug = self._debug
        changed = bytearray(data)
        for one in debug.breaks[: debug.nbreak]:
            if one.inserted and 0 <= one.addr - address < len(data):
                one.byte = changed[one.addr - address]
                changed[one.addr - address] = _TRAP
        self._put(address, bytes(changed))

    def disarm(self) -> None:
        """Take all triggers out of it."""
        self._arm(NOTHING)

    def put(self, address: int, data: bytes) -> None:
        """Change any memory, the core's too; MemoryFault where there is none."""
        self._put(address, data)

    def get(self, address: int, size: int) -> bytes:
        """Any memory, as it is; MemoryFault where there is none."""
        return self._reading().read(address, size)

    # ---- inside ----

    @property
    def _live(self) -> LiveDomain:
        return self._supervisor.domains[self._number]

    @property
    def _debug(self) -> Debug:
        return debug_area(self._live.ring)

    def _check(self) -> None:
        if self._closed:
            raise EndedError("this process has been given up", "Use the current one.")
        if not self._live.paused:
            raise NothingToReplayError("the replay has ended", "Go back to an earlier event.")

    def _reading(self) -> ProcessMemory:
        pid = self.real_pid
        if self._memory is None or self._memory_of != pid:
            if self._memory is not None:
                self._memory.close()
            self._memory, self._memory_of = ProcessMemory(self._real_tid), pid
        return self._memory

    def _has_trap(self, address: int) -> bool:
        """Whether a breakpoint is still there: the program may have written other code."""
        with suppress(MemoryFault):
            return self._reading().read(address, 1)[0] == _TRAP
        return False

    def _put_in_all(self, address: int, byte: int) -> None:
        """Into the code of all processes that live here; MemoryFault where the stopped one lacks it."""
        self._put(address, bytes([byte]))
        for pid in self._live.processes - {self.real_pid}:
            with suppress(MemoryFault, OSError):
                self._put(address, bytes([byte]), pid)

    def _put(self, address: int, data: bytes, pid: int = 0) -> None:
        pid = pid or self.real_pid
        if pid not in self._writers:
            via = self._real_tid if pid == self.real_pid else pid
            self._writers[pid] = os.open(f"/proc/{via}/mem", os.O_WRONLY | os.O_CLOEXEC)
        try:
            done = os.pwrite(self._writers[pid], data, address)
        except OSError:
            raise MemoryFault(address, len(data)) from None
        if done != len(data):
            raise MemoryFault(address, len(data))

    def _forget(self) -> None:
        self._mappings = self._blocks = None
        self._fs = {}
