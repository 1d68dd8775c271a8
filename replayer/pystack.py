"""Python stacks read from memory: of CPython 3.11 to 3.14, in a live process, a replay or a core file.

`Interpreter.find` looks for `_PyRuntime` among the modules of an address space; `stack` then gives the
frames of one thread, innermost first. Nothing in the process runs for it.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from replayer.elf import SHT_DYNSYM, SHT_SYMTAB, BytesMemory, ElfError, ElfImage
from replayer.memory import CachedMemory, Mapping, Memory, MemoryFault, read_u64
from replayer.pylayout import Layout, LayoutError, layout_of, line_of, read_text
from replayer.symbols import Opener, open_path

_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_PYTHON = re.compile(r"/(lib)?python3(\.\d+)?[^/]*$")
_MAX_FILE = 1 << 30
_MAX_FRAMES = 2000
_MAX_THREADS = 10_000
_OWNED_BY_INTERPRETER = 3
_SHIM = "__init__"
"""The "file" of the code that an interpreter puts between a call of a class and its `__init__`."""


@dataclass(frozen=True, slots=True)
class PythonFrame:
    """One Python activation: qualified name, file, line (0: unknown).

    `entry` marks the outermost of the frames that one native evaluation function runs; `frame` and `code`
    are the addresses of the interpreter's own structures.
    """

    function: str
    file: str
    line: int
    entry: bool
    frame: int = 0
    code: int = 0


@dataclass(frozen=True, slots=True)
class _Code:
    function: str
    file: str
    first: int
    table: bytes
    start: int


class Interpreter:
    """The CPython interpreter in one address space. `path` is the file that holds it."""

    def __init__(self, memory: Memory, runtime: int, layout: Layout, path: str = "") -> None:
        self._memory = memory
        self._runtime = runtime
        self._codes: dict[tuple[int, int], _Code] = {}
        self.layout = layout
        self.path = path

    @classmethod
    def find(cls, memory: Memory, mappings: Sequence[Mapping], opener: Opener = open_path) -> Self | None:
        """The interpreter of an address space, None when there is none that can be read."""
        for path, start in _images(mappings):
            found = symbols_of(memory, path, start, ("_PyRuntime", "Py_Version"), opener)
            runtime = found.get("_PyRuntime")
            if runtime is None:
                continue
            with suppress(LayoutError, MemoryFault):
                at = found.get("Py_Version")
                version = read_u64(memory, at) if at is not None else None
                return cls(memory, runtime, layout_of(memory, runtime, version), path)
        return None

    def stack(self, tid: int, limit: int = _MAX_FRAMES) -> list[PythonFrame]:
        """The Python frames of the thread with kernel id `tid`, innermost first; empty when it runs none."""
        layout = self.layout
        try:
            state = self._thread(tid)
            if state is None:
                return []
            frame = read_u64(self._memory, state + layout.thread_frame)
            if layout.frame_hop and frame:
                frame = read_u64(self._memory, frame + layout.cframe_frame)
            return self._frames(frame, limit)
        except (MemoryFault, LayoutError):
            return []

    def _thread(self, tid: int) -> int | None:
        """The thread state of a kernel thread; with only one thread state, that one."""
        layout, memory = self.layout, self._memory
        states: list[int] = []
        interpreter = read_u64(memory, self._runtime + layout.interpreters_head)
        while interpreter and len(states) < _MAX_THREADS:
            state = read_u64(memory, interpreter + layout.threads_head)
            while state and len(states) < _MAX_THREADS:
                if read_u64(memory, state + layout.thread_native) == tid:
                    return state
                states.append(state)
                state = read_u64(memory, state + layout.thread_next)
            interpreter = read_u64(memory, interpreter + layout.interpreter_next)
        return states[0] if len(states) == 1 else None

    def _frames(self, frame: int, limit: int) -> list[PythonFrame]:
        layout, memory = self.layout, self._memory
        found: list[PythonFrame] = []
        seen: set[int] = set()
        while frame and frame not in seen and len(found) < limit:
            seen.add(frame)
            try:
                owner = memory.read(frame + layout.frame_owner, 1)[0]
                if layout.entry is None and owner >= _OWNED_BY_INTERPRETER:
                    if found:
                        found[-1] = _as_entry(found[-1])
                elif (one := self._frame(frame)).file != _SHIM:
                    found.append(one)
                frame = read_u64(memory, frame + layout.frame_previous)
            except MemoryFault:
                break
        return found

    def _frame(self, frame: int) -> PythonFrame:
        layout, memory = self.layout, self._memory
        at = read_u64(memory, frame + layout.frame_code)
        if layout.tagged:
            at &= ~7
        entry = layout.entry is not None and memory.read(frame + layout.entry, 1) != b"\0"
        try:
            code = self._code(at)
        except (MemoryFault, LayoutError):
            return PythonFrame("?", "", 0, entry)
        instruction = read_u64(memory, frame + layout.frame_instruction)
        line = line_of(code.table, code.first, instruction - code.start)
        return PythonFrame(code.function, code.file, line, entry, frame, at)

    def _code(self, at: int) -> _Code:
        name = read_u64(self._memory, at + self.layout.code_qualname)
        code = self._codes.get((at, name))
        if code is None:
            layout, memory = self.layout, self._memory
            table_at = read_u64(memory, at + layout.code_linetable)
            size = min(read_u64(memory, table_at + 16), 1 << 22)
            first: int = struct.unpack("<i", memory.read(at + layout.code_firstlineno, 4))[0]
            code = self._codes[at, name] = _Code(
                read_text(memory, layout, name),
                read_text(memory, layout, read_u64(memory, at + layout.code_filename)),
                first,
                memory.read(table_at + 32, size),
                at + layout.code_bytes,
            )
        return code


def _as_entry(frame: PythonFrame) -> PythonFrame:
    return replace(frame, entry=True)


def _images(mappings: Sequence[Mapping]) -> list[tuple[str, int]]:
    """Mapped ELF files that may hold an interpreter, likely ones first: path and where it starts."""
    found: dict[str, int] = {}
    for mapping in mappings:
        if mapping.path.startswith("/") and mapping.offset == 0 and mapping.path not in found:
            found[mapping.path] = mapping.start
    likely = [item for item in found.items() if _PYTHON.search(item[0])]
    first = next(iter(found.items()), None)
    if first is not None and first not in likely:
        likely.append(first)
    return likely


def symbols_of(
    memory: Memory, path: str, start: int, names: Sequence[str], opener: Opener = open_path
) -> dict[str, int]:
    """Run-time addresses of symbols of the image at `start`; those not found are left out."""
    descriptor = opener(path)
    if descriptor is None:
        return {}
    try:
        size = os.fstat(descriptor).st_size
        if size > _MAX_FILE:
            return {}
        with os.fdopen(descriptor, "rb") as file:
            data = file.read()
        image = ElfImage(BytesMemory(data))
        loaded = ElfImage(CachedMemory(memory), start)
    except (OSError, ElfError, MemoryFault):
        return {}
    bias = start - loaded.first_address
    if image.build_id() != loaded.build_id(bias):
        return {}
    sections = image.sections()
    found: dict[str, int] = {}
    for kind in (SHT_DYNSYM, SHT_SYMTAB):
        for section in sections:
            if section.kind != kind or section.link >= len(sections):
                continue
            with suppress(ElfError):
                raw = image.section_bytes(section)
                table = np.frombuffer(raw[: len(raw) // 24 * 24], _SYMBOL)
                strings = image.section_bytes(sections[section.link])
                for name in names:
                    if name not in found:
                        value = _value(table, strings, name)
                        if value is not None:
                            found[name] = value + bias
        if len(found) == len(names):
            break
    return found


def _value(table: np.ndarray, strings: bytes, name: str) -> int | None:
    """The value of a defined symbol; its name may be the end of another one in the string table."""
    wanted = name.encode() + b"\0"
    at = strings.find(wanted)
    while at >= 0:
        rows = table[(table["name"] == at) & (table["section"] != 0)]
        if len(rows):
            return int(rows["value"][0])
        at = strings.find(wanted, at + 1)
    return None
