"""Stacks of real recordings: native and Python frames in one, at events and of computing between two."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interfaces.abi import Kind
from interfaces.calls import BY_NAME
from replayer import Session
from replayer.backtrace import StackReader
from replayer.stacks import Collector, Found, Wanted
from tracefile import TraceReader

Run = subprocess.CompletedProcess[str]
RunTool = Callable[..., Run]
CompileC = Callable[..., Path]
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

COMPUTES = r"""
#include <unistd.h>
__attribute__((noinline)) static void compute(void) {
  volatile unsigned long x = 0;
  for (unsigned long i = 0; i < 150000000ul; i++) x += i;
}
__attribute__((noinline)) static void tell(const char *text) { write(1, text, 2); __asm__ volatile(""); }
__attribute__((noinline)) static void tail(const char *text) { write(2, text, 2); }
int main(void) { tell("a\n"); compute(); tell("b\n"); tail("c\n"); return 0; }
"""
PYTHON = """
import os
class Writer:
    def write(self):
        os.write(1, b"here")
def generate():
    Writer().write()
    yield 1
for _ in generate():
    (lambda: os.write(1, b"there"))()
"""


def writes(trace: Path) -> list[int]:
    """Numbers of the calls of write in the first domain."""
    with TraceReader.open(trace) as reader:
        return [
            view.number
            for chunk in reader.chunks(1)
            for view in chunk.views()
            if view.kind == Kind.SYSCALL and view.nr == BY_NAME["write"].number
        ]


def collect(trace: Path, wanted: list[Wanted], reader: StackReader | None = None) -> dict[Wanted, Found]:
    with Session.open(trace) as session:
        collector = Collector(session, reader)
        try:
            found = {one.wanted: one for one in collector.collect(wanted)}
        finally:
            collector.close()
        assert collector.ended is None
    return found


def record(tool: RunTool, trace: Path, *command: str | Path) -> None:
    done = tool("record", "-q", "-o", trace, "--", *command)
    assert done.returncode == 0, done.stderr


def test_stacks_at_events_and_samples_between_two(tool: RunTool, compile_c: CompileC, tmp_path: Path) -> None:
    # GIVEN a program that computes between two writes
    trace = tmp_path / "trace.bin"
    record(tool, trace, compile_c(COMPUTES))
    first, second, _third = writes(trace)
    # WHEN both stacks and what is between are asked for, in one pass
    between = Wanted(first, second)
    found = collect(trace, [Wanted(first), between, Wanted(second)])
    # THEN stacks have functions and lines, and samples are of the computation
    names = [frame.function for frame in found[Wanted(first)].frames]
    assert names[names.index("tell") :][:2] == ["tell", "main"]
    tell = next(frame for frame in found[Wanted(first)].frames if frame.function == "tell")
    assert tell.file.endswith(".c")
    assert tell.line == 7
    assert found[between].samples
    assert {sample[0].function for sample in found[between].samples} == {"compute"}
    assert found[between].seconds > 0


def test_activations_of_one_function_are_told_apart(
    tool: RunTool, compile_c: CompileC, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.bin"
    record(tool, trace, compile_c(COMPUTES))
    first, second, third = writes(trace)
    found = collect(trace, [Wanted(first), Wanted(second), Wanted(third)])
    mains = {next(frame.sp for frame in one.frames if frame.function == "main") for one in found.values()}
    assert len(mains) == 1


def test_python_frames_stand_where_the_interpreter_runs_them(tool: RunTool, tmp_path: Path) -> None:
    # GIVEN a Python program that writes from a method in a generator, and from a lambda
    trace = tmp_path / "trace.bin"
    record(tool, trace, sys.executable, "-c", PYTHON)
    # WHEN the stacks of both writes are read
    found = collect(trace, [Wanted(event) for event in writes(trace)[-2:]], StackReader())
    stacks = [
        [(frame.function, frame.line) for frame in one.frames if frame.kind == "python"]
        for one in found.values()
    ]
    # THEN the frames are in order, with lines, and nothing of the interpreter lies between them
    assert stacks == [
        [("Writer.write", 5), ("generate", 7), ("<module>", 9)],
        [("<lambda>", 10), ("<module>", 10)],
    ]
    for one in found.values():
        functions = [frame.function for frame in one.frames]
        assert not any(name.startswith("_PyEval") for name in functions)
        assert functions[0] in ("write", "__write")


def test_events_beyond_the_log_are_left_out(tool: RunTool, compile_c: CompileC, tmp_path: Path) -> None:
    trace = tmp_path / "trace.bin"
    record(tool, trace, compile_c(COMPUTES))
    assert collect(trace, [Wanted(10**9)]) == {}
