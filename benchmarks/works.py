"""The works whose cost is measured: what is run, how large, and what the project wants it to cost.

A work is prepared once in a folder of its own. Its command depends on a size, so that tools a hundred times
slower than the program are given less of the same.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
_PATIENCE = 60.0
_PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
"""The system's where there is one: the files of another would be stored in the trace."""


@dataclass(frozen=True, slots=True)
class Work:
    """`command(folder, size)` is run with `folder` as its current one.

    `record` and `replay` are the goals, ratios to the native time (None: no goal). `slow` is the size for
    tracers, None to leave them out; `gdb` that for `gdb record`. `reset` removes what a run left. `client` is
    run while `command`, a server, serves the port it names; then the client's time is what counts, and `stop`
    ends the server. `needs` are the programs that must be installed.
    """

    name: str
    command: Callable[[Path, int], list[str]]
    size: int
    record: float | None
    replay: float | None
    prepare: Callable[[Path], None] = lambda folder: None
    reset: Callable[[Path], None] = lambda folder: None
    slow: int | None = None
    gdb: int | None = None
    needs: tuple[str, ...] = ()
    port: int = 0
    client: Callable[[int], list[str]] | None = None
    stop: list[str] | None = None


def compiled(name: str, *flags: str) -> Callable[[Path], None]:
    """Prepares one of the C programs of this folder."""

    def prepare(folder: Path) -> None:
        subprocess.run(
            ["cc", "-O2", "-pthread", *flags, "-o", folder / name, PROGRAMS / f"{name}.c"], check=True
        )

    return prepare


def _noise(folder: Path) -> None:
    with (folder / "noise").open("wb") as file:
        for _ in range(200):
            file.write(os.urandom(1_000_000))


def _text(folder: Path) -> None:
    """5 MB that compress like source code."""
    parts = [path.read_bytes() for path in sorted(Path(os.__file__).parent.glob("*.py"))]
    (folder / "text").write_bytes(b"".join(parts)[:5_000_000])


def _functions(folder: Path) -> None:
    body = "int f%d(int x) { int s = %d; for (int i = 0; i < x; i++) s += i * s ^ %d; return s; }\n"
    (folder / "many.c").write_text("".join(body % (i, i, i * 7) for i in range(1500)))


def _sources(folder: Path) -> None:
    names = [f"part{i}" for i in range(120)]
    for name in names:
        functions = "".join(
            f'int {name}_{j}(int x) {{ char b[80]; snprintf(b, 80, "%d %d", x, {j}); return strlen(b); }}\n'
            for j in range(20)
        )
        (folder / f"{name}.c").write_text("#include <stdio.h>\n#include <string.h>\n" + functions)
    objects = " ".join(f"{name}.o" for name in names)
    (folder / "Makefile").write_text(
        f"all: {objects}\n%.o: %.c\n\t@cc -O1 -c -o $@ $<\nclean:\n\t@rm -f *.o\n"
    )


def _clean(folder: Path) -> None:
    for path in folder.glob("*.o"):
        path.unlink()


def _remove(*names: str) -> Callable[[Path], None]:
    def reset(folder: Path) -> None:
        for name in names:
            (folder / name).unlink(missing_ok=True)

    return reset


def _loop(size: int) -> list[str]:
    return ["sh", "-c", f"i=0; while [ $i -lt {size} ]; do /bin/true; i=$((i+1)); done"]


_REDIS_PORT = 46379

WORKS: tuple[Work, ...] = (
    Work(
        "getppid, 10 million",
        lambda folder, size: ["./getppid", str(size)],
        10_000_000, 2.0, 0.8,
        prepare=compiled("getppid"), slow=20_000, gdb=2_000,
    ),
    Work(
        "dd bs=512, 2 million blocks",
        lambda folder, size: ["dd", "if=/dev/zero", "of=/dev/null", "bs=512", f"count={size}"],
        2_000_000, 1.8, 1.0,
        slow=10_000, needs=("dd",),
    ),
    Work(
        "cp of 200 MB of noise",
        lambda folder, size: ["cp", "noise", "copy"],
        1, 1.5, 0.8,
        prepare=_noise, reset=_remove("copy"), slow=1,
    ),
    Work(
        "computing, no calls",
        lambda folder, size: ["./compute", str(size)],
        3000, 1.02, 1.02,
        prepare=compiled("compute"), slow=3000,
    ),
    Work(
        "SQLite, 300 000 inserts",
        lambda folder, size: [_PYTHON, str(PROGRAMS / "sqlite.py"), "base.db", str(size)],
        300_000, 1.15, 1.0,
        reset=_remove("base.db", "base.db-journal"), slow=300_000,
    ),
    Work(
        "gcc -O1, 1500 functions",
        lambda folder, size: ["cc", "-O1", "-c", "-o", "many.o", "many.c"],
        1, 1.15, 1.0,
        prepare=_functions, reset=_clean, slow=1,
    ),
    Work(
        "Python, its library parsed",
        lambda folder, size: [_PYTHON, str(PROGRAMS / "scan.py"), str(size)],
        120, 1.15, 1.0,
        slow=120,
    ),
    Work(
        "make -j2, 120 files",
        lambda folder, size: ["make", "-s", "-j2"],
        1, 1.5, 1.5,
        prepare=_sources, reset=_clean, slow=1, needs=("make",),
    ),
    Work(
        "400 children of a shell",
        lambda folder, size: _loop(size),
        400, 3.0, 3.0,
        slow=100,
    ),
    Work(
        "400 000 hand-overs",
        lambda folder, size: ["./handover", str(size)],
        400_000, 1.5, 1.2,
        prepare=compiled("handover"), slow=2_000,
    ),
    Work(
        "xz -T2, 5 MB",
        lambda folder, size: ["xz", "-T2", "--block-size=1MiB", "-kf", "text"],
        1, 2.1, 2.1,
        prepare=_text, reset=_remove("text.xz"), slow=1, needs=("xz",),
    ),
    Work(
        "redis, 180 000 requests",
        lambda folder, size: ["redis-server", "--port", str(_REDIS_PORT), "--save", "", "--daemonize", "no"],
        180_000, 1 / 0.85, 0.5,
        needs=("redis-server", "redis-benchmark", "redis-cli"), slow=2_000, port=_REDIS_PORT,
        client=lambda size: [
            "redis-benchmark", "-p", str(_REDIS_PORT), "-t", "set,get", "-n", str(size // 2), "-q",
        ],
        stop=["redis-cli", "-p", str(_REDIS_PORT), "shutdown", "nosave"],
    ),
)  # fmt: skip


def missing(work: Work) -> str:
    """A program that the work needs and this machine lacks; empty when all are there."""
    wanted = ("cc", *work.needs) if work.prepare in (_sources, _functions) or not work.needs else work.needs
    return next((name for name in wanted if shutil.which(name) is None), "")


def wait_for_port(port: int) -> None:
    """Wait until somebody listens on the local port. Raises TimeoutError."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError(f"nobody listens on port {port}")
