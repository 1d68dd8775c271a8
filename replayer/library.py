"""Replaying a recording of library calls: the program under Frida, each call answered from the log."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

from interfaces import abi
from interfaces.errors import ExitStatus
from interfaces.libspec.load import ADDED
from interfaces.libspec.recorded import UNRECORDED, interfaces_of
from interposer.library.control import Control
from interposer.library.engine import REPLAY, Engine, Plan
from interposer.library.image import Image
from interposer.library.places import place
from replayer.errors import ReplayError
from replayer.library_family import Family
from replayer.library_files import check_files
from replayer.library_log import SIGNAL_PLACE, TIMED, Killed, flat_log, killed, signal_places
from replayer.options import DEFAULT_TIMEOUT, ReplayEnd, ReplayOptions, ReplayResult
from tracefile import TraceReader

_DOMAIN = 1
RESULT_DIFFERS = 10
LOG_ENDS = 8
_TICK = 0.02
_GONE_SECONDS = 1.0
"""How long the replay stands still before it is looked whether the process that is to go on has ended."""
_LEAST_LAST = 0.3
_UNKNOWN = (1 << 63) - 1
REASONS = {
    1: "another call",
    2: "another argument",
    4: "other input",
    8: "a call beyond the end of the recording",
    9: "another kind of event",
    10: "another result of a callback",
}


@dataclass(frozen=True, slots=True)
class LibraryDivergence:
    """Where a replay at a library interface went another way."""

    event: int
    task: int
    reason: str
    expected: str
    found: str
    stack: tuple[str, ...]

    def text(self) -> str:
        lines = [
            f"the replay diverged at event {self.event} (thread {self.task}): {self.reason}",
            f"  expected: {self.expected}",
            f"  found:    {self.found}",
        ]
        if self.stack:
            lines += ["  stack:", *(f"    {line}" for line in self.stack)]
        return "\n".join(lines)


def is_library_trace(meta: Mapping[str, Any]) -> bool:
    """Whether a trace was recorded at library interfaces."""
    return isinstance(meta.get("library"), dict)


def replay_library(options: ReplayOptions) -> ReplayResult:
    """Run the recorded program again with its libraries' functions answered from the log."""
    began = time.monotonic()
    with TraceReader.open(options.trace) as reader:
        info = reader.domains[_DOMAIN]
        if options.verify:
            raise ReplayError(
                "a recording of library calls holds no memory to compare",
                "Leave out --verify, or record without --interface and with --checksum.",
            )
        check_files(reader)
        engine = Engine(REPLAY, 0)
        try:
            env = dict(item.partition("=")[::2] for item in info.envp)
            cwd = info.cwd if os.path.isdir(info.cwd) else None
            with _output(options):
                engine.start(info.argv, env, cwd)
            try:
                plan = plan_of(reader.meta)
                dead = killed(reader, plan)
                notes = _fill(engine, reader, plan, dead)
                engine.control.task = info.pid
                engine.place(plan, Image(info.pid, kind=_buffer(reader.meta)))
            except BaseException:
                engine.kill()
                raise
            family = Family(engine, reader, info.pid, dead.last)
            return _Replaying(options, reader, engine, family, began, notes).run()
        finally:
            engine.close()


def _fill(engine: Engine, reader: TraceReader, plan: Plan, dead: Killed) -> list[str]:
    """Put the log into the memory that the program reads, and how the recorded program ended.

    Returns what the user should know of it.
    """
    places = signal_places(reader)
    control = engine.control
    size = engine.fill_area(chain(flat_log(reader, plan, dead), [places]))
    control.end = control.schedule = size - len(places)
    control.nschedule = len(places) // SIGNAL_PLACE.size
    end = reader.domains[_DOMAIN].end
    control.whole = reader.complete
    if reader.complete and end is not None and end.status == "signaled":
        control.ends_by = end.code
        lives = (reader.final or {}).get("earnest")
        control.most_done = lives if isinstance(lives, int) else _UNKNOWN
    timed = sum(where == TIMED for _, where, *_ in SIGNAL_PLACE.iter_unpack(places))
    if not timed:
        return []
    came = "1 signal" if timed == 1 else f"{timed} signals"
    return [f"{came} came while the program computed: each is delivered after the same time"]


