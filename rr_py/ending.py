"""How the tool ends: in the place of the recorded program, with its status or of its signal."""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import suppress
from typing import NoReturn


def flush_streams() -> None:
    """Flush stdout and stderr; an `OSError` of stdout (closed pipe, full disk) goes to the caller."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.flush()
    if sys.stdout is not None:
        sys.stdout.flush()


def drop_output() -> None:
    """Point stdout at /dev/null, so that what is still buffered cannot fail again at interpreter exit."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(null, 1)
        os.close(null)


def die_of(number: int) -> NoReturn:
    """End this process by signal `number`, as its parent must see it; no core file is written.

    A signal that does not end a process by default cannot be passed on: then the shell's 128 + number is
    the exit status.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    with suppress(ValueError):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)


def end_like(status: int | None, signal_number: int | None) -> int:
    """The exit status to return for a program that ended so; does not return for one that a signal killed."""
    if signal_number is not None:
        try:
            flush_streams()
        except OSError:
            drop_output()
        die_of(signal_number)
    return status if status is not None else 0
