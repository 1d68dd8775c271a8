"""Recording at library interfaces: the program under Frida, its log drained into a trace."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from interfaces import abi
from interfaces.errors import ExitStatus
from interfaces.libspec.load import ADDED
from interfaces.libspec.model import Interface
from interfaces.libspec.recorded import UNRECORDED, described
from interposer.library.control import CONTROL_SIZE
from interposer.library.engine import RECORD, SLOT_SIZE, SLOTS, Engine, Plan
from interposer.library.image import buffer_kind
from recorder.errors import RecordError
from recorder.library_family import Family, told
from recorder.library_files import entries
from recorder.options import RecordOptions, RecordResult
from tracefile import DomainEnd, DomainStart, Report, TraceWriteError, TraceWriter

_DOMAIN = 1
_TICK_NS = 20_000_000
_FUTEX_WAIT, _FUTEX_WAKE, _SYS_FUTEX = 0, 1, 202


class Drain:
    """Hands full and partly filled slots of the ring to `sink(first_event, events, payload)`."""

    def __init__(self, engine: Engine, sink: Callable[[int, bytes, bytes], None]) -> None:
        self._memory = memoryview(engine.memory)
        self._slots = [
            abi.Slot.from_buffer(engine.memory, CONTROL_SIZE + i * SLOT_SIZE) for i in range(SLOTS)
        ]
        self._base = [ctypes.addressof(slot) for slot in self._slots]
        self._sink = sink
        self._at = 0
        self._events = 0
        self._payload = 0
        self.total = 0

    def step(self) -> bool:
        """Take what is there; True when a whole slot was taken, so that more may be."""
        slot = self._slots[self._at]
        state = slot.state
        if state == abi.SlotState.FREE:
            return False
        count = slot.nevents
        if count > self._events:
            start = CONTROL_SIZE + self._at * SLOT_SIZE
            events = self._memory[start + abi.SLOT_EVENTS_OFF :][self._events * 96 : count * 96]
            last = abi.Event.from_buffer_copy(events, (count - self._events - 1) * 96)
            end = last.payload_off + last.payload_len
            payload = bytes(self._memory[start + abi.SLOT_PAYLOAD_OFF :][self._payload : end])
            self._sink(slot.first_event + self._events, _rebased(events, self._payload), payload)
            self.total += count - self._events
            self._events, self._payload = count, end
        if state != abi.SlotState.SEALED or slot.nevents > self._events:
            return False
        self._events = self._payload = 0
        slot.state = abi.SlotState.FREE
        _futex(self._base[self._at], _FUTEX_WAKE, 1 << 30)
        self._at = (self._at + 1) % SLOTS
        return True

    def all(self) -> None:
        while self.step():
            pass

    def close(self) -> None:
        self._slots.clear()
        self._memory.release()


def _rebased(events: memoryview, by: int) -> bytes:
    """Events whose payload offsets count from the chunk's own payload."""
    if by == 0:
        return bytes(events)
    from interfaces.arrays import numpy

    rows = numpy().frombuffer(bytes(events), dtype=abi.EVENT_DTYPE).copy()
    rows["payload_off"] -= by
    return bytes(rows.tobytes())


def _futex(address: int, operation: int, value: int, timeout_ns: int = 0) -> None:
    time_spec = (ctypes.c_long * 2)(0, timeout_ns)
    ctypes.CDLL(None).syscall(
        ctypes.c_long(_SYS_FUTEX),
        ctypes.c_void_p(address),
        ctypes.c_long(operation),
        ctypes.c_long(value),
        time_spec if timeout_ns else None,
    )


