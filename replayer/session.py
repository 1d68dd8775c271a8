"""A replay that can be stopped at an event and looked into.

    with Session.open("trace.bin") as session:
        pause = session.run_to(1000)
        if isinstance(pause, Paused):
            print(pause.backtrace())
            ended = session.run()

What needs a stopped process exists on `Paused` only, and only until the session goes on. A session replays
one domain (by default that of the recorded program); processes it forks are not replayed along.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from interfaces.abi import RESTART, Kind
from replayer import machine, scope
from replayer.corelayout import thread_blocks
from replayer.divergence import DivergenceReport
from replayer.domain import NEVER, LiveDomain
from replayer.errors import EndedError, NothingToReplayError
from replayer.inspect import context_registers, mappings_of, report_divergence
from replayer.memory import Mappings, ProcessMemory
from replayer.options import DEFAULT_TIMEOUT, ReplayEnd
from replayer.registers import Registers
from replayer.replaying import incomplete_text, stuck_text
from replayer.supervisor import Supervisor
from replayer.threadstate import ThreadState, fs_base_of, read_state
from replayer.unwind import Frame, Unwinder
from tracefile import EventView, TraceReader


@dataclass(frozen=True, slots=True)
class Ended:
    """The session has reached an end: of the log, of the process, or because it diverged or got stuck."""

    end: ReplayEnd
    events: int
    message: str = ""
    divergence: DivergenceReport | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of a paused process, by its recorded ids. `stopped_here`: it made the last event."""

    tid: int
    pid: int
    stopped_here: bool


class Paused:
    """A replay that stands after `event` events; event number `event` is the next one to happen."""

    def __init__(self, session: Session, domain: LiveDomain) -> None:
        self._session = session
        self._domain = domain
        self._mappings: Mappings | None = None
        self._gone = False
        self.event = domain.count()
        self.tid = int(domain.ring.control.stopped_tid)

    @property
    def domain(self) -> int:
        """Number of the domain."""
        return self._domain.number

    @property
    def last_event(self) -> EventView:
        """The event that has just been replayed."""
        return self._session.reader.event(self.domain, self.event - 1)

    @property
    def real_pid(self) -> int:
        """The replaying process, as the kernel knows it now (for tools that attach to a process)."""
        self._check()
        task = self._domain.tasks.get(self.tid)
        return task.real_pid if task is not None else min(self._domain.processes)

    def threads(self) -> list[Thread]:
        """The threads that live, by recorded id."""
        return [
            Thread(block.tid, block.pid, block.tid == self.tid)
            for block in thread_blocks(self._open(), list(self.mappings()))
        ]

    def registers(self, tid: int | None = None) -> Registers:
        """The general registers of a thread (by default the one that stopped) where it left the program's
        code.

        MemoryFault when the thread has none to show: it has not begun, or is about to end.
        """
        memory = self._open()
        if tid is None or tid == self.tid:
            registers = context_registers(memory, int(self._domain.ring.control.diverged_regs))
            last = self.last_event
            if last.kind == Kind.SYSCALL and last.result != RESTART:
                registers = replace(registers, rax=last.result & (1 << 64) - 1)
            return registers
        for block in thread_blocks(memory, list(self.mappings())):
            if block.tid == tid:
                return context_registers(memory, block.context)
        raise NothingToReplayError(f"there is no thread {tid} at event {self.event}", "See `threads`.")

    def state(self, tid: int | None = None) -> ThreadState:
        """All registers of a thread, also segments and vector state; MemoryFault as `registers`."""
        registers = self.registers(tid)
        tid = self.tid if tid is None else tid
        memory = self._open()
        context = int(self._domain.ring.control.diverged_regs)
        if tid != self.tid:
            context = next(
                block.context for block in thread_blocks(memory, list(self.mappings())) if block.tid == tid
            )
        task = self._domain.tasks.get(tid)
        fs_base = fs_base_of(task.real_tid) if task is not None else 0
        return replace(read_state(memory, context, fs_base), registers=registers)

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes of the process's memory; MemoryFault when not all of them can be read."""
        return self._open().read(address, size)

    def mappings(self) -> Mappings:
        """What is mapped now, with the recorded paths."""
        if self._mappings is None:
            self._mappings = mappings_of(self._real_tid, self._session.contents)
        return self._mappings

    def backtrace(self, tid: int | None = None, limit: int = 256) -> list[Frame]:
        """The native stack of a thread, innermost frame first."""
        registers = self.registers(tid)
        unwinder = Unwinder(
            self._open(), self.mappings(), previous=self._session._unwinders.get(self.real_pid)
        )
        self._session._unwinders[self.real_pid] = unwinder
        return unwinder.backtrace(registers, limit)

    def _open(self) -> ProcessMemory:
        pid = self.real_pid
        memories = self._session._memories
        if pid not in memories:
            memories[pid] = ProcessMemory(self._real_tid)
        return memories[pid]

    @property
    def _real_tid(self) -> int:
        """The thread that stopped, as the kernel knows it; the first of its process may have ended."""
        task = self._domain.tasks.get(self.tid)
        return task.real_tid if task is not None else self.real_pid

    def _check(self) -> None:
        if self._gone:
            raise EndedError(
                "this pause is over: the session has gone on", "Use what the last `run_to` returned."
            )

    def _leave(self) -> None:
        self._gone = True