def _buffer(meta: Mapping[str, Any]) -> int:
    """`Image.kind` of the first program."""
    return int(meta["library"].get("buffer", 0))


def _in_earnest(meta: Mapping[str, Any]) -> str:
    names = [item.name for item in interfaces_of(meta) if item.name not in ADDED]
    if "libc" in names:
        return ""
    return f"only calls of {' and '.join(names)} came from the log: all else the program did again"


def plan_of(meta: Mapping[str, Any]) -> Plan:
    """The interfaces a trace was recorded at, from their text in the trace."""
    return Plan(interfaces_of(meta), REPLAY)


class _Replaying:
    """One running replay."""

    def __init__(
        self,
        options: ReplayOptions,
        reader: TraceReader,
        engine: Engine,
        family: Family,
        began: float,
        notes: list[str],
    ) -> None:
        self.options, self.reader, self.engine, self.family = options, reader, engine, family
        self.began = began
        self.notes = [*([note] if (note := _in_earnest(reader.meta)) else []), *notes]
        self.notes += [report.text for report in reader.reports if report.code == UNRECORDED]
        self.last_seconds = _last_seconds(reader)

    def run(self) -> ReplayResult:
        engine = self.engine
        control = engine.control
        limit = DEFAULT_TIMEOUT if self.options.timeout is None else self.options.timeout
        engine.resume()
        moved, before = time.monotonic(), (-1, -1)
        called, calls = time.monotonic(), -1
        while True:
            knock = control.knock
            try:
                starting = self.family.step()
            except BaseException:
                engine.kill(self.family.living())
                raise
            status = self.family.main_status
            running = bool(engine.children()) or self.family.running()
            if status is not None and not starting and (not running or control.cursor >= control.end):
                engine.kill(self.family.living())
                return self._ended(os.waitstatus_to_exitcode(status))
            if control.diverged == LOG_ENDS and not self.reader.complete:
                self.notes.append(f"the recording stops here, after event {control.event_no}")
                engine.kill(self.family.living())
                return self._result(ReplayEnd.INCOMPLETE, 0, None, "")
            if control.diverged:
                return self._result(ReplayEnd.DIVERGED, ExitStatus.DIVERGED, None, self._divergence().text())
            if control.ends_by and control.cursor >= control.end and _as_far(control):
                if control.calls != calls:
                    called, calls = time.monotonic(), control.calls
                elif time.monotonic() - called > self.last_seconds:
                    os.kill(self.family.pid(control.task), control.ends_by)
                    called = time.monotonic()
            now = (control.event_no, _cpu(engine.pid))
            if now != before or starting:
                moved, before = time.monotonic(), now
            elif time.monotonic() - moved > _GONE_SECONDS and (text := self._gone()):
                return self._result(ReplayEnd.DIVERGED, ExitStatus.DIVERGED, None, text)
            elif time.monotonic() - moved > limit:
                text = (
                    f"the replay has made no progress for {limit:.0f} s, at event {control.event_no}: "
                    f"{self._expected(control.cursor)}"
                )
                return self._result(ReplayEnd.STUCK, ExitStatus.DIVERGED, None, text)
            control.wait_for_knock(knock, _TICK)

    def _ended(self, code: int) -> ReplayResult:
        control = self.engine.control
        if control.cursor < control.end and not control.diverged:
            self.notes.append(f"the program ended at event {control.event_no} of {self.reader.total_events}")
            left = True
        else:
            left = False
        for error in self.engine.errors:
            self.notes.append(error)
        if left and self.reader.complete:
            expected = self._expected(control.cursor)
            text = f"the program {_how(code)} early; the next recorded event is {expected}"
            return self._result(ReplayEnd.DIVERGED, ExitStatus.DIVERGED, None, text)
        end = ReplayEnd.FINISHED if self.reader.complete else ReplayEnd.INCOMPLETE
        return self._result(end, code if code >= 0 else 0, -code if code < 0 else None, "")

    def _gone(self) -> str:
        """What became of the process that is to make the next recorded call; "" where that is not known."""
        control = self.engine.control
        raw = self.engine.read_area(control.cursor, 96)
        if len(raw) < 96:
            return ""
        status = self.family.status(abi.Event.from_buffer_copy(raw).task)
        if status is None:
            return ""
        how = _how(os.waitstatus_to_exitcode(status))
        return (
            f"a program that the recorded one started {how} early, at event {control.event_no}; the next "
            f"recorded event is {self._expected(control.cursor)}"
        )

    def _divergence(self) -> LibraryDivergence:
        from interfaces.libspec.show import call_text

        control = self.engine.control
        names = self.engine.plan
        event = abi.Event()
        event.kind, event.nr, event.task, event.result = abi.Kind.LIBCALL, control.div_nr, control.div_task, 0
        event.flags = control.div_flags
        if control.diverged == RESULT_DIFFERS:
            event.result = control.div_found - (1 << 64) if control.div_found >> 63 else control.div_found
        for i in range(6):
            event.args[i] = control.div_args[i]
        regions = _regions(bytes(control.div_data[: control.div_len]))
        found = call_text(event, regions, names.functions(), result=False)
        expected = self._expected(control.div_offset)
        reason = REASONS.get(control.diverged, "?")
        if control.diverged in (2, 4) and control.div_arg < 64:
            reason += f" ({names.parameter(control.div_nr, control.div_arg)})"
        pid = self.family.pid(control.div_task) or self.engine.pid
        stack = [
            place(path, offset)
            for path, offset in self.engine.stack(_thread(pid, control.div_task == control.pid), pid)
        ]
        return LibraryDivergence(control.event_no, control.div_task, reason, expected, found, tuple(stack))

    def _expected(self, offset: int) -> str:
        from interfaces.libspec.show import call_text

        raw = self.engine.read_area(offset, 96 + 4096)
        if len(raw) < 96:
            return "the end of the recording"
        event = abi.Event.from_buffer_copy(raw)
        return call_text(event, _regions(raw[96 : 96 + event.payload_len]), self.engine.plan.functions())

    def _result(self, end: ReplayEnd, status: int, number: int | None, message: str) -> ReplayResult:
        engine = self.engine
        if end in (ReplayEnd.DIVERGED, ReplayEnd.STUCK):
            engine.kill(self.family.living())
        return ReplayResult(
            end=end,
            status=int(status),
            signal=number,
            events=int(engine.control.event_no),
            message=message,
            notes=tuple(self.notes),
            seconds=time.monotonic() - self.began,
        )


