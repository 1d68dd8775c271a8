"""The replayer's loop: starts the core, answers its questions, watches its processes, and ends all of them.

It runs in the caller's thread (`run`), so that an exception there ends the replay; `close` leaves nothing
behind in any case. Processes are never signalled one by one unless they are unreaped children of this
replay.
"""

from __future__ import annotations

import errno
import os
import selectors
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from interfaces import abi
from interposer import image_path
from interposer.channel import Channel, Message, Received
from interposer.shared import GlobalPage
from replayer import bootplan, watchdog
from replayer.contents import Contents
from replayer.debugring import debug_area
from replayer.domain import NEVER, LiveDomain, Task
from replayer.errors import CoreError, LibraryTraceError, NothingToReplayError
from replayer.feeder import ChunkFilter
from replayer.launch import Ended, Group, fd_base
from replayer.output import Numbering, ProcessFilter, Turns, shown
from replayer.scope import Scope
from tracefile import BootImage, TraceError, TraceReader

_TICK = 0.1
_JOINING, _COPY = 1, 2
_EVERY_TURN = 1 << 62
_CPUID_FLAGS = abi.GlobalFlag.WATCH_CODE | abi.GlobalFlag.LATE_FAULT
_TURN_TICK = 0.005
_IDLE_TURN = 1.0
_MAP_SHARED = 1
_CPU_EVERY = 0.5
_LOG_OVER = 0.4


class Stuck(NamedTuple):
    """The watchdog ended the replay: seconds it waited, and where each domain stands."""

    seconds: float
    domains: tuple[LiveDomain, ...]


