"""Replaying as the command line does it: a recording again, what is to be said of it, then its end."""

from __future__ import annotations

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
    from replayer.errors import LibraryTraceError
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
    try:
        result = replay(options)
    except LibraryTraceError:
        from replayer.library import replay_library

        result = replay_library(options)
    for note in result.notes:
        say(note)
    if result.message:
        say(*result.message.split("\n", 1))
    return end_like(result.status, result.signal)
