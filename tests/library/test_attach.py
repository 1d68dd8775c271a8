"""Watching a process that runs already: it goes on as before, whatever becomes of the watch."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.library.conftest import ROOT, Build, Tool, need

_REDIS = "redis-server"
_WAITS = "#include <unistd.h>\nint main() { char c; return read(0, &c, 1) + 5; }"
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@contextmanager
def redis(folder: Path) -> Iterator[tuple[int, socket.socket]]:
    """A server of its own, and a connection to it."""
    path = folder / "redis.sock"
    command = [_REDIS, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert any("ready to accept connections" in line.lower() for line in server.stdout)
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20)
            client.connect(str(path))
            yield server.pid, client
    finally:
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def ask(client: socket.socket, words: bytes) -> bytes:
    client.sendall(words + b"\r\n")
    return client.recv(4096)


@pytest.mark.parametrize("number", _ENDS, ids=lambda number: number.name)
def test_a_server_is_watched_and_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    """GIVEN redis, watched WHEN the watch ends, by any signal THEN redis answers, and is watched again."""
    need(shutil.which(_REDIS), _REDIS)
    with redis(tmp_path) as (pid, client):
        for turn in range(2):
            with subprocess.Popen(
                [sys.executable, "-u", "-m", "rr_py", "attach", str(pid), "--interface", "libc"],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as watch:
                assert watch.stdout is not None and watch.stderr is not None
                assert "epoll_wait(" in next(line for line in watch.stdout if "epoll_wait" in line)
                assert ask(client, b"SET a%d b" % turn) == b"+OK\r\n"
                assert any('from="*3\\x0d\\x0a' in line or f"SET a{turn} b" in line for line in watch.stdout)
                watch.send_signal(number)
                out, err = watch.communicate(timeout=60)
            if number != signal.SIGKILL:
                assert watch.returncode == 0, err
                assert "function" in out and "epoll_wait" in out
            for key in range(300):
                assert ask(client, b"INCR n%d" % key) == b":%d\r\n" % (turn + 1)
        assert ask(client, b"GET a1") == b"$1\r\nb\r\n"


def test_a_target_that_waits_is_told_of(tool: Tool, build: Build) -> None:
    """GIVEN a program that waits for input all the time THEN the watch says so, and the program goes on."""
    with subprocess.Popen([build("waits", _WAITS)], stdin=subprocess.PIPE) as target:
        assert target.stdin is not None
        while not Path(f"/proc/{target.pid}/syscall").read_text().startswith("0 "):
            os.sched_yield()
        done = tool("attach", str(target.pid), "--interface", "libc", "--seconds", "0.1")
        assert done.status == 0
        assert f"[{target.pid}] waits in read since before the watch" in done.err
        target.stdin.close()
        assert target.wait(timeout=60) == 5


def test_a_target_that_ends_ends_the_watch(build: Build) -> None:
    program = build(
        "short",
        "#include <poll.h>\n#include <unistd.h>\nint main() { struct pollfd p = { 0, POLLIN };"
        " while (poll(&p, 1, 1) == 0) getppid(); return 7; }",
    )
    command = [sys.executable, "-u", "-m", "rr_py", "attach", "--interface", "libc"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([program], stdin=subprocess.PIPE) as target:
        assert target.stdin is not None
        with subprocess.Popen(
            [*command, str(target.pid)], env=environment, stdout=subprocess.PIPE, text=True
        ) as watch:
            assert watch.stdout is not None
            assert any("getppid()" in line for line in watch.stdout)
            target.stdin.close()
            assert target.wait(timeout=60) == 7
            out, _ = watch.communicate(timeout=60)
            assert watch.returncode == 0
            assert out.rstrip().splitlines()[-1].endswith(("getppid", "poll"))


@pytest.mark.parametrize(
    ("what", "message"),
    [("static", "linked statically"), ("gone", "there is no process"), ("kernel", "process 2 ")],
)
def test_what_cannot_be_watched_is_told_and_left_alone(
    tool: Tool, build: Build, what: str, message: str
) -> None:
    program = build(
        "waits", "#include <unistd.h>\nint main() { char c; return read(0, &c, 1) + 5; }", "-static"
    )
    with subprocess.Popen([program], stdin=subprocess.PIPE) as target:
        assert target.stdin is not None
        pid = {"static": target.pid, "gone": (1 << 22) + 1, "kernel": 2}[what]
        if what == "kernel" and Path("/proc/2/comm").read_text().strip() != "kthreadd":
            pytest.skip("process 2 is not the kernel's here")
        done = tool("attach", str(pid), "--interface", "libc")
        assert done.status == 125 and message in done.err, done.err
        target.stdin.close()
        assert target.wait(timeout=60) == 5