class Supervisor:
    """Runs one replay. `diverged`, `stuck`, `incomplete` and `notes` say how it went."""

    def __init__(
        self,
        reader: TraceReader,
        scope: Scope,
        *,
        echo: tuple[int, int] | None,
        verify: bool,
        timeout: float,
        core: Path | None = None,
        contents: Contents | None = None,
        debugging: bool = False,
    ) -> None:
        """`echo`: descriptors for the program's output and errors, None: none. `timeout` in seconds.

        `contents` lends the files of another replay of the same trace. `debugging`: processes can be
        stopped anywhere and copied (see `copying`), and their output does not wait for its turn.
        """
        if isinstance(reader.meta.get("library"), dict):
            raise LibraryTraceError(reader.meta)
        self.reader = reader
        self.scope = scope
        self._owns_contents = contents is None
        self.contents = contents if contents is not None else Contents(reader)
        self.debugging = debugging
        self.adopter: Callable[[Channel, Received], None] | None = None
        self.domains: dict[int, LiveDomain] = {}
        self._live: dict[int, LiveDomain] = {}
        self._past_events = 0
        self.stops: dict[int, int] = {}
        self.diverged: LiveDomain | None = None
        self.stuck: Stuck | None = None
        self.incomplete: list[LiveDomain] = []
        self.notes: list[str] = []
        self.processes = 0
        self.stamped = False
        """Mark what the program writes with process and event; to be set before `start`."""
        self._echo = echo
        self._verify = verify
        self._timeout = timeout
        self._core = core
        self._groups: list[Group] = []
        self._pids: dict[int, int] = {}
        self._pidfds: dict[int, int] = {}
        self._killed: set[int] = set()
        self._numbering = Numbering()
        self._selector = selectors.DefaultSelector()
        self._hello: Channel | None = None
        self._page: GlobalPage | None = None
        self._turns: Turns | None = None
        self._watchdog = watchdog.Watchdog(timeout)
        self._last_look = 0.0
        self._error: Exception | None = None
        self._execs: dict[int, dict[int, int]] = {}
        for info in reader.domains.values():
            if info.parent_event is not None:
                self._execs.setdefault(info.parent_domain, {})[info.domain] = info.parent_event
        self._needed = {domain: set(children) for domain, children in (scope.until or {}).items()}
        self._log_over: dict[int, float] = {}
        self._offered: set[int] = set()
        self._moved: set[tuple[int, int]] = set()

    # ---- the caller's side ----

    def start(self) -> None:
        """Start the core for every domain the scope begins with. Raises CoreError or ImageError."""
        core = self._core or image_path()
        self._page = GlobalPage()
        fields = self._page.fields
        fields.mode = abi.RingState.REPLAYING
        fields.tool_pid = os.getpid()
        fields.fd_base = fd_base()
        fields.next_domain = max(self.reader.domains, default=0) + 1
        fields.checksum_every = int(self._verify)
        fields.replay_echo = shown(self._echo) if self._echo is not None else 0
        if self.debugging:
            fields.output_seq = _EVERY_TURN
            fields.replay_echo = 0
        flags = self.reader.meta.get("flags")
        fields.flags = flags & _CPUID_FLAGS if isinstance(flags, int) else 0
        if os.environ.get("RR_PY_PATCH") == "0" or self.debugging:
            fields.flags |= abi.GlobalFlag.NO_PATCH
        if self.stamped:
            fields.flags |= abi.GlobalFlag.STAMP
        self._turns = Turns(self._page)
        self._hello, theirs = Channel.pair(credentials=True)
        self._selector.register(self._hello, selectors.EVENT_READ, self._on_hello)
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        image = os.open(core, os.O_RDONLY | os.O_CLOEXEC)
        try:
            out, err = self._echo if self._echo is not None else (null, null)
            hidden = {
                abi.FD_HELLO: theirs.fileno(),
                abi.FD_IMAGE: image,
                abi.FD_GLOBAL: self._page.fd,
                abi.FD_OUT: out if _is_open(out) else null,
                abi.FD_ERR: err if _is_open(err) else null,
            }
            for domain in self.scope.starts:
                self._groups.append(Group(core, domain, hidden))
                self._watch(self._groups[-1].leader)
        finally:
            theirs.close()
            os.close(image)
            os.close(null)

    def run(self, until: Callable[[], bool] | None = None) -> None:
        """Serve the replay until it has ended, or `until` is true (asked after every step).

        Raises FileChangedError or ContentError for content that is not there, CoreError when a process
        broke down.
        """
        while not self.over and not (until is not None and until()):
            self._step()

    @property
    def over(self) -> bool:
        """Whether nothing more will happen: diverged, stuck, or every process has ended."""
        return (
            self.diverged is not None or self.stuck is not None or all(group.empty for group in self._groups)
        )

    def total_events(self) -> int:
        """Events consumed so far by all domains."""
        return self._past_events + sum(domain.count() for domain in self._live.values())

    def close(self) -> None:
        """End every process of the replay and give everything back. Doing so again does nothing."""
        for group in self._groups:
            group.kill()
        for domain in list(self._live.values()):
            self._finish(domain)
        for key in list((self._selector.get_map() or {}).values()):
            self._selector.unregister(key.fileobj)
            if isinstance(key.fileobj, Channel):
                key.fileobj.close()
        for descriptor in self._pidfds.values():
            os.close(descriptor)
        self._pidfds.clear()
        self._selector.close()
        if self._owns_contents:
            self.contents.close()
        if self._page is not None:
            self._turns = None
            try:
                self._page.close()
            except BufferError:
                os.close(self._page.fd)
            self._page = None

    # ---- one step ----

    def _step(self) -> None:
        waiting = any(domain.waiting().number is not None for domain in self._live.values())
        for key, _events in self._selector.select(_TURN_TICK if waiting else _TICK):
            key.data(key.fileobj)
        if self._error is not None:
            raise self._error
        if not self.over:
            self._look()

    def _look(self) -> None:
        """What no message tells: ended processes that never spoke, output turns, and lack of progress."""
        now = time.monotonic()
        if now - self._last_look >= _TICK:
            self._reap()
        assert self._turns is not None
        waiting = [domain.waiting() for domain in self._live.values()]
        if any(one.number is not None for one in waiting):
            self._turns.look(waiting, self._more_expected, self._watchdog.idle > _IDLE_TURN)
        if now - self._last_look >= _CPU_EVERY or self._last_look == 0.0:
            self._last_look = now
            self._end_killed(now)
            self._watch_progress(now)

    def _end_killed(self, now: float) -> None:
        """Where a log is over, tasks that go on are those that somebody killed while it was recorded."""
        for domain in list(self._live.values()):
            moves = any(end.status == "execed" and end.code for end in domain.info.ends)
            if domain.count() < domain.total or domain.paused or moves or self._executes(domain):
                self._log_over.pop(domain.number, None)
            elif now - self._log_over.setdefault(domain.number, now) >= _LOG_OVER and domain.processes:
                self._log_ended(domain)

    def _executes(self, domain: LiveDomain) -> bool:
        """Whether a process of the domain is on its way to another program."""
        return any(
            child not in self.domains and self._may_come(child)
            for child in self._execs.get(domain.number, {})
        )

    def _watch_progress(self, now: float) -> None:
        if any(domain.paused for domain in self._live.values()):
            return
        used = watchdog.usage(self._pids)
        progress = (self.total_events(), len(self.domains), len(self._pids))
        free = self._echo is None or watchdog.writable(fd for fd in self._echo if _is_open(fd))
        if self._watchdog.look(now, progress, used, free, self._longest_gap):
            self.stuck = Stuck(self._timeout, tuple(self._live.values()))

    def _longest_gap(self) -> float:
        return max((domain.recorded_gap() for domain in self._live.values()), default=0.0)

    def _more_expected(self) -> bool:
        """Whether a domain is being made: its parent is past that event, but it has not spoken yet."""
        for parent in self.domains.values():
            count = parent.count()
            children = (parent.feeder.children, self._execs.get(parent.number, {}))
            for child, event in ((child, event) for made in children for child, event in list(made.items())):
                if event < count and child not in self.domains and self._may_come(child):
                    return True
        return False

    def _may_come(self, domain: int) -> bool:
        return domain in self.reader.domains and self.scope.wants(domain)

    # ---- processes ----

    def _watch(self, pid: int) -> None:
        """Wake up when this process ends."""
        if pid in self._pidfds:
            return
        with suppress(OSError):
            self._pidfds[pid] = os.pidfd_open(pid)
            self._selector.register(self._pidfds[pid], selectors.EVENT_READ, lambda _fd: self._reap())

    def _reap(self) -> None:
        for group in self._groups:
            for ended in group.reap():
                self._ended(ended)

    def _ended(self, ended: Ended) -> None:
        descriptor = self._pidfds.pop(ended.pid, None)
        if descriptor is not None:
            self._selector.unregister(descriptor)
            os.close(descriptor)
        number = self._pids.pop(ended.pid, None)
        domain = self.domains.get(number) if number is not None else None
        if domain is None:
            if not self.domains and all(group.empty for group in self._groups) and self._error is None:
                self._error = CoreError(
                    f"the core ended before it began, {_how(ended)}{self._complaint(ended)}",
                    "Install rr-py again; see `rr-py doctor`.",
                )
            return
        self._drain(domain)
        domain.processes.discard(ended.pid)
        if ended.pid not in self._killed and self.diverged is None and self._error is None:
            self._error = self._broken(domain, ended)
        if not domain.processes:
            self._finish(domain)

    def _finish(self, domain: LiveDomain) -> None:
        """The last process of a domain is gone."""
        domain.finish()
        if self._live.pop(domain.number, None) is not None:
            self._past_events += domain.count()

    def _drain(self, domain: LiveDomain) -> None:
        """Take in what the core said before a process of the domain ended."""
        for channel in list(domain.channels):
            self._on_control(domain.number, channel)

    def _broken(self, domain: LiveDomain, ended: Ended) -> Exception | None:
        """The error if a process ended otherwise than the recorded one, None if all is well."""
        as_recorded = ("signaled", ended.signal) if ended.signal else ("exited", ended.code)
        if any((end.status, end.code) == as_recorded for end in domain.info.ends):
            return None
        if not ended.signal and (domain.count() >= domain.total or (domain.processes and ended.code != 125)):
            return None
        remedy = "This is a defect in rr-py: please report it with the trace."
        if ended.signal == signal.SIGKILL:
            remedy = "Somebody killed it, or memory ran out: replay again."
        return CoreError(
            f"process {domain.info.pid} ({domain.info.comm}): its replay broke down {_how(ended)} "
            f"after event {domain.count()} of {domain.total} in domain {domain.number}"
            f"{self._complaint(ended)}",
            remedy,
        )

    def _complaint(self, ended: Ended) -> str:
        """What the core said about it, to be put behind a sentence."""
        said = next((text for group in self._groups if (text := group.complaint())), "")
        return f": {said}" if said and ended.code == 125 else ""

    def _end_domain(self, domain: LiveDomain) -> None:
        """End the processes of one domain."""
        for pid in domain.processes:
            self._killed.add(pid)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # ---- messages ----

    def _on_hello(self, channel: Channel) -> None:
        while (received := channel.receive()) is not None:
            if received.message.type != abi.Msg.NEED_RING or len(received.fds) != 1:
                for descriptor in received.fds:
                    os.close(descriptor)
                continue
            control = Channel.adopt(received.fds[0])
            try:
                self._need_ring(control, received)
            except (TraceError, NothingToReplayError) as error:
                control.send(Message(abi.Msg.NEED_RING, -errno.EIO))
                control.close()
                self._error = self._error or error

    def _need_ring(self, control: Channel, received: Received) -> None:
        message = received.message
        if message.d == _COPY:
            if self.adopter is not None:
                self.adopter(control, received)
            else:
                control.close()
            return
        info = self.reader.domains.get(message.a)
        if info is None or not self.scope.wants(message.a):
            # Of another scope, or unrecorded from here on (a 32-bit program): it ends here, as is right.
            self._killed.add(received.sender or message.pid)
            control.send(Message(abi.Msg.NEED_RING, -errno.ENOENT))
            control.close()
            return
        pid = received.sender or message.pid
        domain = self.domains.get(message.a)
        if domain is None or domain.finished:
            domain = LiveDomain.create(
                self.reader, info, self._filter(info.domain), self.stops.get(info.domain, NEVER)
            )
            self.domains[info.domain] = self._live[info.domain] = domain
            if self.debugging:
                debug_area(domain.ring).enabled = 1
        plan = -1
        size = 0
        try:
            if message.c:
                boot = info.boot
                if boot is None:
                    raise NothingToReplayError(
                        f"the trace does not hold the program image of domain {info.domain}", "Record again."
                    )
                self._offer(boot, info.domain)
                data = bootplan.plan(boot)
                plan, size = bootplan.to_memfd(data), len(data)
            fds = (domain.ring_fd, plan) if plan >= 0 else (domain.ring_fd,)
            control.send(Message(abi.Msg.NEED_RING, 0, a=size), fds=fds)
        finally:
            if plan >= 0:
                os.close(plan)
        before = self._pids.get(pid)
        if message.d == _JOINING and not message.c and before is not None and before != domain.number:
            self._moved.add((pid, before))
            old = self.domains[before]
            domain.tasks.update({task: one for task, one in old.tasks.items() if one.real_pid == pid})
        self._join(domain, pid, message.b, control)
        self._made(info.parent_domain, info.domain)

    def _join(self, domain: LiveDomain, pid: int, recorded_pid: int, control: Channel) -> None:
        """A process has a control socket of its own in a domain."""
        recorded = recorded_pid or domain.info.pid
        domain.tasks[recorded] = Task(recorded, recorded, pid, pid)
        self._live_in(domain, pid)
        number = domain.number
        domain.channels.add(control)
        self._selector.register(
            control, selectors.EVENT_READ, lambda channel: self._on_control(number, channel)
        )

    def _live_in(self, domain: LiveDomain, pid: int) -> None:
        """A process now lives in a domain; it leaves the one it was in before."""
        before = self._pids.get(pid)
        if before == domain.number:
            return
        if before is None:
            self.processes += 1
        else:
            old = self.domains[before]
            old.processes.discard(pid)
            if not old.processes:
                self._finish(old)
        self._pids[pid] = domain.number
        domain.processes.add(pid)
        self._watch(pid)

    def _made(self, parent: int, child: int) -> None:
        """An ancestor is replayed only as far as it is needed."""
        needed = self._needed.get(parent)
        if needed is not None:
            needed.discard(child)
            if not needed and parent in self.domains:
                self._end_domain(self.domains[parent])

    def _filter(self, number: int) -> ChunkFilter | None:
        if self.debugging or self._echo is None or self.scope.echoed is None:
            return None
        if number not in self.scope.echoed:
            return ProcessFilter(None, None)
        own = self.reader.domains[number].pid == self.scope.pid
        return ProcessFilter(self.scope.pid, self._numbering, others_shown=own)

    def _on_control(self, number: int, channel: Channel) -> None:
        if channel.fileno() < 0:
            return
        domain = self.domains[number]
        while (received := channel.receive()) is not None:
            for descriptor in received.fds:
                os.close(descriptor)
            self._on_message(domain, channel, received)
        if channel.closed:
            self._selector.unregister(channel)
            domain.channels.discard(channel)
            channel.close()

    def _on_message(self, domain: LiveDomain, channel: Channel, received: Received) -> None:
        message = received.message
        match message.type:
            case abi.Msg.NEED_FILE:
                self._need_file(domain, channel, message)
            case abi.Msg.TASK:
                domain.tasks[message.a] = Task(message.a, message.b, message.c, message.pid)
                # Sockets are read in any order: by now the process may have executed another program, whose
                # domain has a higher number.
                if (message.pid, domain.number) in self._moved:
                    self.domains[self._pids[message.pid]].tasks[message.a] = domain.tasks[message.a]
                elif self._pids.get(message.pid, 0) < domain.number:
                    self._live_in(domain, message.pid)
            case abi.Msg.DEATH:
                self._killed.add(message.pid)
            case abi.Msg.STUCK:
                self._on_stuck(domain)

    def _offer(self, boot: BootImage, domain: int) -> None:
        """Open the files of an image before it asks; what cannot be had is told once it does."""
        assert self._page is not None
        for number in {mapping.file: None for mapping in boot.mappings if mapping.file}:
            if number not in self._offered:
                self._offered.add(number)
                with suppress(Exception):
                    content = self.contents.get(number, domain, 0, shared=False)
                    if content.lasting:
                        self._page.offer(number, content.fd, content.offset)

    def _need_file(self, domain: LiveDomain, channel: Channel, message: Message) -> None:
        shared = bool(message.d >> 32 & _MAP_SHARED)
        try:
            content = self.contents.get(message.a, domain.number, message.b, shared, as_it_is=message.c == 0)
        except Exception as error:
            self._error = self._error or error
            channel.send(Message(abi.Msg.NEED_FILE, -errno.ENOENT))
            return
        if content.lasting and message.a not in self._offered and self._page is not None:
            self._offered.add(message.a)
            self._page.offer(message.a, content.fd, content.offset - message.b)
        channel.send(Message(abi.Msg.NEED_FILE, 0, a=content.offset), fds=(content.fd,))

    def _on_stuck(self, domain: LiveDomain) -> None:
        if domain.finished:
            return
        reason = domain.ring.control.diverged
        if reason == abi.Divergence.END:
            self._log_ended(domain)
        elif reason != abi.Divergence.NONE and self.diverged is None:
            self.diverged = domain

    def _log_ended(self, domain: LiveDomain) -> None:
        """No event is left: end what still runs, and note where the recording had not got to the end."""
        ends = domain.info.ends
        if not ends or ends[-1].status == "lost" or domain.feeder.failure is not None:
            self.incomplete.append(domain)
        self._end_domain(domain)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _how(ended: Ended) -> str:
    if ended.signal:
        with suppress(ValueError):
            return f"with {signal.Signals(ended.signal).name}"
        return f"with signal {ended.signal}"
    return f"with status {ended.code}"
