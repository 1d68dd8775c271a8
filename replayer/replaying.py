"""Replaying a recording from its beginning to its end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from interfaces.allocator import keep_freed_memory
from interfaces.errors import ExitStatus
from replayer import machine, scope
from replayer.errors import LibraryTraceError
from replayer.options import DEFAULT_TIMEOUT, ReplayEnd, ReplayOptions, ReplayResult
from replayer.supervisor import Stuck, Supervisor
from tracefile import DomainEnd, TraceReader

if TYPE_CHECKING:
    from replayer.divergence import DivergenceReport
    from replayer.domain import LiveDomain

_SHOWN = 8


def replay(options: ReplayOptions) -> ReplayResult:
    """Replay a trace, or one process of it, and say how that ended; no process is left behind in any case.

    Raises TraceError for a file that is no usable trace, LibraryTraceError for one of library calls (before
    anything else), MachineError, NothingToReplayError, FileChangedError, ContentError or CoreError for what
    prevents a replay. That the program went another way is not an error but a result.
    """
    began = time.monotonic()
    keep_freed_memory()
    with TraceReader.open(options.trace) as reader:
        if isinstance(reader.meta.get("library"), dict):
            raise LibraryTraceError(reader.meta)
        chosen = scope.whole(reader) if options.pid is None else scope.one_process(reader, options.pid)
        if not options.ignore_cpu:
            machine.check(reader.meta)
        supervisor = Supervisor(
            reader,
            chosen,
            echo=(options.stdout, options.stderr) if options.echo else None,
            verify=options.verify,
            timeout=DEFAULT_TIMEOUT if options.timeout is None else options.timeout,
        )
        supervisor.stamped = options.stamp
        if options.verify and not reader.meta.get("checksum_every"):
            supervisor.notes.append("there are no checksums to verify: record with --checksum")
        try:
            if options.pid is None:
                supervisor.contents.check_all()
            supervisor.start()
            supervisor.run()
            divergence = None
            if supervisor.diverged is not None:
                from replayer.inspect import report_divergence

                divergence = report_divergence(supervisor, supervisor.diverged)
            return _result(supervisor, divergence, time.monotonic() - began)
        finally:
            supervisor.close()


def _result(supervisor: Supervisor, divergence: DivergenceReport | None, seconds: float) -> ReplayResult:
    reader = supervisor.reader
    pid = supervisor.scope.pid
    notes = list(supervisor.notes)
    status, number = 0, None
    message = ""
    ending = final_end(reader, supervisor.scope.starts[0] if pid is None else None, pid)
    if divergence is not None:
        end, status, message = ReplayEnd.DIVERGED, int(ExitStatus.DIVERGED), divergence.text()
    elif supervisor.stuck is not None:
        end, status, message = ReplayEnd.STUCK, int(ExitStatus.DIVERGED), stuck_text(supervisor.stuck)
    else:
        incomplete = bool(supervisor.incomplete) or ending is None or not reader.complete
        end = ReplayEnd.INCOMPLETE if incomplete else ReplayEnd.FINISHED
        if ending is not None and ending.status == "exited":
            status = ending.code
        elif ending is not None and ending.status == "signaled":
            number = ending.code
        if incomplete:
            notes.append(incomplete_text(reader, supervisor.incomplete))
    return ReplayResult(
        end=end,
        status=status,
        signal=number,
        message=message,
        notes=tuple(notes),
        events=supervisor.total_events(),
        processes=supervisor.processes,
        seconds=seconds,
        divergence=divergence,
    )


def final_end(reader: TraceReader, start: int | None, pid: int | None = None) -> DomainEnd | None:
    """How a process ended (that of domain `start`, or `pid`), whatever it executed; None: unknown."""
    if pid is None:
        assert start is not None
        pid = reader.domains[start].pid
    ends = [end for info in reader.domains.values() for end in info.ends if end.pid == pid]
    final = [end for end in ends if end.status in ("exited", "signaled")]
    return max(final, key=lambda end: (end.time, end.domain)) if final else None


def incomplete_text(reader: TraceReader, domains: Sequence[LiveDomain]) -> str:
    """Where the recording stops and why, for people."""
    why = {stop.domain: stop.why for stop in reader.stops}
    places: dict[str, list[str]] = {}
    for domain in domains[:_SHOWN]:
        reason = str(domain.feeder.failure or why.get(domain.number, "the program went on unrecorded"))
        place = f"process {domain.info.pid} ({domain.info.comm or '?'}) after event {domain.count()}"
        places.setdefault(reason, []).append(place)
    parts = [f"{', '.join(names)}: {reason}" for reason, names in places.items()]
    if len(domains) > _SHOWN:
        parts.append(f"and {len(domains) - _SHOWN} more processes")
    where = "; ".join(parts or map(str, reader.stops)) or reader.stopped
    return f"the recording stops here: {where}".rstrip(".")


def stuck_text(stuck: Stuck) -> str:
    """Where a replay that makes no progress stands, for people."""
    lines = [f"the replay made no progress for {stuck.seconds:g} seconds and was ended"]
    for domain in stuck.domains[:_SHOWN]:
        lines.append(
            f"  process {domain.info.pid} ({domain.info.comm or '?'}), domain {domain.number}: "
            f"after event {domain.count()} of {domain.total}"
        )
    if len(stuck.domains) > _SHOWN:
        lines.append(f"  and {len(stuck.domains) - _SHOWN} more domains")
    lines.append("  (--timeout SECONDS waits longer)")
    return "\n".join(lines)
