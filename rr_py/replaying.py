"""Replaying as the command line does it: a recording again, what is to be said of it, then its end."""

from __future__ import annotations

from pathlib import Path

from rr_py.ending import end_like
from rr_py.messages import say


def run(
    trace: str | None,
    *,
    pid: int | None = None,
    verify: bool = False,
    silent: bool = False,
    stamp: bool = False,
    timeout: float | None = None,
    ignore_cpu: bool = False,
) -> int:
    """Replay `trace` (None: the newest here), say what there is to say, and end as the recording ended.

    Raises what replaying raises.
    """
    from replayer import ReplayOptions, replay
    from rr_py.traces import chosen

    options = ReplayOptions(
        trace=chosen(trace),
        pid=pid,
        verify=verify,
        echo=not silent,
        stamp=stamp,
        timeout=timeout,
        ignore_cpu=ignore_cpu,
    )
    if recorded_at_library(options.trace):
        from replayer.library import replay_library as replay
    result = replay(options)
    for note in result.notes:
        say(note)
    if result.message:
        say(*result.message.split("\n", 1))
    return end_like(result.status, result.signal)


def recorded_at_library(trace: Path | str) -> bool:
    """Whether a trace holds library calls instead of system calls."""
    from tracefile import TraceReader

    with TraceReader.open(trace) as reader:
        return isinstance(reader.meta.get("library"), dict)
