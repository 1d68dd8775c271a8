"""Start the first program: fork, place the hidden descriptors, exec, and hold it at its exec stop.

The forked child does as little as possible: it waits until it is traced, then tries the places a shell would.
If no execve succeeds it says through a pipe what failed and with which errno, so that "not found", "not
executable" and "its interpreter is missing" are told apart by what the kernel said, not by guessing.
"""

import contextlib
import errno
import fcntl
import os
import resource
import signal
import stat
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

from interfaces import abi
from interfaces.errors import ExitStatus
from interposer import kernel, ptrace, surroundings
from interposer.elf import ElfError, parse
from interposer.errors import Gone, LaunchError, UnsupportedError

_FD_LIMIT = 1024
_FD_RESERVE = 16
_FD_LEAST = 64
_SHELL = "/bin/sh"
_FAILURE = struct.Struct("<ii")
_AT_CWD, _AT_EXEC, _AT_SETUP = 1, 2, 3
_KEEP_LOOKING = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG)


class Command(NamedTuple):
    """What to run: `path`, or argv[0] as execvp looks it up in `env`'s PATH, from the folder `cwd`."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None = None
    path: str | None = None

    def candidates(self) -> list[str]:
        """The paths to try, in order."""
        name = self.argv[0] if self.path is None else self.path
        if not name:
            return []
        if "/" in name:
            return [name]
        return [os.path.join(folder or ".", name) for folder in self.env.get("PATH", os.defpath).split(":")]


class Launch(NamedTuple):
    """A forked child that waits to be traced and to exec. `start` or `abandon` it, once."""

    pid: int
    command: Command
    fd_base: int
    go: int
    failure: int

    def start(self) -> ptrace.Registers:
        """Trace the child and let it exec. Returns the registers at the exec stop.

        Raises LaunchError (the child is reaped) when no execve succeeds, UnsupportedError when tracing is
        refused.
        """
        try:
            try:
                ptrace.seize(self.pid)
            except PermissionError:
                self.kill()
                raise _no_ptrace() from None
            os.write(self.go, b"g")
            return self._wait_for_exec()
        except Gone:
            raise LaunchError(
                f"{self.command.argv[0]}: killed before it started", "Try again.", ExitStatus.CANNOT_RUN
            ) from None
        finally:
            os.close(self.go)
            os.close(self.failure)

    def abandon(self) -> None:
        """End the child, which has run nothing of the program."""
        self.kill()
        os.close(self.go)
        os.close(self.failure)

    def kill(self) -> None:
        """End the child and reap it, whether it waits, is stopped or is dead already."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            while os.WIFSTOPPED(os.waitpid(self.pid, 0)[1]):
                pass

    def _wait_for_exec(self) -> ptrace.Registers:
        while True:
            wait = ptrace.wait(self.pid)
            if wait.ended:
                raise self._failed(wait)
            if wait.is_exec:
                return ptrace.get_registers(self.pid)
            if wait.is_group_stop:
                ptrace.listen(self.pid)
            else:
                ptrace.resume(self.pid, wait.forward)

    def _failed(self, wait: ptrace.Wait) -> LaunchError:
        data = os.read(self.failure, 4096 + _FAILURE.size)
        if len(data) < _FAILURE.size:
            return LaunchError(
                f"{self.command.argv[0]}: ended before it could start (wait status {wait.status:#x})",
                "Try again.",
                ExitStatus.CANNOT_RUN,
            )
        stage, code = _FAILURE.unpack_from(data)
        path = os.fsdecode(data[_FAILURE.size :])
        if stage == _AT_CWD:
            return LaunchError(
                f"cannot change to the folder {path}: {os.strerror(code)}",
                "Check --cwd.",
                ExitStatus.TOOL_FAILED,
            )
        if stage == _AT_SETUP:
            return LaunchError(f"cannot prepare the program: {os.strerror(code)}", "", ExitStatus.TOOL_FAILED)
        return explain(self.command, path, code)


def fork(command: Command, hidden: Sequence[int]) -> Launch:
    """Fork the child. `hidden` become its descriptors fd_base, fd_base + 1, ...

    Fork before changing signal dispositions: the program inherits them. Raises UnsupportedError when there
    is no room for the hidden descriptors.
    """
    fd_base = choose_fd_base()
    go_read, go = os.pipe()
    failure, failure_write = os.pipe()
    mask = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            os.close(go)
            os.close(failure)
            _child(command, hidden, fd_base, go_read, failure_write, mask)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(go_read)
        os.close(failure_write)
    return Launch(pid, command, fd_base, go, failure)


