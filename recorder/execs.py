"""The execve of a recorded process: traced for just this moment, so that the new image gets the core.

The core asks before it calls execve; the thread is seized and answered. From then on everything is driven
by what waitpid reports, never waited for: an execve may take long, fail, or be overtaken by a SIGKILL.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from interfaces import abi
from interposer import procfs, ptrace
from interposer.channel import Message
from interposer.errors import Gone, InjectError
from recorder import images
from recorder.domains import Process
from recorder.files import FileTable
from tracefile import DomainStart, TraceWriteError


class _Pending:
    """A thread that is traced on its way into execve.

    `tasks` of its domain end if that succeeds. `mask` are the signals the new program shall have blocked;
    None: those that are. (The core blocks all, so that none gets lost between the old program and the new
    one.)
    """

    __slots__ = ("leaving", "mask", "new_domain", "own_pid", "own_tid", "process", "tasks", "tid")

    def __init__(self, tid: int, process: Process, message: Message) -> None:
        self.tid = tid
        self.own_tid = message.tid
        self.own_pid = message.pid
        self.process = process
        self.new_domain = message.a
        self.tasks = message.b
        self.mask = message.c if message.d else None
        self.leaving = False


class Execs:
    """All execve calls under way.

    `started` is called with the process id and the new domain when an image got the core; `report` with a
    domain, a process and a text; `add_domain` takes what the trace is to say of the image; `left` is
    called with the domain and the id of a vfork's child that has shared its parent's log (and its control
    socket) until then.
    """

    def __init__(
        self,
        core: images.Core,
        files: FileTable,
        add_domain: Callable[[DomainStart], None],
        started: Callable[[int, int], None],
        report: Callable[[int, int, str], None],
        left: Callable[[int, int], None],
    ) -> None:
        self._core = core
        self._files = files
        self._add_domain = add_domain
        self._started = started
        self._report = report
        self._left = left
        self._pending: dict[int, _Pending] = {}
        self._programs: images.Programs = {}

    def __bool__(self) -> bool:
        return bool(self._pending)

    def involves(self, process: Process) -> bool:
        """Whether a thread of `process` is on its way into execve."""
        return any(pending.process is process for pending in self._pending.values())

    def traces(self, tid: int) -> bool:
        """Whether this thread is on its way into execve."""
        return tid in self._pending

    def announced(self, process: Process, message: Message, sender: int) -> bool:
        """A process is about to call execve: trace the thread and let it. False where tracing is refused.

        `sender` is its process as seen from here: a vfork's child speaks on its parent's socket.
        """
        tid = host_tid(sender or process.pid, message.pid, message.tid)
        try:
            ptrace.seize(tid)
        except Gone:
            process.channel.send(Message(abi.Msg.EXEC, -1))
            return True
        except OSError:
            return False
        self._pending[tid] = _Pending(tid, process, message)
        process.channel.send(Message(abi.Msg.EXEC))
        return True

    def failed(self, process: Process, message: Message, sender: int) -> None:
        """The execve failed: stop tracing, then answer. Stopping is reported by waitpid."""
        tid = host_tid(sender or process.pid, message.pid, message.tid)
        pending = self._pending.get(tid)
        if pending is None:
            process.channel.send(Message(abi.Msg.EXEC_FAILED))
            return
        pending.leaving = True
        try:
            ptrace.interrupt(tid)
        except (Gone, OSError):
            self._forget(pending)
            process.channel.send(Message(abi.Msg.EXEC_FAILED))

    def handle(self, wait: ptrace.Wait) -> int | None:
        """Act on what waitpid said. Returns the wait status of a process that ended, else None."""
        pending = self._pending.get(wait.tid)
        try:
            if wait.ended:
                if pending is not None:
                    self._forget(pending)
                return wait.status
            if wait.is_exec:
                pending = self._pending.get(ptrace.former_tid(wait.tid), pending)
            if pending is None:
                ptrace.detach(wait.tid, wait.forward)
            elif wait.is_exec:
                self._forget(pending)
                self._replaced(wait.tid, pending)
            elif pending.leaving:
                self._forget(pending)
                ptrace.detach(wait.tid, wait.forward)
                pending.process.channel.send(Message(abi.Msg.EXEC_FAILED))
            elif wait.is_group_stop:
                ptrace.listen(wait.tid)
            else:
                ptrace.resume(wait.tid, wait.forward)
        except Gone as gone:
            return gone.status
        return None

    def _forget(self, pending: _Pending) -> None:
        self._pending.pop(pending.tid, None)

    def _replaced(self, pid: int, pending: _Pending) -> None:
        """The execve succeeded: close the old log's part of this process, and start the new image."""
        process = pending.process
        if pending.own_pid == process.own_pid:
            process.execed = True
        else:
            self._left(process.domain.number, pid)
        if pending.mask is not None:
            ptrace.set_mask(pid, pending.mask)
        registers = ptrace.get_registers(pid)
        number = registers.orig_rax
        control = process.domain.ring.control if process.domain.ring is not None else None
        parent = images.Parent(process.domain.number, control.event_count if control is not None else None)
        try:
            with images.memory_of(pid) as memory:
                new = images.examine(
                    pid,
                    registers,
                    pending.new_domain,
                    parent,
                    self._files,
                    self._core,
                    memory,
                    self._programs,
                )
                images.carry(new, self._core, memory)
        except (InjectError, OSError, TraceWriteError, Gone) as error:
            self._append_execed(pending, number, 0)
            if isinstance(error, Gone):
                raise
            exe = procfs.link(pid, "exe") or "a new program"
            ptrace.detach(pid)
            if isinstance(error, TraceWriteError):
                raise
            why = error.message if isinstance(error, InjectError) else error.strerror or str(error)
            self._report(process.domain.number, pid, f"process {pid} goes on unrecorded in {exe}: {why}")
            return
        self._append_execed(pending, number, pending.new_domain)
        self._started(pid, pending.new_domain)
        try:
            ptrace.detach(pid)
        finally:
            self._add_domain(new.start())
        privilege = images.lost_privilege(new) if new.program.set_id else None
        if privilege:
            self._report(pending.new_domain, pid, privilege)

    def _append_execed(self, pending: _Pending, number: int, new_domain: int) -> None:
        """Write the last event of the old program, in the place of the thread that is no more.

        `new_domain` 0 says that what follows is not recorded.
        """
        domain = pending.process.domain
        if domain.ring is None or domain.ring.control.state != abi.RingState.RECORDING:
            return
        control = domain.ring.control
        now = time.monotonic_ns()
        domain.drain.append(
            abi.Event(
                task=pending.own_tid,
                kind=abi.Kind.EXECED,
                nr=number & 0xFFFF,
                args=(new_domain, 0, 0, 0, 0, 0),
                time_in=now,
                time_out=now,
            )
        )
        control.ntasks = max(control.ntasks - pending.tasks, 0)
        domain.ring.free_baton()


def host_tid(pid: int, own_pid: int, own_tid: int) -> int:
    """Thread `own_tid` as it is called here; its process is `pid` here and `own_pid` in its namespace."""
    if pid == own_pid:
        return own_tid
    try:
        for name in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{name}/status") as file:
                for line in file:
                    if line.startswith("NSpid:") and int(line.split()[-1]) == own_tid:
                        return int(name)
    except (OSError, ValueError):
        pass
    return own_tid
