"""ptrace as the start of a program needs it: typed, and with one exception for "it is gone".

python-ptrace is the binding; the requests it has no function for (PTRACE_SEIZE and its relatives, 3.4 and
later) go through its generic `ptrace` function. All requests must come from the thread that seized the
tracee, and, except `seize` and `interrupt`, need a tracee that is stopped.
"""

import ctypes
import errno
import os
import signal
import struct
import sys
from types import ModuleType, TracebackType
from typing import Any, NamedTuple, Protocol, Self, cast

from interposer.errors import Gone


class _StandIn(ModuleType):
    """A module of which nothing is used: whatever is asked for is None."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_: None


def _load_binding() -> tuple[Any, Any]:
    """python-ptrace's functions and its exception.

    It would search for the C library by starting ldconfig, which takes longer than all the rest: this process
    has the library already, and None names it. It would import logging, traceback and (for tools of its
    own) datetime for its debugger, which is not used here. Where they are not imported yet, stand-ins keep
    all that away, unless another thread could see them.
    """
    alone = "threading" not in sys.modules or sys.modules["threading"].active_count() == 1
    absent = [name for name in _UNUSED if name not in sys.modules and (alone or name == _SEARCH)]
    kept = sys.modules.get(_SEARCH)
    for name in {_SEARCH, *absent}:
        sys.modules[name] = _StandIn(name)
    try:
        from ptrace import PtraceError
        from ptrace.binding import func
    finally:
        for name in {_SEARCH, *absent}:
            del sys.modules[name]
        if kept is not None:
            sys.modules[_SEARCH] = kept
    return func, PtraceError


_SEARCH = "ctypes.util"
_UNUSED = (_SEARCH, "logging", "traceback", "ptrace.tools")
_binding, _PtraceError = _load_binding()
_PTRACE_GETSIGMASK = 0x420A
_PTRACE_SETSIGMASK = 0x420B
_PTRACE_SEIZE = 0x4206
_PTRACE_INTERRUPT = 0x4207
_PTRACE_LISTEN = 0x4208

EVENT_EXEC: int = _binding.PTRACE_EVENT_EXEC
EVENT_STOP = 128
_WALL: int = _binding.THREAD_TRACE_FLAGS
_STOPPING = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


class Registers(Protocol):
    """The general registers of a stopped thread (struct user_regs_struct) that this package reads or sets."""

    rax: int
    rbx: int
    rcx: int
    rdx: int
    rsi: int
    rdi: int
    r8: int
    r9: int
    r10: int
    r12: int
    r13: int
    r14: int
    r15: int
    rbp: int
    rip: int
    rsp: int
    cs: int
    orig_rax: int


class Wait(NamedTuple):
    """One answer of waitpid: whom it is about and what happened."""

    tid: int
    status: int

    @property
    def ended(self) -> bool:
        return not os.WIFSTOPPED(self.status)

    @property
    def signal(self) -> int:
        """The signal of a stop."""
        return os.WSTOPSIG(self.status)

    @property
    def event(self) -> int:
        """PTRACE_EVENT_*, 0 for a stop before a signal is delivered."""
        return self.status >> 16

    @property
    def is_exec(self) -> bool:
        return not self.ended and self.event == EVENT_EXEC

    @property
    def is_group_stop(self) -> bool:
        """Stopped with its whole process by a job-control signal, until SIGCONT."""
        return not self.ended and self.event == EVENT_STOP and self.signal in _STOPPING

    @property
    def forward(self) -> int:
        """The signal to hand on when the thread goes on from this stop; 0: none."""
        return self.signal if not self.ended and self.event == 0 else 0


def wait(tid: int) -> Wait:
    """Wait until `tid` stops or ends. Raises Gone when there is nothing to wait for."""
    try:
        found, status = os.waitpid(tid, _WALL)
    except ChildProcessError:
        raise Gone(tid) from None
    return Wait(found, status)


def poll() -> Wait | None:
    """What any child or tracee has to say, None when nothing is waiting."""
    try:
        tid, status = os.waitpid(-1, os.WNOHANG | _WALL)
    except ChildProcessError:
        return None
    return Wait(tid, status) if tid else None


def _request(request: int, tid: int, address: int = 0, data: int = 0) -> None:
    try:
        _binding.ptrace(request, tid, address, data)
    except _PtraceError as error:
        if error.errno == errno.ESRCH:
            raise Gone(tid) from None
        code = error.errno or errno.EIO
        raise OSError(code, os.strerror(code)) from None


def seize(tid: int) -> None:
    """Trace `tid`, without stopping it, until the execve it is about to make.

    Raises Gone when there is no such thread, PermissionError when tracing is not allowed.
    """
    _request(_PTRACE_SEIZE, tid, 0, _binding.PTRACE_O_TRACEEXEC)


def interrupt(tid: int) -> None:
    """Ask a running tracee to stop; the stop is reported by `wait` or `poll`."""
    _request(_PTRACE_INTERRUPT, tid)


def listen(tid: int) -> None:
    """Leave a group-stopped tracee stopped, but hear of its SIGCONT."""
    _request(_PTRACE_LISTEN, tid)


def resume(tid: int, number: int = 0) -> None:
    """Let a stopped tracee run on, delivering signal `number` to it (0: none)."""
    _request(_binding.PTRACE_CONT, tid, 0, number)


def detach(tid: int, number: int = 0) -> None:
    """Stop tracing a stopped tracee, delivering signal `number` to it (0: none)."""
    _request(_binding.PTRACE_DETACH, tid, 0, number)


def former_tid(tid: int) -> int:
    """At an exec stop: the id the thread had before it became the leader of its process."""
    message = ctypes.c_ulong()
    _request(_binding.PTRACE_GETEVENTMSG, tid, 0, ctypes.addressof(message))
    return message.value


def get_registers(tid: int) -> Registers:
    registers = _binding.ptrace_registers_t()
    _request(_binding.PTRACE_GETREGS, tid, 0, ctypes.addressof(registers))
    return cast(Registers, registers)


def set_registers(tid: int, registers: Registers) -> None:
    """Set what `get_registers` returned, as the caller has changed it."""
    _request(_binding.PTRACE_SETREGS, tid, 0, ctypes.addressof(cast(ctypes.Structure, registers)))


def peek_user(tid: int, offset: int) -> int:
    """A word of the stopped tracee's struct user (its debug registers are there)."""
    value: int = _binding.ptrace_peekuser(tid, offset)
    return value & (1 << 64) - 1