class Session:
    """An open replay of one domain. Use as a context manager, or call `close`; one thread at a time."""

    def __init__(
        self,
        reader: TraceReader,
        domain: int | None = None,
        *,
        echo: tuple[int, int] | None = None,
        verify: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        """Takes the reader over. NothingToReplayError when the trace does not have the domain."""
        self.reader = reader
        self.domain = scope.whole(reader).starts[0] if domain is None else domain
        self._memories: dict[int, ProcessMemory] = {}
        self._unwinders: dict[int, Unwinder] = {}
        self._paused: Paused | None = None
        self._started = False
        self._closed = False
        self._supervisor = Supervisor(
            reader, scope.one_domain(reader, self.domain), echo=echo, verify=verify, timeout=timeout
        )
        self.contents = self._supervisor.contents

    @classmethod
    def open(cls, trace: Path | str, domain: int | None = None, *, ignore_cpu: bool = False) -> Self:
        """A session on a trace file, silent. Raises TraceError, MachineError or NothingToReplayError."""
        reader = TraceReader.open(trace)
        try:
            if not ignore_cpu:
                machine.check(reader.meta)
            return cls(reader, domain)
        except BaseException:
            reader.close()
            raise

    @property
    def paused(self) -> Paused | None:
        """Where the replay stands still now, None where it does not."""
        return self._paused

    def run_to(self, event: int) -> Paused | Ended:
        """Go on until `event` events of the domain have been replayed (at least 1, and more than now).

        NothingToReplayError for an event that is not ahead or not in the trace, EndedError on a closed
        session.
        """
        total = self.reader.event_count(self.domain)
        here = self._paused.event if self._paused is not None else 0
        if not here < event <= total:
            raise NothingToReplayError(
                f"cannot go to event {event} of domain {self.domain}: {here} of its {total} are replayed",
                "Open a new session to go back.",
            )
        return self._go(event)

    def run(self) -> Ended:
        """Go on to the end."""
        ended = self._go(NEVER)
        assert isinstance(ended, Ended)
        return ended

    def close(self) -> None:
        """End the replaying processes (and no others). Doing so again does nothing."""
        if not self._closed:
            self._closed = True
            self._leave()
            for memory in self._memories.values():
                memory.close()
            self._supervisor.close()
            self.reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _go(self, stop_at: int) -> Paused | Ended:
        if self._closed:
            raise EndedError("the session is closed", "Open a new one.")
        supervisor = self._supervisor
        if not self._started:
            self._started = True
            supervisor.stops[self.domain] = stop_at
            supervisor.start()
        elif self._paused is not None:
            domain = supervisor.domains[self.domain]
            self._leave()
            domain.go_on(stop_at)
        supervisor.run(self._is_paused)
        if self._is_paused():
            self._paused = Paused(self, supervisor.domains[self.domain])
            return self._paused
        return self._ended()

    def _is_paused(self) -> bool:
        domain = self._supervisor.domains.get(self.domain)
        return domain is not None and domain.paused

    def _leave(self) -> None:
        if self._paused is not None:
            self._paused._leave()
            self._paused = None

    def _ended(self) -> Ended:
        supervisor = self._supervisor
        events = sum(domain.count() for domain in supervisor.domains.values() if domain.number == self.domain)
        if supervisor.diverged is not None:
            report = report_divergence(supervisor, supervisor.diverged)
            return Ended(ReplayEnd.DIVERGED, events, report.text(), report)
        if supervisor.stuck is not None:
            return Ended(ReplayEnd.STUCK, events, stuck_text(supervisor.stuck))
        if supervisor.incomplete:
            return Ended(ReplayEnd.INCOMPLETE, events, incomplete_text(self.reader, supervisor.incomplete))
        return Ended(ReplayEnd.FINISHED, events)