def record_library(
    options: RecordOptions,
    interfaces: Callable[[], Sequence[Interface]],
    modules: list[tuple[int, int, str]] | None = None,
    nested: frozenset[str] = frozenset(),
) -> RecordResult:
    """Run `options.command` and log what crosses the interfaces, until the program ends.

    `interfaces` is called while Frida enters the program, which waits. At the C library, programs that it
    starts are recorded, too. `modules` is filled with what the program loaded: address, size, path.
    `nested`: see `Plan`. Raises, before the program has run: EngineError, RecordError, SpecError,
    TraceWriteError.
    """
    if not options.command:
        raise RecordError("no program to record", "Name one.", ExitStatus.CANNOT_RUN)
    engine = Engine(RECORD, SLOTS * SLOT_SIZE)
    try:
        env = os.environ if options.env is None else options.env
        cwd = str(options.cwd) if options.cwd is not None else os.getcwd()
        pid = engine.start(options.command, env, cwd)
        try:
            plan = Plan(interfaces(), RECORD, nested)
            engine.place(plan)
            meta = _meta(options, plan, cwd)
            writer = (
                TraceWriter.create_numbered(Path.cwd(), meta)
                if options.trace is None
                else TraceWriter.create(options.trace, meta)
            )
        except BaseException:
            engine.kill()
            raise
        writer.add_domain(
            DomainStart(
                domain=_DOMAIN,
                kind="exec",
                pid=pid,
                ppid=os.getpid(),
                time=time.monotonic_ns(),
                comm=os.path.basename(options.command[0])[:15],
                exe=_exe(pid),
                cwd=cwd,
                argv=list(options.command),
                envp=[f"{name}={value}" for name, value in env.items()],
            )
        )
        result = _Recording(options, engine, writer).run()
        if modules is not None:
            modules += engine.seen_modules
        return result
    finally:
        engine.close()


