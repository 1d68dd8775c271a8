"""What the core reports, in words. Each is told once; every one goes into the trace."""

from __future__ import annotations

from interfaces import abi

OWN = 0
"""Code of the recorder's own reports."""


def call_name(number: int) -> str:
    """The name of a system call, or its number."""
    from interfaces.calls import CALLS

    call = CALLS.get(number)
    return call.name if call else f"number {number}"


def _with_option(number: int, option: int) -> str:
    """The name of a system call and that of what it was asked for, where that is known: arguments 1 and 2."""
    from interfaces.calls import CALLS

    call = CALLS.get(number)
    case = call.case((0, option & 0xFFFFFFFF, option >> 32, 0, 0, 0)) if call and option else None
    return f"{call_name(number)} {case.name}" if case else call_name(number)


def text_of(code: int, b: int, c: int) -> str:
    """The sentence for a report of the core with details `b` and `c`."""
    match code:
        case abi.Report.UNKNOWN_CALL:
            return f"system call {call_name(b)} is not known: it answered ENOSYS"
        case abi.Report.UNKNOWN_IOCTL:
            if call_name(c) == "ioctl":
                return f"ioctl {b:#x} is not known: it answered ENOTTY"
            return f"{call_name(c)} {b:#x} is not known: it answered EINVAL"
        case abi.Report.SHARED_OUTSIDE:
            if call_name(b) == "shmget":
                return "memory to share with the X server was refused: pictures go through its socket"
            if call_name(b) == "connect":
                return "nscd was refused, as its memory is shared: names are looked up directly"
            if call_name(b) == "memfd_create":
                return "memory to share with PulseAudio was refused: sound goes through its socket"
            if call_name(b) == "mmap":
                return "a mapping that the kernel writes to (perf events, BPF maps) was refused: ENODEV"
            return (
                f"memory at {b:#x} is shared with processes outside of the recording: "
                "what they write there is not recorded"
            )
        case abi.Report.SHARED_LATE:
            return f"inode {b} is mapped shared in domain {c} too: the order of accesses is not recorded"
        case abi.Report.REFUSED:
            return f"system call {_with_option(b, c)} cannot be recorded: it answered ENOSYS"
        case abi.Report.SECCOMP:
            return "a seccomp filter was accepted but is not applied while recording"
        case abi.Report.GS:
            return "the GS base belongs to the recorder while recording: the program's wish was refused"
        case abi.Report.COMPAT:
            return "a 32-bit system call cannot be recorded: it answered ENOSYS"
        case abi.Report.PTRACE:
            return "ptrace by the recorded program is not recorded"
        case abi.Report.FOREIGN_WRITE:
            return f"{call_name(b)} into the memory of another process cannot be recorded: it answered EPERM"
        case _:
            return f"report {code} of the core ({b:#x}, {c:#x})"
