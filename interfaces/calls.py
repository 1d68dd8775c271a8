"""The one table of system calls: `CALLS[number]`, `BY_NAME[name]`.

Every x86-64 call through Linux 6.18 is in it. A number that is not here does not exist for the tools.
"""

from __future__ import annotations

from interfaces.model import Call
from interfaces.table import files, ioctl, ipc, kernel, memory, network, paths, process, signals, time

FAMILIES = (files, paths, network, process, memory, signals, time, ipc, kernel, ioctl)


def _join() -> dict[int, Call]:
    calls: dict[int, Call] = {}
    for family in FAMILIES:
        for call in family.CALLS:
            if call.number in calls:
                other = calls[call.number].name
                raise ValueError(f"call {call.number} is declared twice: {other}, {call.name}")
            calls[call.number] = call
    return dict(sorted(calls.items()))


CALLS: dict[int, Call] = _join()
BY_NAME: dict[str, Call] = {call.name: call for call in CALLS.values()}


def exec_name(number: int) -> str:
    """The name of the call by which a process became another program; recordings of library calls say 0."""
    return name_of(number or BY_NAME["execve"].number)


def name_of(number: int) -> str:
    """The call's name, `syscall_N` for a number the table does not have."""
    call = CALLS.get(number)
    return call.name if call else f"syscall_{number:#x}"
