"""The recorder's loop, with tests in the core's place: messages and deaths in every order."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from interfaces import abi
from interposer.channel import Channel, Message
from interposer.shared import GlobalPage, Ring
from recorder.files import FileTable
from recorder.images import Core
from recorder.supervisor import Supervisor
from recorder.terminal import Signals
from tracefile import DomainEnd, DomainStart, Report, TraceWriteError

PROGRAM = 4242


@dataclass
class Writer:
    """What a trace would hold; `full` makes it fail like a full disk."""

    events: list[tuple[int, int]] = field(default_factory=list)
    domains: list[DomainStart] = field(default_factory=list)
    ends: list[DomainEnd] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    full: bool = False

    def _check(self) -> None:
        if self.full:
            raise TraceWriteError("trace.bin", 28)

    def add_events(self, domain: int, first_event: int, events: bytes, payload: bytes) -> None:
        self._check()
        self.events += [(domain, first_event + i) for i in range(len(events) // abi.EVENT_SIZE)]

    def add_domain(self, start: DomainStart) -> None:
        self._check()
        self.domains.append(start)

    def end_domain(self, end: DomainEnd) -> None:
        self._check()
        self.ends.append(end)

    def add_report(self, report: Report) -> None:
        self._check()
        self.reports.append(report)

    def add_file(self, entry: object) -> None:
        self._check()

    def add_blob(self, digest: str, chunks: object) -> None:
        self._check()


class FakeCore:
    """The core's side of the protocol, for a process of our own invention."""

    def __init__(self, hello: socket.socket) -> None:
        self.hello = Channel(hello)
        self.control: Channel | None = None
        self.controls: list[Channel] = []

    def greet(self, domain: int, ring_fd: int | None, *, fork: bool = False, pid: int = PROGRAM) -> None:
        self.control, theirs = Channel.pair()
        self.controls.append(self.control)
        fds = (theirs.fileno(),) if ring_fd is None else (ring_fd, theirs.fileno())
        kind = abi.Msg.HELLO_FORK if fork else abi.Msg.HELLO_EXEC
        shares = ring_fd is None
        assert self.hello.send(
            Message(kind, pid=pid, tid=pid, a=domain, b=1, c=pid - 1, d=int(shares)), fds=fds
        )
        theirs.close()

    def say(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        assert self.control is not None
        assert self.control.send(message, fds=fds)

    def answer(self) -> Message:
        assert self.control is not None
        received = self.control.receive()
        assert received is not None
        return received.message

    def leave(self) -> None:
        """Die."""
        assert self.control is not None
        self.control.close()

    def fall_silent(self) -> None:
        """Die, but let the test still read what was answered."""
        assert self.control is not None
        self.control._socket.shutdown(socket.SHUT_WR)


def publish(ring: Ring, count: int) -> None:
    slot = ring.slot(0)
    slot.state = abi.SlotState.OPEN
    for _ in range(count):
        ring.events(0, slot.nevents, slot.nevents + 1)[:] = bytes(abi.Event(task=1, kind=1))
        slot.nevents += 1
        ring.control.event_count += 1


@dataclass
class Bench:
    writer: Writer
    supervisor: Supervisor
    core: FakeCore
    told: list[str]

    def ring(self) -> tuple[Ring, int]:
        ring, fd = Ring.create()
        ring.control.state = abi.RingState.RECORDING
        return ring, fd

    def run(self, status: int = 0) -> int:
        """A first program that ends at once, with what was said before it."""
        child = subprocess.Popen(["/bin/sh", "-c", f"exit {status}"])
        try:
            return os.waitstatus_to_exitcode(self.supervisor.run(child.pid))
        finally:
            child.returncode = status


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    hello, theirs = Channel.pair(credentials=True)
    writer, told = Writer(), list[str]()
    sink = cast(Any, writer)
    core = Core(cast(Any, None), 1000, abi.FD_IMAGE, True, False)
    page = GlobalPage()
    with Signals() as signals:
        supervisor = Supervisor(sink, FileTable(sink), core, hello, signals, told.append, page)
        fake = FakeCore(theirs)
        yield Bench(writer, supervisor, fake, told)
    page.close()
    for end in (hello, fake.hello, *fake.controls):
        end.close()


def test_a_greeting_that_comes_after_its_senders_death_is_recorded(bench: Bench) -> None:
    ring, fd = bench.ring()
    publish(ring, 3)
    ring.control.exited, ring.control.exit_code = 1, 5
    bench.core.greet(2, fd, fork=True)
    bench.core.leave()
    os.close(fd)
    assert bench.run() == 0
    assert [d.domain for d in bench.writer.domains] == [2]
    assert bench.writer.events == [(2, 0), (2, 1), (2, 2)]
    assert [(e.domain, e.status, e.code) for e in bench.writer.ends] == [(2, "exited", 5)]


def test_the_program_ends_with_its_own_status(bench: Bench) -> None:
    assert bench.run(7) == 7


def test_a_process_that_says_nothing_of_its_end_is_lost(bench: Bench) -> None:
    ring, fd = bench.ring()
    publish(ring, 1)
    bench.core.greet(2, fd, fork=True)
    bench.core.leave()
    bench.run()
    assert [(e.domain, e.status) for e in bench.writer.ends] == [(2, "lost")]


def test_the_signal_that_kills_a_process_is_known_from_its_announcement(bench: Bench) -> None:
    ring, fd = bench.ring()
    publish(ring, 1)
    bench.core.greet(2, fd, fork=True)
    bench.core.say(Message(abi.Msg.DEATH, a=11))
    bench.core.leave()
    bench.run()
    assert [(e.status, e.code) for e in bench.writer.ends] == [("signaled", 11)]


def test_a_child_in_its_parents_domain_keeps_the_log_open(bench: Bench) -> None:
    ring, fd = bench.ring()
    publish(ring, 1)
    bench.core.greet(2, fd, fork=True)
    parent = bench.core.control
    bench.core.greet(2, None, fork=True, pid=PROGRAM + 1)
    assert parent is not None
    parent.close()
    publish(ring, 1)
    bench.core.leave()
    bench.run()
    assert bench.writer.events == [(2, 0), (2, 1)]
    assert len(bench.writer.domains) == 1
    assert len(bench.writer.ends) == 2


def test_a_child_of_a_domain_that_ended_is_told_of(bench: Bench) -> None:
    bench.core.greet(9, None, fork=True)
    bench.run()
    assert len(bench.told) == 1
    assert "domain 9" in bench.told[0]


def test_a_killed_exec_is_no_news(bench: Bench) -> None:
    """The thread that announces an execve is gone before it can be traced."""
    _, fd = bench.ring()
    bench.core.greet(2, fd, fork=True)
    gone = subprocess.Popen(["/bin/true"])
    gone.wait()
    bench.core.say(Message(abi.Msg.EXEC, pid=gone.pid, tid=gone.pid, a=3))
    bench.core.fall_silent()
    bench.run()
    assert bench.core.answer().result == -1
    assert not bench.supervisor.problem
    assert bench.told == []


def test_a_mapped_file_gets_a_number(bench: Bench, tmp_path: Path) -> None:
    _, fd = bench.ring()
    bench.core.greet(2, fd, fork=True)
    with open(tmp_path / "data", "w+b") as file:
        file.write(b"x" * 5000)
        file.flush()
        bench.core.say(Message(abi.Msg.MAP_FILE, a=0x1000, b=5000, c=0, d=1 | 2 << 32), fds=(file.fileno(),))
    bench.core.fall_silent()
    bench.run()
    answer = bench.core.answer()
    assert (answer.a, answer.b, answer.c) == (1, 0, 0)


def test_a_full_disk_frees_the_program_and_is_told_once(bench: Bench) -> None:
    ring, fd = bench.ring()
    publish(ring, 1)
    ring.slot(0).state = abi.SlotState.SEALED
    bench.core.greet(2, fd, fork=True)
    bench.core.say(Message(abi.Msg.SEALED, a=0))
    bench.core.say(Message(abi.Msg.EXEC, a=3))
    bench.core.fall_silent()
    bench.writer.full = True
    assert bench.run(3) == 3
    assert "No space left" in bench.supervisor.problem
    assert ring.control.state == abi.RingState.UNRECORDED
    assert ring.control.stop_reason == abi.Stop.DISK
    assert ring.slot(0).state == abi.SlotState.FREE
    assert bench.core.answer().result == -1
    assert len(bench.told) == 1
    assert "goes on unrecorded" in bench.told[0]


def test_each_report_is_told_once_and_kept_each_time(bench: Bench) -> None:
    _, fd = bench.ring()
    bench.core.greet(2, fd, fork=True)
    for _ in range(3):
        bench.core.say(Message(abi.Msg.REPORT, a=abi.Report.SECCOMP))
    bench.core.say(Message(abi.Msg.REPORT, a=abi.Report.REFUSED, b=425))
    bench.core.leave()
    bench.run()
    assert len(bench.told) == 2
    assert "io_uring_setup" in bench.told[1]
    assert [r.code for r in bench.writer.reports] == [abi.Report.SECCOMP] * 3 + [abi.Report.REFUSED]


def test_nonsense_on_the_greeting_socket_harms_nobody(bench: Bench) -> None:
    null = os.open("/dev/null", os.O_RDONLY)
    assert bench.core.hello.send(Message(99, a=1), fds=(null,))
    assert bench.core.hello.send(Message(abi.Msg.HELLO_EXEC, a=1), fds=(null, null))
    assert bench.core.hello.send(Message(abi.Msg.HELLO_FORK, a=1))
    os.close(null)
    before = len(os.listdir("/proc/self/fd"))
    assert bench.run() == 0
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_program_that_overwrites_its_log_goes_on(bench: Bench) -> None:
    ring, fd = bench.ring()
    publish(ring, 1)
    ring.slot(0).nevents = 99999
    bench.core.greet(2, fd, fork=True)
    bench.core.leave()
    bench.run()
    assert bench.writer.events == []
    assert "overwritten" in bench.told[0]
    assert ring.control.state == abi.RingState.UNRECORDED
