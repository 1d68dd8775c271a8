"""`rr-py replay --gdb`: a debugger on a recording."""

from __future__ import annotations

import shlex

from rr_py.messages import say


def debug_trace(
    place: str | None,
    pid: int | None,
    *,
    debugger: str,
    arguments: str,
    port: int | None,
    silent: bool,
    stamp: bool,
    ignore_cpu: bool,
) -> int:
    """Run a debugger on a place written as TRACE@PID:EVENT, or wait for one on a port; the exit status."""
    from dataclasses import replace

    from replayer import gdblaunch, machine
    from replayer.place import parse, resolve
    from replayer.timeline import Timeline
    from rr_py.traces import chosen
    from tracefile import TraceReader

    wanted = parse(place or "")
    if pid is not None:
        wanted = replace(wanted, pid=pid)
    with TraceReader.open(chosen(wanted.trace or None)) as reader:
        if not ignore_cpu:
            machine.check(reader.meta)
        found = resolve(reader, wanted)
        echo = None if silent else (1, 2)
        with Timeline(reader, found.domain, echo=echo, stamped=stamp, owns_reader=False) as timeline:
            if wanted.event is not None or wanted.at_end:
                timeline.seek(found.event + 1)
            if port is None:
                return gdblaunch.debug(timeline, debugger, shlex.split(arguments), say)
            gdblaunch.wait_for(timeline, port, say)
            return 0
