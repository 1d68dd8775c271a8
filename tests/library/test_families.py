"""Programs that start other programs, recorded and replayed at the C library as one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.library.conftest import PROGRAMS, ROOT, Build, Tool, both, need, same

SHELL = """
echo one; ls d; (echo sub; /bin/echo in); ls d | wc -l
x=$(cat f | sort -r); echo $x
no-such; echo $?
(date +%N; echo error >&2) 2>&1 | cat
cat f > copy; cat copy
pr f | grep -c .; wc -c f | grep f
"""
CROWD = """
for i in 1 2 3; do (for j in 1 2; do /bin/echo $i $j; done; date +%N) & done; wait
sleep 100 & kill $!; wait $!; echo $?
yes | head -1; timeout -s KILL 0.2 sleep 100; echo $?
trap 'echo caught' USR1; /bin/kill -USR1 $$; echo end
(setsid sh -c "sleep 0.2; echo late" &); echo first
"""
PYTHON = """
import os, subprocess
print(subprocess.run(["date", "+%N"], capture_output=True).stdout, flush=True)
subprocess.run("echo shell; cat f; exit 2", shell=True)
print(os.popen("date +%N; echo p").read(), os.system("date +%N; exit 4"), flush=True)
child = os.posix_spawn("/usr/bin/sort", ["sort", "f"], os.environ)
print(os.waitpid(child, 0)[1])
"""
MAKEFILE = "all: a b\n\tcat a f\na:\n\t@date +%N > a; ls d\nb:\n\t@/bin/echo b\n"


def test_children(tool: Tool, build: Build) -> None:
    """Children made by fork are recorded and replayed, and what they and the program itself become."""
    program = build("family", (PROGRAMS / "family.c").read_text())
    recorded = tool("record", "-q", "-o", "t.bin", "--interface", "libc", str(program), stdin=b"X")
    assert recorded.status == 9
    assert b"child has X" in recorded.out and b"by signal 9" in recorded.out
    assert "unrecorded" not in recorded.err
    same(tool, (recorded.out, 9))
    assert b'execve("/usr/bin/true", ["true", "words"' in tool("dump", "t.bin").out
    tree = tool("ps", "t.bin").out
    assert b"true words" in tree and b"sh -c 'exit 9'" in tree


@pytest.mark.parametrize(
    "command",
    [
        ["dash", "-c", SHELL],
        ["/usr/bin/python3", "-c", PYTHON],
        ["make", "-s"],
        ["sh", "-c", "exec ls -l f"],
        ["./script", "word"],
        ["bash", "-c", CROWD],
    ],
    ids=["shell", "python", "make", "exec", "script", "crowd"],
)
def test_programs_that_programs_start(tool: Tool, tmp_path: Path, command: list[str]) -> None:
    """Each program's calls are answered from the log, and what they print comes in the recorded order."""
    need(command[0] == "./script" or shutil.which(command[0]), command[0])
    (tmp_path / "f").write_text("b\na\nc\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "e").write_text("x")
    (tmp_path / "Makefile").write_text(MAKEFILE)
    (tmp_path / "inner").write_text("#!/bin/sh\necho inner $1; cat f\n")
    (tmp_path / "script").write_text("#!/usr/bin/env sh\n./inner $1; ./inner 2\n")
    for name in ("inner", "script"):
        (tmp_path / name).chmod(0o755)
    expected = both(tool, "libc", *command)
    assert expected[0] and expected[1] == 0
    for name in ("f", "d/e", "a", "copy", "Makefile"):
        (tmp_path / name).unlink(missing_ok=True)
    same(tool, expected)
    assert not (tmp_path / "a").exists() and not (tmp_path / "copy").exists()


def test_a_compiler(tool: Tool, tmp_path: Path) -> None:
    """gcc, cc1, as, collect2 and ld, over files that are gone at replay."""
    (tmp_path / "hello.c").write_text('#include <stdio.h>\nint main() { printf("hello"); }\n')
    expected = both(tool, "libc", "gcc", "-o", "hello", "hello.c")
    assert expected[1] == 0
    assert subprocess.run([tmp_path / "hello"], capture_output=True, check=False).stdout == b"hello"
    tree = tool("ps", "t.bin").out
    assert b"/cc1 " in tree and b"/collect2 " in tree and b"unknown" not in tree
    for name in ("hello", "hello.c"):
        (tmp_path / name).unlink()
    same(tool, expected)
    assert not (tmp_path / "hello").exists()


def test_a_static_program_that_is_started_is_told_of(tool: Tool, build: Build) -> None:
    build("static", '#include <stdio.h>\nint main() { puts("static"); }', "-static")
    recorded = tool("record", "-q", "-o", "t.bin", "--interface", "libc", "sh", "-c", "./static; echo after")
    assert recorded.out == b"static\nafter\n"
    told = "/static ran unrecorded: it is linked statically; its output is not in the replay"
    assert told in recorded.err
    replayed = tool("replay", "t.bin")
    assert (replayed.out, replayed.status) == (b"after\n", 0)
    assert told in replayed.err


def test_a_writer_that_is_killed_holds_up_nobody(build: Build, tmp_path: Path) -> None:
    """GIVEN a process that waits at a full pipe WHEN it is killed THEN others write, also in replay."""
    program = build("blocked", (PROGRAMS / "blocked.c").read_text())
    command = [
        sys.executable,
        "-m",
        "rr_py",
        "record",
        "-q",
        "-o",
        "t.bin",
        "--interface",
        "libc",
        str(program),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as recorded:
        assert recorded.stdout is not None and recorded.stderr is not None
        assert recorded.stderr.readline() == b"killed\n"
        out, told = recorded.communicate(timeout=60)
    assert recorded.returncode == 9
    assert b"1 process was killed within a call that wrote to the output" in told
    assert out.endswith(b"end\n") and set(out[:-4]) == {ord("x")}
    replayed = subprocess.run(
        [sys.executable, "-m", "rr_py", "replay", "t.bin"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert replayed.returncode == 9, replayed.stderr
    assert replayed.stdout.endswith(b"end\n") and replayed.stderr.endswith(b"killed\n")
