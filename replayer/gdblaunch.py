"""Starting a debugger on a timeline, or waiting for one to connect."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from replayer.corefile import image_of
from replayer.errors import ReplayError
from replayer.gdbserver import Server
from replayer.sysroot import build, changed_files
from replayer.timeline import Timeline

_OLDEST = 12
_PR_SET_PDEATHSIG = 1
_LIBRARY = re.compile(r"\.so(\.[0-9.]+)?$")
COMMANDS = Path(__file__).resolve().parent / "data" / "gdb_commands.py"


def debug(
    timeline: Timeline,
    debugger: str = "gdb",
    arguments: Sequence[str] = (),
    announce: Callable[[str, str], None] | None = None,
) -> int:
    """Run a debugger on the timeline, in the foreground, and return its exit status.

    ReplayError when it cannot be started. Ctrl-C is the debugger's. `announce` is given a message and a
    remedy that the user should see.
    """
    path = shutil.which(debugger)
    if path is None:
        raise ReplayError(f"{debugger} was not found", "Install gdb, or name a debugger with --debugger.")
    lldb = "lldb" in os.path.basename(path)
    if not lldb:
        _check_version(path)
    with (
        tempfile.TemporaryDirectory(prefix="rr-py-") as folder,
        _listening(folder, lldb) as (listener, where),
    ):
        root = _sysroot(timeline, Path(folder) / "root", announce)
        command = _lldb(path, where, timeline) if lldb else _gdb(path, where, timeline, root)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            child = subprocess.Popen([*command, *arguments], preexec_fn=_in_child)
            try:
                _serve_until(timeline, listener, child)
            finally:
                status = _end(child)
        finally:
            signal.signal(signal.SIGINT, before)
    return status


def wait_for(timeline: Timeline, port: int, announce: Callable[[str, str], None]) -> None:
    """Serve one debugger that connects to a local port (0: any free one)."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        number = listener.getsockname()[1]
        announce(
            f"waiting for a debugger on port {number}",
            f"gdb: target extended-remote localhost:{number}\n"
            f"gdb: source {COMMANDS}\n"
            f"lldb: gdb-remote {number}",
        )
        connection, _peer = listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            Server(timeline, connection).serve()


def _in_child() -> None:
    """Ctrl-C is the debugger's; and it ends when the tool does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _sysroot(timeline: Timeline, folder: Path, announce: Callable[[str, str], None] | None) -> str:
    """Where gdb finds files as they were recorded: usually where they are."""
    program = image_of(timeline.reader, timeline.reader.domains[timeline.domain]).exe
    mapped = {entry.path for entry in timeline.reader.files.values() if not entry.shared}
    code = {path for path in mapped if path == program or _LIBRARY.search(path)}
    if not code & changed_files(timeline.reader).keys():
        return "/"
    made, missing = build(timeline.reader, folder, code)
    if missing and announce is not None:
        announce(
            f"changed since the recording, and not in the trace: {', '.join(missing[:4])}"
            + (f" and {len(missing) - 4} more" if len(missing) > 4 else ""),
            "Their symbols and lines are not shown. `rr-py pack` right after recording keeps such files.",
        )
    return str(folder) if made else "/"


def _check_version(path: str) -> None:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace")
    match = re.search(r"(\d+)\.\d+", done.stdout.split("\n", 1)[0])
    if match is not None and int(match[1]) < _OLDEST:
        raise ReplayError(
            f"{path} is version {match[0]}, and gdb {_OLDEST} or newer is needed",
            "Install a newer gdb, or name one with --debugger.",
        )


@contextmanager
def _listening(folder: str, tcp: bool) -> Iterator[tuple[socket.socket, str]]:
    if tcp:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            yield listener, str(listener.getsockname()[1])
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        path = os.path.join(folder, "gdb")
        listener.bind(path)
        listener.listen(1)
        yield listener, path


def _gdb(path: str, where: str, timeline: Timeline, root: str) -> list[str]:
    program = timeline.reader.domains[timeline.domain]
    words = [path, "-q", "-iex", "set pagination off"] if not os.isatty(0) else [path, "-q"]
    settings = [
        f"set sysroot {root}",
        "set auto-solib-add on",
        "set startup-with-shell off",
        "set remotetimeout 100000",
        "set breakpoint condition-evaluation auto",
    ]
    for setting in settings:
        words += ["-iex", setting]
    if program.cwd and os.path.isdir(program.cwd):
        words += ["-iex", f"directory {program.cwd}:$cdir:$cwd"]
    words += ["-ex", f"target extended-remote {where}", "-x", str(COMMANDS)]
    return words


def _lldb(path: str, where: str, timeline: Timeline) -> list[str]:
    program = image_of(timeline.reader, timeline.reader.domains[timeline.domain]).exe
    words = ["-o", f'target create "{program}"'] if os.path.exists(program) else []
    return [path, *words, "-o", f"gdb-remote 127.0.0.1:{where}"]


def _serve_until(timeline: Timeline, listener: socket.socket, child: subprocess.Popen[bytes]) -> None:
    """Serve connections until the debugger has ended."""
    listener.settimeout(0.2)
    while child.poll() is None:
        try:
            connection, _peer = listener.accept()
        except TimeoutError:
            continue
        with connection:
            Server(timeline, connection).serve()


def _end(child: subprocess.Popen[bytes]) -> int:
    with suppress(subprocess.TimeoutExpired):
        return child.wait(5 if child.poll() is None else None)
    child.terminate()
    return child.wait()