def _how(code: int) -> str:
    return f"exited with {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"


def _as_far(control: Control) -> bool:
    """Whether the program has made as many calls in earnest as the recorded one, as far as that is known."""
    return bool(control.lives_done >= control.most_done or control.most_done == _UNKNOWN)


def _last_seconds(reader: TraceReader) -> float:
    """How long the recorded program went on after its last logged call."""
    end, last = reader.domains[_DOMAIN].end, 0
    for chunk in reader.chunks(_DOMAIN):
        if len(chunk.events):
            last = max(last, int(chunk.events["time_out"].max()))
    return max(_LEAST_LAST, (end.time - last) / 1e9) if end is not None and last else _LEAST_LAST


def _regions(payload: bytes) -> list[abi.Region]:
    found = []
    try:
        for region in abi.iter_regions(payload):
            found.append(region)
    except ValueError:
        pass
    return found


def _cpu(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, IndexError):
        return -1


def _thread(pid: int, first: bool) -> int:
    """The thread that stands still: the program's first one, or the one that waits in pause()."""
    if first:
        return pid
    for name in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{name}/syscall", encoding="ascii") as file:
                if file.read().startswith("34 "):
                    return int(name)
        except OSError:
            continue
    return pid


@contextmanager
def _output(options: ReplayOptions) -> Iterator[None]:
    """Let what is started meanwhile inherit the descriptors that the options name as its output."""
    if options.echo and (options.stdout, options.stderr) == (1, 2):
        yield
        return
    nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    wanted = (options.stdout, options.stderr) if options.echo else (nothing, nothing)
    saved = (os.dup(1), os.dup(2))
    try:
        for number, descriptor in zip((1, 2), wanted, strict=True):
            os.dup2(descriptor, number)
        yield
    finally:
        for number, old in zip((1, 2), saved, strict=True):
            os.dup2(old, number)
            os.close(old)
        os.close(nothing)
