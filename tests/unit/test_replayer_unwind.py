"""Backtraces of live, blocked processes, compared with gdb's."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interposer import ptrace
from replayer.memory import Mappings, ProcessMemory
from replayer.registers import Registers
from replayer.unwind import Frame, Unwinder
from tests.conftest import systems_gdb

SOURCE = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int compare(const void *a, const void *b) {
  static int once;
  if (!once++) raise(SIGUSR1);
  return *(const int *)a - *(const int *)b;
}
__attribute__((noinline)) static int inner(char *text, int n) {
  char more[200 + 16 * (n & 3)];
  memset(more, n, sizeof more);
  if (n) return inner(more, n - 1) + more[3] + text[1];
  int numbers[9] = {9, 8, 7, 6, 5, 4, 3, 2, 1};
  qsort(numbers, 9, sizeof *numbers, compare);
  return numbers[0];
}
__attribute__((noinline)) static void handler(int signo) {
  char byte;
  write(1, "r", 1);
  while (read(0, &byte, 1) > 0) {}
  _exit(signo);
}
int main(void) {
  char text[4] = "abc";
  signal(SIGUSR1, handler);
  return inner(text, 5);
}
"""

needs_tools = pytest.mark.skipif(
    not (shutil.which("gcc") and systems_gdb()), reason="needs gcc, and gdb as the oracle"
)


@contextmanager
def blocked(program: Path) -> Iterator[int]:
    """A process of `program` that has said "r", stopped there."""
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"r"
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def registers_of(pid: int) -> Registers:
    """The registers of a stopped process."""
    ptrace.seize(pid)
    ptrace.interrupt(pid)
    ptrace.wait(pid)
    raw = ptrace.get_registers(pid)
    ptrace.detach(pid)
    return Registers.from_names({name: getattr(raw, name) for name in Registers.__dataclass_fields__})


def unwound(pid: int) -> list[Frame]:
    with ProcessMemory(pid) as memory:
        return Unwinder(memory, Mappings.of(pid)).backtrace(registers_of(pid))


GDB_FRAMES = """python
frame = gdb.newest_frame()
while frame:
    if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
        print("frame", hex(frame.pc()), int(frame.type() == gdb.SIGTRAMP_FRAME))
    frame = frame.older()
"""


def by_gdb(script: Path, pid: int) -> list[tuple[int, bool]]:
    """gdb's frames without inlined and tail calls: (pc, whether it is the trampoline of a signal handler)."""
    script.write_text(GDB_FRAMES)
    text = subprocess.run(
        [
            str(systems_gdb()), "-nx", "-batch", "-p", str(pid),
            "-ex", "set backtrace past-main on", "-x", script,
        ],
        capture_output=True, text=True, env={**os.environ, "DEBUGINFOD_URLS": ""}, check=True,
    ).stdout  # fmt: skip
    return [
        (int(pc, 16), flag == "1") for pc, flag in re.findall(r"^frame (0x[0-9a-f]+) ([01])$", text, re.M)
    ]


@needs_tools
@pytest.mark.parametrize(
    "flags",
    [
        ["-O0"],
        ["-O2", "-fomit-frame-pointer"],
        ["-O1", "-no-pie"],
        ["-O2", "-static"],
        ["-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-omit-frame-pointer"],
        ["-O1", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"],
    ],
    ids=["plain", "optimised", "fixed-address", "static", "frame-pointers", "debug-frame"],
)
def test_backtrace_is_that_of_gdb(flags: list[str], tmp_path: Path) -> None:
    """GIVEN a program blocked in a signal handler below qsort WHEN its stack is unwound THEN gdb agrees."""
    source = tmp_path / "stack.c"
    source.write_text(SOURCE)
    program = tmp_path / "stack"
    subprocess.run(["gcc", *flags, "-w", "-o", program, source], check=True)
    with blocked(program) as pid:
        mine = unwound(pid)
        theirs = by_gdb(tmp_path / "frames.gdb", pid)

    assert len(theirs) > 10
    names = [frame.symbol.name if frame.symbol else "" for frame in mine]
    assert [name for name in names if name in ("inner", "compare", "handler", "main")] == [
        "handler", "compare", *["inner"] * 6, "main",
    ]  # fmt: skip
    assert [frame.signal for frame in mine].count(True) == 1
    assert [(frame.pc, frame.signal) for frame in mine] == theirs


@needs_tools
def test_stripped_program_still_unwinds(tmp_path: Path) -> None:
    """GIVEN no .symtab WHEN unwound THEN frames and exported names are found, and nothing is invented."""
    source = tmp_path / "stack.c"
    source.write_text(SOURCE)
    program = tmp_path / "stack"
    subprocess.run(["gcc", "-O2", "-s", "-w", "-o", program, source], check=True)
    with blocked(program) as pid:
        mine = unwound(pid)
    names = [frame.symbol.name for frame in mine if frame.symbol]
    assert any(name.startswith("__libc_start_main") for name in names)
    assert "inner" not in names
    assert len(mine) > 10


@needs_tools
def test_deleted_program_is_unwound_from_memory(tmp_path: Path) -> None:
    """GIVEN the file is gone WHEN unwound THEN call-frame information is taken out of the process itself."""
    source = tmp_path / "stack.c"
    source.write_text(SOURCE)
    program = tmp_path / "stack"
    subprocess.run(["gcc", "-O2", "-w", "-o", program, source], check=True)
    with blocked(program) as pid:
        program.unlink()
        mine = unwound(pid)
    assert len(mine) > 10
    assert mine[-1].pc


def test_call_through_bad_pointer_finds_the_caller() -> None:
    """GIVEN a pc that is mapped nowhere WHEN unwound THEN the frame below is the word on top of the stack."""
    with ProcessMemory(os.getpid()) as memory:
        mappings = Mappings.of(os.getpid())
        code = next(mapping for mapping in mappings if mapping.executable and mapping.path.startswith("/"))
        holder = code.start.to_bytes(8, "little") * 2
        address = id(holder) + bytes.__basicsize__ - 1
        registers = Registers(rip=0x10, rsp=address)
        frames = Unwinder(memory, mappings).backtrace(registers, limit=2)
    assert [frame.pc for frame in frames] == [0x10, code.start]
    assert frames[0].symbol is None


def test_frame_pointer_loop_ends() -> None:
    """GIVEN a frame pointer that points at itself WHEN unwound THEN the backtrace ends."""
    with ProcessMemory(os.getpid()) as memory:
        mappings = Mappings.of(os.getpid())
        frames = Unwinder(memory, mappings).backtrace(Registers(rip=0x10, rsp=0x20, rbp=0x20))
    assert len(frames) == 1