def choose_fd_base() -> int:
    """The first of the hidden descriptors: high, below the limit, where nothing is open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _FD_LEAST:
        raise UnsupportedError(
            f"the limit of open files is {soft}, recording needs {_FD_LEAST}",
            "Raise it with `ulimit -n 1024`.",
        )
    for base in range(min(soft, _FD_LIMIT) - _FD_RESERVE, 2, -_FD_RESERVE):
        if not any(_is_open(base + i) for i in range(abi.FD_COUNT)):
            return base
    raise UnsupportedError("every descriptor below 1024 is in use", "Close some before recording.")


def _is_open(fd: int) -> bool:
    try:
        fcntl.fcntl(fd, fcntl.F_GETFD)
    except OSError:
        return False
    return True


def _child(
    command: Command,
    hidden: Sequence[int],
    fd_base: int,
    go: int,
    failure: int,
    mask: set[int | signal.Signals],
) -> NoReturn:
    stage, path, code = _AT_SETUP, "", 0
    try:
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            if signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN):
                signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        for i, fd in enumerate(hidden):
            os.dup2(fd, fd_base + i, inheritable=True)
        for i in range(len(hidden), abi.FD_COUNT if hidden else 0):
            os.dup2(hidden[-1], fd_base + i, inheritable=True)
        kernel.disable_aslr()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if not os.read(go, 1):
            os._exit(ExitStatus.TOOL_FAILED)
        if command.cwd is not None:
            stage, path = _AT_CWD, command.cwd
            os.chdir(command.cwd)
        stage = _AT_EXEC
        path, code = _exec_first(command)
    except OSError as error:
        code = error.errno or errno.EIO
    except BaseException:
        code = errno.EINVAL
    try:
        os.write(failure, _FAILURE.pack(stage, code) + os.fsencode(path))
    finally:
        os._exit(ExitStatus.NOT_FOUND)


def _exec_first(command: Command) -> tuple[str, int]:
    """Try every candidate. Returns the path and the errno that tell best why none could be executed."""
    worst = (command.argv[0], errno.ENOENT)
    for path in command.candidates():
        try:
            os.execve(path, command.argv, command.env)
        except OSError as error:
            code = error.errno or errno.EIO
        if code == errno.ENOEXEC and not _is_binary(path):
            os.execve(_SHELL, [_SHELL, path, *command.argv[1:]], command.env)
        if code not in _KEEP_LOOKING or (code == errno.ENOENT and os.path.exists(path)):
            return path, code
        if code == errno.EACCES or worst[1] != errno.EACCES:
            worst = (path, code)
    return worst


def _is_binary(path: str) -> bool:
    """Whether a file that the kernel cannot execute is no text a shell could read."""
    try:
        with open(path, "rb") as file:
            return b"\0" in file.read(256).split(b"\n")[0]
    except OSError:
        return False


def explain(command: Command, path: str, code: int) -> LaunchError:
    """Turn the errno with which execve of `path` failed into what the user should know."""
    name = command.argv[0]
    full = os.path.join(command.cwd, path) if command.cwd else path
    if code == errno.EACCES:
        return LaunchError(*_denied(full), ExitStatus.CANNOT_RUN)
    if code in (errno.ENOENT, errno.ENOTDIR):
        if os.path.exists(full):
            return LaunchError(
                f"{full}: its interpreter {_interpreter(full)} is missing",
                "Install it.",
                ExitStatus.CANNOT_RUN,
            )
        where = "" if "/" in name else " in PATH"
        return LaunchError(f"{name}: not found{where}", "Check its name.", ExitStatus.NOT_FOUND)
    if code == errno.ENOEXEC:
        return LaunchError(
            f"{full}: not a program for this machine (x86-64 Linux)",
            "Build it for x86-64.",
            ExitStatus.CANNOT_RUN,
        )
    return LaunchError(f"{full}: {os.strerror(code)}", "", ExitStatus.CANNOT_RUN)


def _denied(path: str) -> tuple[str, str]:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return f"{path}: permission denied", "Check the rights of the folders on its path."
    if stat.S_ISDIR(mode):
        return f"{path}: is a folder, not a program", "Name a program."
    if not stat.S_ISREG(mode):
        return f"{path}: not a regular file", "Name a program."
    if not mode & 0o111:
        return f"{path}: not executable", f"Make it executable: chmod +x {path}"
    return (
        f"{path}: permission denied",
        "Check its rights and its interpreter's; is its file system mounted noexec?",
    )


def _interpreter(path: str) -> str:
    """The interpreter a script or a dynamic program asks for, as far as it can be read."""
    try:
        with open(path, "rb") as file:
            start = file.read(1 << 16)
        if start[:2] == b"#!":
            return os.fsdecode(start[2:].split(b"\n")[0].strip().split(None, 1)[0])
        return parse(start).interpreter() or "(unknown)"
    except (OSError, ElfError, IndexError):
        return "(unknown)"


def _no_ptrace() -> UnsupportedError:
    if error := surroundings.under_a_tracer():
        return error
    scope = ""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope") as file:
            scope = file.read().strip()
    except OSError:
        pass
    if scope in ("2", "3"):
        return UnsupportedError(
            f"ptrace is forbidden here: kernel.yama.ptrace_scope is {scope}, recording needs 0 or 1",
            "sysctl kernel.yama.ptrace_scope=1" + (" (after a reboot)" if scope == "3" else ""),
        )
    return UnsupportedError(
        "ptrace is refused by this container or sandbox; recording needs it for a moment at every exec",
        "Allow it, for instance docker run --cap-add=SYS_PTRACE.",
    )
