"""Who else holds this process: a recording around it, or a debugger. Asked when something does not work."""

from __future__ import annotations

import os

from interfaces import abi
from interposer import procfs
from interposer.errors import UnsupportedError


def inside_a_recording() -> UnsupportedError | None:
    """The error to raise where this process itself is recorded (or replayed); None where it is not."""
    try:
        found = procfs.mappings(os.getpid())
    except OSError:
        return None
    if not any(abi.BASE <= mapping.start < abi.END for mapping in found):
        return None
    return UnsupportedError(
        "rr-py is being recorded itself, and a recording cannot hold another one",
        "Record the inner program directly, or leave it out of the recording.",
    )


def under_a_tracer() -> UnsupportedError | None:
    """The error to raise where this process, and so what it starts, is traced; None where it is not."""
    try:
        number = procfs.tracer(os.getpid())
        name = procfs.stat(number).comm if number else ""
    except OSError:
        return None
    if not number:
        return None
    return UnsupportedError(
        f"{name} (process {number}) traces rr-py and what it starts; a process has one tracer only",
        f"Run rr-py without {name}: `rr-py dump` shows the calls, `rr-py replay --gdb` debugs.",
    )
