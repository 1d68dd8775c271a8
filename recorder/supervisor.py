"""The recorder's loop: one thread that listens to every recorded process and empties every ring.

Nothing here ever ends or harms the program. Where something cannot be recorded the program goes on
without, the user is told once, and the trace says so. Events may come in any order: a greeting after the
sender's death, a death in the middle of an exec.
"""

import contextlib
import functools
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from interfaces import abi
from interposer import kernel, ptrace
from interposer.channel import Channel, Message, Received
from interposer.errors import InterposerError
from interposer.shared import Ring
from recorder import reports
from recorder.domains import Domain, Process, end_of
from recorder.drain import Drain, RingDamaged
from recorder.execs import Execs, host_tid
from recorder.files import FileTable
from recorder.images import Core
from recorder.mapping import KnownFiles, Mappings
from recorder.outside import OutsideWatch
from recorder.sharing import Decision, Sharing
from recorder.spinning import POKE, SpinWatch
from recorder.terminal import Signals
from tracefile import DomainEnd, DomainStart, Report, TraceWriteError, TraceWriter

_TICK = 0.1
_TICK_UNSIGNALLED = 0.005
_TICK_SPINNING = 0.01
_GREETING_TICKS = 10
_PATIENCE_TICKS = 10


class _Awaited(NamedTuple):
    """An image that carries the core and has not greeted yet; `handle` tells when its process ends."""

    pid: int
    handle: int


