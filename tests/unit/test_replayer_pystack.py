"""Python stacks from memory: location tables, texts, layouts; names and lines of native code."""

from __future__ import annotations

import ast
import dis
import inspect
import json.decoder
import os
import struct
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from replayer.demangle import demangle, short
from replayer.lines import Lines
from replayer.memory import MemoryFault
from replayer.pylayout import LayoutError, layout_of, line_of, read_text
from replayer.pystack import Interpreter, symbols_of


def code_objects() -> list[types.CodeType]:
    """Code of several real modules, nested functions included."""
    found: list[types.CodeType] = []
    for module in (ast, inspect, json.decoder, os, dis):
        source = Path(str(module.__file__)).read_text()
        pending = [compile(source, str(module.__file__), "exec")]
        while pending:
            code = pending.pop()
            found.append(code)
            pending += [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return found


def test_lines_agree_with_the_interpreters_own() -> None:
    # GIVEN every instruction of some modules of the standard library
    for code in code_objects():
        for start, end, line in code.co_lines():
            # WHEN its line is looked up in the location table
            for offset in (start, end - 2):
                # THEN it is what the interpreter says
                assert line_of(code.co_linetable, code.co_firstlineno, offset) == (line or 0)


def test_a_damaged_table_gives_no_line() -> None:
    assert line_of(b"", 1, 0) == 0
    assert line_of(b"\xff" * 3, 1, 100) == 0
    assert line_of(b"\xe8\xff\xff\xff", 1, 1000) == 0


class Bytes:
    """Memory of a few blocks."""

    def __init__(self, blocks: dict[int, bytes]) -> None:
        self.blocks = blocks

    def read(self, address: int, size: int) -> bytes:
        for start, data in self.blocks.items():
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        raise MemoryFault(address, size)


def test_layouts_by_version() -> None:
    memory = Bytes({0x1000: bytes(64)})
    assert layout_of(memory, 0x1000, 0x030B07F0).version == (3, 11)
    assert layout_of(memory, 0x1000, 0x030C01F0).version == (3, 12)
    for version in (0x030A00F0, None):
        with pytest.raises(LayoutError, match="is not one whose stacks can be read"):
            layout_of(memory, 0x1000, version)


def test_a_self_description_that_makes_no_sense_is_refused() -> None:
    described = b"xdebugpy" + struct.pack("<Q", 0x030D00F0) + b"\xff" * 800
    with pytest.raises(LayoutError, match="make no sense"):
        layout_of(Bytes({0x1000: described}), 0x1000, None)
    future = b"xdebugpy" + struct.pack("<Q", 0x04000000) + bytes(800)
    with pytest.raises(LayoutError, match=r"4\.0"):
        layout_of(Bytes({0x1000: future}), 0x1000, None)


@pytest.mark.parametrize(("version", "shift"), [(0x030D00F0, 0), (0x030E00F0, 1)])
def test_an_interpreter_describes_itself(version: int, shift: int) -> None:
    # GIVEN offsets that are their own positions in the table
    words = struct.pack("<120Q", *range(120))
    described = b"xdebugpy" + struct.pack("<QQ", version, 0) + words
    # WHEN the layout is read
    layout = layout_of(Bytes({0x1000: described}), 0x1000, None)
    # THEN each field is where this version has it (3.14 has threads_main and two counters more)
    assert layout.version == (3, 13 + shift)
    assert layout.interpreters_head == 2
    assert (layout.interpreter_next, layout.threads_head) == (5, 6)
    thread = 3 + 13 + 3 * shift
    assert (layout.thread_next, layout.thread_frame) == (thread + 2, thread + 4)
    frame = thread + 9
    assert (layout.frame_previous, layout.frame_code, layout.frame_owner) == (frame + 1, frame + 2, frame + 5)
    code = frame + 6 + 2 * shift
    assert (layout.code_filename, layout.code_bytes) == (code + 1, code + 9)
    assert layout.tagged == bool(shift)


@pytest.mark.parametrize("text", ["plain", "grün", "日本語", "🙂 wide", ""])
def test_texts_of_every_width(text: str) -> None:
    # GIVEN a str object as CPython 3.11 lays it out
    widest = max(map(ord, text), default=0)
    kind = 1 if widest < 256 else 2 if widest < 65536 else 4
    ascii_only = text.isascii()
    state = kind << 2 | 1 << 5 | ascii_only << 6
    coding = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[kind]
    head = struct.pack("<QQQQI", 1, 0, len(text), 0, state).ljust(48 if ascii_only else 72, b"\0")
    memory = Bytes({0x1000: head + text.encode(coding) + bytes(8), 0x2000: bytes(64)})
    # WHEN it is read
    layout = layout_of(memory, 0x2000, 0x030B07F0)
    # THEN the text comes out
    assert read_text(memory, layout, 0x1000) == text


def test_a_process_without_python_has_no_interpreter() -> None:
    assert Interpreter.find(Bytes({}), []) is None
    assert symbols_of(Bytes({}), "/nonexistent", 0, ["x"]) == {}


# ---- names and lines ----


@pytest.mark.parametrize(
    ("symbol", "whole", "name"),
    [
        ("main", "main", "main"),
        ("_ZN3FooclEv", "Foo::operator()()", "Foo::operator()"),
        ("_ZL3barPKcf.isra.0", "bar(char const*, float)", "bar"),
        ("foo.cold", "foo", "foo"),
        ("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", "core::fmt::Formatter::write_str",
         "core::fmt::Formatter::write_str"),
        ("_RNvCs1234_7mycrate3foo", "mycrate::foo", "mycrate::foo"),
    ],
)  # fmt: skip
def test_names_are_demangled(symbol: str, whole: str, name: str) -> None:
    if symbol.startswith("_Z") and demangle("_Z1fv") == "_Z1fv":
        pytest.skip("no C++ runtime library here")
    assert demangle(symbol) == whole
    assert short(demangle(symbol)) == name


INLINED = """#include <unistd.h>
static inline __attribute__((always_inline)) long deep(int x) { return write(x, "a", 1); }
static inline __attribute__((always_inline)) long mid(int x) { return deep(x) + 1; }
__attribute__((noinline)) long outer(int x) {
  return mid(x) + 2; }
int main(void) { return outer(1) == 7; }
"""


def test_inlined_calls_come_with_their_lines(compile_c: Callable[..., Path]) -> None:
    # GIVEN a call that was inlined twice
    program = compile_c(INLINED)
    listing = subprocess.run(["objdump", "-d", program], capture_output=True, text=True, check=True).stdout
    body = listing.split("<outer>:")[1].split("\n\n")[0]
    call = next(line for line in body.splitlines() if "call" in line)
    # WHEN its address is looked up
    with program.open("rb") as stream:
        places = Lines(stream).at(int(call.split(":")[0], 16))
    # THEN the innermost comes first, the function itself last
    assert [(place.function, place.line) for place in places] == [("deep", 2), ("mid", 3), ("", 5)]


def test_a_file_without_dwarf_has_no_lines() -> None:
    with open(sys.executable, "rb") as stream:
        assert Lines(stream).at(0) == []
    import io

    assert Lines(io.BytesIO(b"no ELF at all")).at(0x1000) == []