class _Recording:
    """The drained ring of one running program."""

    def __init__(self, options: RecordOptions, engine: Engine, writer: TraceWriter) -> None:
        self.options, self.engine, self.writer = options, engine, writer
        self.problem = ""
        self.drain = Drain(engine, self._events)
        self.family = Family(engine)

    def run(self) -> RecordResult:
        engine, writer = self.engine, self.writer
        sealed = ctypes.addressof(engine.control) + type(engine.control).sealed.offset
        with _signals(engine.pid):
            engine.resume()
            while True:
                seen = engine.control.sealed
                self.drain.all()
                entering = self.family.step()
                self._domains()
                status = engine.status
                if status is not None and not entering and not engine.children():
                    break
                if engine.control.sealed == seen:
                    _futex(sealed, _FUTEX_WAIT, seen, _TICK_NS)
        self.drain.all()
        total = self.drain.total
        self.drain.close()
        code = os.waitstatus_to_exitcode(status)
        self._domains()
        self._notes()
        try:
            for entry in entries(self._files()):
                writer.add_file(entry)
            for end in self.family.ends():
                writer.end_domain(end)
            writer.end_domain(
                DomainEnd(
                    domain=_DOMAIN,
                    pid=engine.pid,
                    status="exited" if code >= 0 else "signaled",
                    code=abs(code),
                    time=time.monotonic_ns(),
                )
            )
            final = {"status": status, "time_ns": time.time_ns(), "problem": self.problem}
            writer.close({**final, "earnest": engine.control.lives_done})
        except TraceWriteError as error:
            self.problem = self.problem or error.message
        return RecordResult(
            trace=writer.path,
            status=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            complete=not self.problem,
            problem=self.problem,
            processes=1 + self.family.entered,
            events=total,
            size=writer.bytes_written,
        )

    def _files(self) -> set[str]:
        """What the programs ran from, without libraries whose functions come from the log."""
        replaced = {
            str(news["path"])
            for name, news in self.engine.loaded.items()
            if not {"libc.so.6", "libpthread.so.0"} & set(self._libraries(name))
        }
        return ({path for *_, path in self.engine.seen_modules} | self.family.files) - replaced

    def _libraries(self, name: str) -> tuple[str, ...]:
        return next((tuple(i.libraries) for i in self.engine.plan.interfaces if i.name == name), ())

    def _domains(self) -> None:
        while self.family.domains:
            self.writer.add_domain(self.family.domains.pop(0))

    def _events(self, first: int, events: bytes, payload: bytes) -> None:
        if self.problem:
            return
        self.family.see(events, payload)
        try:
            self.writer.add_events(_DOMAIN, first, events, payload)
        except TraceWriteError as error:
            self.problem = error.message
            self.options.notify(f"{error.message}. {error.remedy}")

    def _notes(self) -> None:
        engine = self.engine
        engine.read_news()
        for interface in engine.plan.interfaces:
            found = engine.loaded.get(interface.name)
            if interface.name in ADDED:
                continue
            if found is None:
                self._tell(
                    f"the program never loaded {' or '.join(interface.libraries)}: nothing of the interface "
                    f"{interface.name} was recorded"
                )
                continue
            if found["missing"]:
                self._tell(
                    f"{found['path']} has no {', '.join(found['missing'][:8])}"
                    f"{' ...' if len(found['missing']) > 8 else ''}, "
                    f"which the interface {interface.name} names"
                )
            for name, what, detail in found["problems"]:
                self._tell(f"{interface.name}: {name} is not recorded ({what}: {detail})")
            if lacking := sorted(set(engine.lacking.get(interface.name, []))):
                names = ", ".join(lacking[:8]) + (" ..." if len(lacking) > 8 else "")
                self._tell(
                    f"the program imports functions that the interface {interface.name} lacks "
                    f"({len(lacking)}): {names}. Where they touch what the others made, replay fails: add "
                    "them to the file, or record at libc alone"
                )
        if engine.control.broken:
            name = engine.plan.names()[engine.control.broken][1]
            self._tell(
                f"{name} changed memory that its interface says it leaves alone: the replay will lack it"
            )
        if engine.control.unseen:
            self._tell(
                f"{engine.control.unseen} callbacks on threads that the library made were not recorded"
            )
        for path in engine.undescribed:
            self._tell(
                f"{path} does not describe its functions: what RDTSC or RDRAND instructions in it give "
                "is not recorded"
            )
        if engine.control.untrapped:
            self._tell(f"{engine.control.untrapped} RDTSC or RDRAND instructions too many are not recorded")
        if engine.control.inexact:
            self._tell(
                f"{_signals_of(engine.control.inexact)} while the program computed for 0.1 s or more without "
                "a call: replay delivers each after the same time, not at the same instruction"
            )
        if engine.control.lost:
            self._tell(f"{_signals_of(engine.control.lost)} faster than the program took them, and were lost")
        cut = engine.control.cut + (engine.control.out_lock != 0)
        if cut:
            self._tell(
                f"{cut} {'process was' if cut == 1 else 'processes were'} killed within a call that wrote to "
                "the output: what of it had been written is not in the replay"
            )
        for text in told(self.family.unrecorded):
            self._tell(text, UNRECORDED)
        for error in engine.errors:
            self._tell(error)

    def _tell(self, text: str, code: int = 0) -> None:
        self.options.notify(text)
        with suppress(TraceWriteError):
            self.writer.add_report(
                Report(time=time.monotonic_ns(), domain=_DOMAIN, pid=self.engine.pid, code=code, text=text)
            )


def _signals_of(count: int) -> str:
    return "1 signal came" if count == 1 else f"{count} signals came"


def _meta(options: RecordOptions, plan: Plan, cwd: str) -> Mapping[str, Any]:
    system = os.uname()
    return {
        "version": options.version,
        "abi": abi.ABI_VERSION,
        "command": list(options.command),
        "cwd": cwd,
        "time_ns": time.time_ns(),
        "monotonic_ns": time.monotonic_ns(),
        "hostname": system.nodename,
        "kernel": f"{system.sysname} {system.release}",
        "library": {
            **described(plan.interfaces),
            "buffer": buffer_kind(),
        },
    }


def _exe(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


@contextmanager
def _signals(pid: int) -> Iterator[None]:
    """The terminal's signals reach the program itself; what is sent to this process is passed on."""

    def forward(number: int, _frame: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    before: dict[int, Any] = {}
    for ignored in (signal.SIGINT, signal.SIGQUIT):
        before[ignored] = signal.signal(ignored, signal.SIG_IGN)
    for passed in (signal.SIGTERM, signal.SIGHUP):
        before[passed] = signal.signal(passed, forward)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