class Supervisor:
    """Records one program and everything it starts. `run` returns the program's wait status."""

    def __init__(
        self,
        writer: TraceWriter,
        files: FileTable,
        core: Core,
        hello: Channel,
        signals: Signals,
        notify: Callable[[str], None],
        page: KnownFiles,
    ) -> None:
        self.problem = ""
        self._writer = writer
        self._files = files
        self._core = core
        self._hello = hello
        self._signals = signals
        self._notify = notify
        self._selector = selectors.DefaultSelector()
        self._domains: dict[int, Domain] = {}
        self._processes: set[Process] = set()
        self._replacing: set[Process] = set()
        self._awaited: dict[int, _Awaited] = {}
        self._unexplained: dict[int, list[int]] = {}
        self._statuses: dict[int, int] = {}
        self._reported: set[tuple[int, int]] = set()
        self._execs = Execs(core, files, writer.add_domain, self.expect, self.tell, self._left)
        self._spinning = SpinWatch()
        self._sharing = Sharing(page.withdraw)
        self._mappings = Mappings(files, core, page, self._sharing)
        self._outside = OutsideWatch()
        self._first = 0
        self._first_status: int | None = None
        self._quiet_ticks = 0
        self._ticks_after = 0
        self._interrupts = 0

    def expect(self, pid: int, domain: int) -> None:
        """An image of `pid` carries the core: it will greet as `domain`, or die before."""
        handle = os.pidfd_open(pid)
        self._awaited[domain] = _Awaited(pid, handle)
        self._selector.register(handle, selectors.EVENT_READ, domain)

    def run(self, first: int) -> int:
        """Record until the first program (process `first`, our child) and all its descendants have ended."""
        self._first = first
        self._selector.register(self._hello, selectors.EVENT_READ, self._hello)
        self._selector.register(self._signals, selectors.EVENT_READ, self._signals)
        tick = _TICK if self._signals.active else _TICK_UNSIGNALLED
        next_tick = next_look = time.monotonic() + tick
        while not self._finished():
            ready = self._selector.select(max(0.0, min(next_tick, next_look) - time.monotonic()))
            for key, _ in ready:
                if key.data is self._hello:
                    self._greetings()
            self._waits()  # before the messages: a program may stand at its beginning
            for key, _ in ready:
                self._ready(key.data)
            now = time.monotonic()
            if now >= next_look:
                next_look = now + (_TICK_SPINNING if self._look_for_spinning() else tick)
            if now >= next_tick:
                self._tick()
                next_tick = now + tick
        self._close_all()
        self._selector.close()
        assert self._first_status is not None
        return self._first_status

    def _finished(self) -> bool:
        if self._first_status is None:
            return False
        if self._interrupts >= 2:
            self._stop(abi.Stop.REQUEST, "stopped by request while recorded processes were running")
            return True
        if self._processes or self._execs or self._awaited:
            self._quiet_ticks = 0
            return False
        return self._quiet_ticks >= _GREETING_TICKS or not _has_children()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Around whatever writes to the trace and must not keep the rest from happening."""
        try:
            yield
        except TraceWriteError as error:
            self._stop(abi.Stop.DISK, error.message, error.remedy)

    def _ready(self, about: object) -> None:
        if isinstance(about, Process):
            if about in self._processes:
                self._messages(about)
        elif about is self._signals:
            self._on_signals()
        elif isinstance(about, int):
            self._died_before_greeting(about)

    # ---- processes come and go -----------------------------------------------------------------

    def _greetings(self) -> None:
        while (received := self._hello.receive()) is not None:
            message, fds = received.message, received.fds
            shares = message.type == abi.Msg.HELLO_FORK and message.d == 1
            try:
                if message.type not in (abi.Msg.HELLO_EXEC, abi.Msg.HELLO_FORK):
                    continue
                if not fds:
                    self._without_log(message, received.sender or message.pid)
                if len(fds) != 2 - shares:
                    continue
                self._greeting(message, received.sender or message.pid, None if shares else fds[0], fds[-1])
            except (OSError, InterposerError) as error:
                self.tell(0, message.pid, f"process {message.pid} cannot be recorded: {error}")
            finally:
                for fd in fds:
                    os.close(fd)

    def _without_log(self, message: Message, pid: int) -> None:
        """A process could make no log: the limits it set leave it no descriptor or no memory."""
        self.tell(
            message.a, pid, f"process {pid} goes on unrecorded: its resource limits leave no room for a log"
        )
        if message.type == abi.Msg.HELLO_FORK and not self.problem:
            with self._writing():
                self._writer.add_domain(_forked(message, pid))
                self._writer.end_domain(end_of(message.a, pid, None))

    def _greeting(self, message: Message, pid: int, ring_fd: int | None, control_fd: int) -> None:
        """A process has started: with a log of its own, or (no `ring_fd`) in the domain it names."""
        number = message.a
        awaited = self._awaited.pop(number, None)
        if awaited is not None:
            self._drop(awaited)
        domain = self._domains.get(number)
        if domain is None:
            if ring_fd is None:
                raise InterposerError(f"it shares the log of domain {number}, which has ended")
            domain = self._new_domain(message, pid, Ring(ring_fd), os.dup(ring_fd))
        process = Process(Channel.adopt(os.dup(control_fd)), domain, pid, message.pid)
        domain.processes.add(process)
        self._processes.add(process)
        self._selector.register(process.channel, selectors.EVENT_READ, process)

    def _new_domain(self, message: Message, pid: int, ring: Ring, ring_fd: int) -> Domain:
        domain = Domain(message.a, Drain(message.a, ring, self._writer), ring, ring_fd)
        self._domains[message.a] = domain
        if message.type == abi.Msg.HELLO_FORK and not self.problem:
            with self._writing():
                self._writer.add_domain(_forked(message, pid))
        if self.problem:
            self._unrecord(domain, abi.Stop.DISK)
        return domain

    def _drop(self, awaited: _Awaited) -> None:
        self._selector.unregister(awaited.handle)
        os.close(awaited.handle)

    def _died_before_greeting(self, number: int) -> None:
        awaited = self._awaited.pop(number, None)
        if awaited is None:
            return
        self._drop(awaited)
        self._explain(number, awaited.pid)

    def _messages(self, process: Process) -> None:
        while (received := process.channel.receive()) is not None:
            try:
                self._message(process, received)
            finally:
                for fd in received.fds:
                    os.close(fd)
        if process.channel.closed:
            self._selector.unregister(process.channel)
            if self._execs.involves(process):
                self._replacing.add(process)
            else:
                self._gone(process)

    def _gone(self, process: Process) -> None:
        """The process has closed its control socket: it ended, or another program has taken its place."""
        self._greetings()
        process.channel.close()
        self._processes.discard(process)
        self._replacing.discard(process)
        domain = process.domain
        domain.processes.discard(process)
        self._drain(domain)
        end = process.end() if process.pid != self._first or process.execed else None
        if end is None:
            self._explain(domain.number, process.pid)
        elif not self.problem:
            with self._writing():
                self._writer.end_domain(end)
        if process.joins is not None:
            process.joins.joining -= 1
            self._close_if_empty(process.joins)
        self._close_if_empty(domain)

    def _share(self, process: Process, received: Received) -> None:
        """Memory is about to be shared: answer with the ring of the domain to join, or with none."""
        self._greetings()
        answer, fds = Message(abi.Msg.SHARE), tuple[int, ...]()
        try:
            decision = self._sharing.asked(process, received.message, received.fds, self._domains)
        except OSError:
            decision = Decision()
        if received.message.a == abi.Share.SYSV and not self.problem:
            with self._writing():
                number = self._files.segment(received.message.b, received.message.c >> 1)
                answer = answer._replace(b=number)
        if decision.join is not None and not self.problem:
            process.joins = decision.join
            decision.join.joining += 1
            answer, fds = answer._replace(a=decision.join.number), (decision.join.ring_fd,)
        elif decision.late is not None:
            self.tell(
                process.domain.number,
                process.pid,
                f"{decision.name} is shared by processes that are recorded apart (domains "
                f"{process.domain.number} and {decision.late.number}): what passes through it may not "
                "replay; record with --one-domain",
            )
        process.channel.send(answer, fds=fds)
        if received.message.a != abi.Share.ALL:
            with contextlib.suppress(OSError):
                self._watch(process, received)
            self._look_outside()

    def _watch(self, process: Process, received: Received) -> None:
        """Something is mapped shared: look who else writes it, unless it is a system file that is read."""
        message, fds = received.message, received.fds
        if fds and not message.c & 1 and self._files.belongs_to_system(fds[0]):
            return
        segment = message.b if message.a == abi.Share.SYSV else None
        self._outside.mapped(process.domain.number, process.pid, fds, segment)

    def _look_outside(self, ending: int | None = None) -> None:
        for shared in self._outside.look(ending):
            self.tell(shared.domain, shared.process, shared.text)

    def _joined(self, process: Process) -> None:
        """The process has moved to the log of another domain."""
        old, new = process.domain, process.joins
        if new is None:
            return
        process.joins = None
        process.domain = new
        new.joining -= 1
        new.processes.add(process)
        old.processes.discard(process)
        self._drain(old)
        self._sharing.joined(old.number, new.number)
        if not self.problem:
            with self._writing():
                self._writer.end_domain(
                    DomainEnd(
                        domain=old.number,
                        pid=process.pid,
                        status="execed",
                        code=new.number,
                        time=time.monotonic_ns(),
                    )
                )
        self._close_if_empty(old)

    def _close_if_empty(self, domain: Domain) -> None:
        if not domain.processes and not domain.joining and domain.number in self._domains:
            self._close(domain)

    def _left(self, domain: int, pid: int) -> None:
        with self._writing():
            self._writer.end_domain(
                DomainEnd(domain=domain, pid=pid, status="execed", time=time.monotonic_ns())
            )

    def _explain(self, domain: int, pid: int) -> None:
        """A process ended without saying how: its wait status tells, if it is ours to reap."""
        self._unexplained.setdefault(pid, []).append(domain)
        if pid in self._statuses:
            self._explained(pid, self._statuses.pop(pid))

    def _explained(self, pid: int, status: int | None) -> None:
        for number in self._unexplained.pop(pid, []):
            if not self.problem:
                with self._writing():
                    self._writer.end_domain(end_of(number, pid, status))

    def _close(self, domain: Domain) -> None:
        self._domains.pop(domain.number, None)
        self._sharing.forget(domain.number)
        self._look_outside(domain.number)
        self._outside.forget(domain.number)
        self._spinning.forget(domain.number)
        domain.close()

    def _close_all(self) -> None:
        for process in list(self._processes):
            self._gone(process)
        for awaited in self._awaited.values():
            self._drop(awaited)
        for pid in list(self._unexplained):
            self._explained(pid, None)

    # ---- messages ------------------------------------------------------------------------------

    def _message(self, process: Process, received: Received) -> None:
        message = received.message
        match message.type:
            case abi.Msg.SEALED:
                self._drain(process.domain, partial=False)
            case abi.Msg.MAP_FILE:
                self._map_file(process, received)
            case abi.Msg.SHARE:
                self._share(process, received)
            case abi.Msg.JOINED:
                self._joined(process)
            case abi.Msg.EXEC:
                self._exec(process, received)
            case abi.Msg.EXEC_FAILED:
                process.untraced = False
                self._execs.failed(process, message, received.sender)
            case abi.Msg.REPORT:
                self._report(process, message)
            case abi.Msg.DEATH:
                process.death_signal = message.a
            case abi.Msg.IMAGE_UNSAFE:
                self.tell(
                    process.domain.number,
                    process.pid,
                    f"process {process.pid} runs an image that cannot be recorded",
                )

    def _exec(self, process: Process, received: Received) -> None:
        """A process is about to call execve."""
        message = received.message
        if not self.problem and self._execs.announced(process, message, received.sender):
            return
        if not self.problem:
            pid = received.sender or process.pid
            self.tell(
                process.domain.number,
                pid,
                f"process {pid} goes on unrecorded after its execve: tracing it is not permitted",
            )
        if message.pid == process.own_pid:
            process.untraced = True
        elif not self.problem:
            self._unrecord(process.domain, abi.Stop.RECORDER)
        process.channel.send(Message(abi.Msg.EXEC, -1))

    def _map_file(self, process: Process, received: Received) -> None:
        """Answer which file a mapping shows, and where in it CPUID instructions are to be replaced."""
        message, answer, sites = received.message, Message(abi.Msg.MAP_FILE), b""
        try:
            if received.fds and not self.problem:
                with self._writing():
                    answer, sites = self._mappings.answer(message, received.fds[0])
        except OSError as error:
            self.tell(
                process.domain.number,
                process.pid,
                f"a file that process {process.pid} maps cannot be read ({error.strerror}): not recorded",
            )
        process.channel.send(answer, extra=sites)

    def _report(self, process: Process, message: Message) -> None:
        code, b, c = message.a, message.b, message.c
        key = (code, b)
        text = reports.text_of(code, b, c)
        if key not in self._reported:
            self._reported.add(key)
            self._notify(text)
        self._add_report(process.domain.number, process.pid, code & 0xFFFFFFFF, text)

    def tell(self, domain: int, pid: int, text: str) -> None:
        """A report of the recorder's own: to the user and into the trace."""
        self._notify(text)
        self._add_report(domain, pid, reports.OWN, text)

    def _add_report(self, domain: int, pid: int, code: int, text: str) -> None:
        if not self.problem:
            with self._writing():
                self._writer.add_report(
                    Report(time=time.monotonic_ns(), domain=domain, pid=pid, code=code, text=text)
                )

    # ---- the operating system ------------------------------------------------------------------

    def _waits(self) -> None:
        while (wait := ptrace.poll()) is not None:
            with self._writing():
                status = self._execs.handle(wait)
                if status is not None:
                    self._reaped(wait.tid, status)
        for process in [p for p in self._replacing if not self._execs.involves(p)]:
            self._gone(process)

    def _reaped(self, pid: int, status: int) -> None:
        if pid == self._first:
            self._first_status = status
        self._statuses[pid] = status
        if pid in self._unexplained:
            self._explained(pid, self._statuses.pop(pid))

    def _on_signals(self) -> None:
        for number in self._signals.take():
            if self._first_status is None:
                if number != signal.SIGINT:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(self._first, number)
            elif number == signal.SIGINT:
                self._interrupts += 1
            else:
                self._interrupts = 2

    def _tick(self) -> None:
        self._quiet_ticks += 1
        self._look_outside()
        if self._first_status is not None and self._processes:
            self._ticks_after += 1
            if self._ticks_after == _PATIENCE_TICKS:
                pids = ", ".join(str(pid) for pid in sorted({p.pid for p in self._processes})[:5])
                self._notify(
                    f"the program has ended; waiting for processes it left behind ({pids}); "
                    "Ctrl-C twice ends the recording"
                )
        for domain in list(self._domains.values()):
            self._drain(domain, partial=domain.drain.resting())

    def _look_for_spinning(self) -> bool:
        soon = False
        for domain in self._domains.values():
            if domain.ring is not None:
                poke = functools.partial(self._poke, domain)
                soon |= self._spinning.look(domain.number, domain.ring.control, poke)
        return soon

    def _poke(self, domain: Domain, own_tid: int) -> bool:
        """Ask a task to stop where it is; never one that may have left for another program."""
        for process in domain.processes:
            tid = host_tid(process.pid, process.own_pid, own_tid)
            if not process.untraced and not self._execs.traces(tid) and kernel.tgkill(process.pid, tid, POKE):
                return True
        return False

    # ---- the log -------------------------------------------------------------------------------

    def _drain(self, domain: Domain, *, partial: bool = True) -> None:
        if domain.ring is None:
            return
        if self.problem:
            domain.drain.discard()
            return
        try:
            with self._writing():
                domain.drain.run(partial=partial)
        except RingDamaged:
            self._unrecord(domain, abi.Stop.RECORDER)
            self.tell(
                domain.number,
                0,
                f"the log of domain {domain.number} was overwritten by its program: it ends here",
            )

    def _unrecord(self, domain: Domain, reason: abi.Stop) -> None:
        if domain.ring is not None:
            domain.ring.control.stop_reason = reason
            domain.ring.control.state = abi.RingState.UNRECORDED
            domain.drain.discard()

    def _stop(self, reason: abi.Stop, why: str, remedy: str = "") -> None:
        """Nothing more can be recorded: let everybody go on, and tell the user once."""
        if self.problem:
            return
        self.problem = why
        for domain in self._domains.values():
            self._unrecord(domain, reason)
        self._notify(f"{why}; the program goes on unrecorded" + (f". {remedy}" if remedy else ""))


def _forked(message: Message, pid: int) -> DomainStart:
    return DomainStart(
        domain=message.a,
        kind="fork",
        pid=pid,
        parent_domain=message.b,
        ppid=message.c,
        time=time.monotonic_ns(),
    )


def _has_children() -> bool:
    """Whether we have children: after the first program's end these are orphans of it, recorded or not."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
