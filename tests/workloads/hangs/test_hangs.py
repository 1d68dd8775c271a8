"""Reproductions of public reports of soft hangs, and loops of unusual kinds, each with its repaired twin: the
one is found with the right function and fix, about the other nothing is said."""

from __future__ import annotations

import http.server
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from hangscan import Options, Report, scan

PROGRAMS = Path(__file__).with_name("programs")
ROOT = Path(__file__).resolve().parents[3]
TOOL = "import sys; sys.path.insert(0, sys.argv.pop(1)); from rr_py.main import main; sys.exit(main())"
GLIB = ("-l:libgio-2.0.so.0", "-l:libgobject-2.0.so.0", "-l:libglib-2.0.so.0")
pytestmark = pytest.mark.acceptance


@dataclass(frozen=True)
class Case:
    """`kind` and `function` of the finding, words of its fix, the environments, and what it needs to run."""

    program: str
    kind: str
    function: str
    fix: str
    environments: tuple[str, ...]
    link: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    display: bool = False
    bus: bool = False
    server: bool = False


CASES = [
    Case("sidebar.c", "file", "sidebar_refresh", "g_file_query_info_async", ("nfs-down",), GLIB),
    Case("proxy.c", "bus", "applet_connect", "g_dbus_proxy_new_for_bus", ("dead-service",), GLIB,
         ("dbus-daemon",), bus=True),
    Case("dialog.py", "socket", "NewsDialog.fetch", "thread", (), needs=("Xvfb",), display=True, server=True),
    Case("recent.c", "file", "fill_recent_menu", "g_file_query_info_async", ("nfs-down",), GLIB),
    Case("peer.c", "dns", "on_peer_connected", "g_resolver_lookup_by_address_async", ("dns-down",), GLIB),
    Case("session.cc", "dns", "Session::Session", "c-ares", ("dns-down",), ("-pthread",)),
    Case("web.py", "file", "serve_file", "asyncio.to_thread", ("nfs-down",)),
    Case("ledger.py", "file", "store", "asyncio.to_thread", ("hdd",)),
    Case("repaint.py", "file", "repaint", "thread", ("nfs-down",), needs=("Xvfb",), display=True),
    Case("forwarder.c", "pipe", "forward", "non-blocking pipe", ()),
    Case("game.c", "child", "load_level", "posix_spawn", ()),
    Case("pulling.c", "pipe", "draw", "non-blocking pipe", (), GLIB),
    Case("editor.c", "filelock", "on_save", "LOCK_NB", (), ("-lX11",), ("Xvfb",), display=True),
]  # fmt: skip


class _Late(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(0.3)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"news")

    def log_message(self, *_arguments: object) -> None:
        pass


@contextmanager
def late_server() -> Iterator[str]:
    """A server outside the recording that answers after 0.3 s."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Late)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def display() -> Iterator[str]:
    """An X server of its own; the name of the display."""
    reading, writing = os.pipe()
    with subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", "640x480x24", "-nolisten", "tcp"],
        pass_fds=[writing],
        stderr=subprocess.DEVNULL,
    ) as server:
        os.close(writing)
        try:
            with os.fdopen(reading) as file:
                yield f":{file.readline().strip()}"
        finally:
            server.terminate()


@contextmanager
def session_bus() -> Iterator[str]:
    """A bus of its own; its address."""
    with subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address"], stdout=subprocess.PIPE, text=True
    ) as daemon:
        assert daemon.stdout is not None
        try:
            yield daemon.stdout.readline().strip()
        finally:
            daemon.terminate()


def built(case: Case, folder: Path, fixed: bool) -> list[str]:
    """The command that runs the program, compiled where it must be."""
    source = PROGRAMS / case.program
    if source.suffix == ".py":
        return [sys.executable, str(source)]
    compiler = "g++" if source.suffix == ".cc" else "gcc"
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    flags = ["-DFIXED"] if fixed else []
    done = subprocess.run(
        [compiler, "-g", "-O1", "-pthread", *flags, "-o", folder / "program", source, *case.link],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"cannot be built here: {done.stderr[-200:]}")
    return [str(folder / "program")]


def scanned(case: Case, folder: Path, fixed: bool) -> Report:
    """Record the program in a folder of its own, and scan."""
    for need in case.needs:
        if shutil.which(need) is None:
            pytest.skip(f"needs {need}")
    command = built(case, folder, fixed)
    work = folder / "work"
    (work / "share").mkdir(parents=True)
    (work / "page.html").write_text("<p>page")
    environment = {**os.environ, "RES_OPTIONS": "timeout:1 attempts:1", "PYTHONPATH": ""}
    with late_server() as url:
        if case.server:
            command.append(url)
        if fixed and case.program.endswith(".py"):
            command.append("fixed")
        screen = display() if case.display else nullcontext("")
        bus = session_bus() if case.bus else nullcontext("")
        with screen as environment["DISPLAY"], bus as environment["DBUS_SESSION_BUS_ADDRESS"]:
            done = subprocess.run(
                [
                    sys.executable,
                    "-c",
                    TOOL,
                    ROOT,
                    "record",
                    "-q",
                    "-o",
                    folder / "trace.bin",
                    "--",
                    *command,
                ],
                cwd=work,
                env=environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
    assert done.returncode == 0, done.stderr
    return scan(folder / "trace.bin", Options(environments=case.environments))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.program)
def test_report_is_reproduced(case: Case, tmp_path: Path) -> None:
    # GIVEN a program that does what a public report describes
    # WHEN it is recorded where nothing is slow, and scanned
    report = scanned(case, tmp_path, fixed=False)
    # THEN the function is blamed, with the fix
    found = [
        one
        for one in report.candidates
        if one.resource.kind == case.kind and any(frame.function == case.function for frame in one.stack)
    ]
    assert found, [(one.resource.kind, str(one.blamed_frame)) for one in report.candidates]
    assert case.fix in found[0].fix
    # ... and nothing else is said, but for what a busy machine does to a whole action
    assert [note for note in report.notes if "without one place that did" not in note] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.program)
def test_repaired_twin_is_silent(case: Case, tmp_path: Path) -> None:
    # GIVEN the same program, repaired
    # WHEN it is recorded and scanned
    report = scanned(case, tmp_path, fixed=True)
    # THEN its loop is there, and nothing is said about it
    assert report.loops
    assert [(one.resource.kind, str(one.blamed_frame)) for one in report.candidates] == []