def poke_user(tid: int, offset: int, value: int) -> None:
    """Set a word of the stopped tracee's struct user. Raises OSError for a value that is not allowed."""
    _request(_binding.PTRACE_POKEUSER, tid, offset, value)


def get_mask(tid: int) -> int:
    """The blocked signals; bit n - 1 stands for signal n."""
    mask = ctypes.c_uint64()
    _request(_PTRACE_GETSIGMASK, tid, 8, ctypes.addressof(mask))
    return mask.value


def set_mask(tid: int, mask: int) -> None:
    value = ctypes.c_uint64(mask)
    _request(_PTRACE_SETSIGMASK, tid, 8, ctypes.addressof(value))


class Memory:
    """The memory of a stopped tracee, read and written whatever the protection of its pages.

    Through /proc/TID/mem; where /proc is mounted read-only, writing goes word by word through ptrace.
    Opening raises PermissionError when the program may be executed but not read, Gone when it is no more.
    """

    def __init__(self, tid: int) -> None:
        self.tid = tid
        path = f"/proc/{tid}/mem"
        self._writable = True
        try:
            try:
                self.fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                if error.errno != errno.EROFS:
                    raise
                self._writable = False
                self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError):
            raise Gone(tid) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.fd)

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes, or fewer where the mapping ends. Raises OSError where there is none."""
        return os.pread(self.fd, size, address)

    def write(self, address: int, data: bytes | bytearray) -> None:
        """Put `data` at `address`; a private mapping gets its own copy of the pages."""
        if self._writable:
            os.pwrite(self.fd, data, address)
            return
        start = address & ~7
        words = bytearray(self.read(start, ((address + len(data) + 7) & ~7) - start))
        words[address - start : address - start + len(data)] = data
        for offset in range(0, len(words), 8):
            (word,) = struct.unpack_from("<Q", words, offset)
            _request(_binding.PTRACE_POKETEXT, self.tid, start + offset, word)
