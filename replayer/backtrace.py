"""Stacks as programmers read them: native and Python frames in one list, with functions, files and lines.

The frames of the interpreter's evaluation function are replaced by the Python frames it runs, and the
interpreter's own plumbing between them is left out. Inlined calls are frames of their own.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from replayer.cfi import CfiError
from replayer.demangle import demangle, short
from replayer.lines import Lines, Place
from replayer.memory import Mapping, Memory, MemoryFault
from replayer.pystack import Interpreter, PythonFrame
from replayer.registers import Registers
from replayer.symbols import DEBUG_FOLDERS, Module, Opener, open_path
from replayer.unwind import Frame, Unwinder

_OUTERMOST = (
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "__clone",
    "clone3",
)
_EVALUATION = ("_PyEval_EvalFrameDefault", "_TAIL_CALL_")
_PLUMBING = (
    "_PyObject_", "PyObject_", "cfunction_", "method_vectorcall", "vectorcall_", "_PyVectorcall", "slot_tp_",
    "type_call", "PyCFunction_", "_PyEval_", "PyVectorcall_", "method_call", "property_descr_get",
    "wrap_call", "type_new", "type_vectorcall",
    "object_vacall", "_PyFunction_Vectorcall", "_Py_HandlePending",
    "_PyCFunction",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One frame. `kind` is "native", "inlined", "python" or "tail" (a function that left its frame to the one
    it called last); `file` and `line` are "" and 0 where unknown.

    `module` is the path of the ELF file, for Python frames that of the interpreter. `sp` is where
    the caller's stack pointer is when the frame has returned, which tells activations of one function apart;
    `pc` is 0 for Python frames, `offset` (the pc as linked) where the module is not known, too.
    """

    function: str
    file: str
    line: int
    module: str
    kind: str
    sp: int = 0
    pc: int = 0
    offset: int = 0

    def __str__(self) -> str:
        place = f" at {self.file}:{self.line}" if self.file and self.line else f" in {self.module}"
        return f"{self.function}{place}"


class StackReader:
    """Reads stacks of one address space after another; what it learnt about files is kept."""

    def __init__(self, opener: Opener = open_path, wants_lines: Callable[[str], bool] | None = None) -> None:
        """`wants_lines` says of a module's path whether its DWARF is read at all (None: of every one)."""
        self._opener = opener
        self._wants_lines = wants_lines
        self._lines: dict[str, list[Lines]] = {}
        self._places: dict[tuple[str, int], tuple[StackFrame, ...]] = {}
        self._interpreters: dict[int, Interpreter | None] = {}
        self._unwinders: dict[int, tuple[Sequence[Mapping], Unwinder]] = {}
        self._streams: list[IO[bytes]] = []
        self._targets: dict[tuple[str, int], StackFrame | None] = {}

    def close(self) -> None:
        """Close the files whose lines were read."""
        for stream in self._streams:
            stream.close()
        self._streams.clear()

    def read(
        self,
        pid: int,
        memory: Memory,
        mappings: Sequence[Mapping],
        registers: Registers,
        tid: int,
        limit: int = 256,
    ) -> tuple[StackFrame, ...]:
        """The stack of the thread with recorded id `tid`; `pid` is any key for its address space.

        The same `mappings` object means that nothing was mapped since: what was learnt then is used again.
        """
        before = self._unwinders.get(pid)
        if before is None or before[0] is not mappings:
            unwinder = Unwinder(memory, mappings, self._opener, before[1] if before is not None else None)
            self._unwinders[pid] = (mappings, unwinder)
            if self._interpreters.get(pid) is None:
                self._interpreters[pid] = Interpreter.find(memory, mappings, self._opener)
        else:
            unwinder = before[1]
        native = unwinder.backtrace(registers, limit)
        interpreter = self._interpreters[pid]
        python = interpreter.stack(tid) if interpreter is not None else []
        path = interpreter.path if interpreter is not None else ""
        return tuple(self._merge(native, python, path, unwinder))

    def _merge(
        self, native: Sequence[Frame], python: Sequence[PythonFrame], path: str, unwinder: Unwinder
    ) -> list[StackFrame]:
        merged: list[StackFrame] = []
        inner = 0
        rest = list(python)
        evaluating = False
        for index, frame in enumerate(native):
            end = native[min(index + 1, len(native) - 1)].sp
            name = frame.symbol.name if frame.symbol is not None else ""
            if rest and name.startswith(_EVALUATION):
                evaluating = True
                while rest:
                    one = rest.pop(0)
                    merged.append(StackFrame(one.function, one.file, one.line, path, "python", end))
                    if one.entry:
                        break
            elif not (
                python and frame.module == path and (evaluating or not name or name.startswith(_PLUMBING))
            ):
                called = self._called(frame, inner, end, unwinder)
                if called is not None:
                    merged.append(called)
                merged.extend(self._native(frame, end, unwinder))
            inner = frame.pc - frame.symbol.offset if frame.symbol is not None else 0
        whole = any(frame.symbol is not None and frame.symbol.name in _OUTERMOST for frame in native[-4:])
        if evaluating or not whole:
            merged.extend(StackFrame(one.function, one.file, one.line, path, "python") for one in rest)
        return merged

    def _called(self, frame: Frame, inner: int, end: int, unwinder: Unwinder) -> StackFrame | None:
        """The function that a frame called, where that has left its frame to another by a tail call.

        Only looked for in modules whose lines are read; `inner` is where the function of the next inner frame
        begins, 0 where that is not known.
        """
        if not frame.index or frame.signal or (self._wants_lines and not self._wants_lines(frame.module)):
            return None
        key = (frame.module, frame.offset if frame.module else frame.pc)
        if key not in self._targets:
            self._targets[key] = self._target(frame, unwinder)
        target = self._targets[key]
        if target is None or inner == target.pc:
            return None
        return StackFrame(target.function, "", 0, target.module, "tail", end, target.pc)

    def _target(self, frame: Frame, unwinder: Unwinder) -> StackFrame | None:
        """Where the call before a return address goes: through the PLT or the GOT into another module."""
        memory = unwinder.memory
        try:
            code = memory.read(frame.pc - 6, 6)
            if code[1] == 0xE8:
                address = frame.pc + int.from_bytes(code[2:], "little", signed=True)
                stub = memory.read(address, 16).removeprefix(b"\xf3\x0f\x1e\xfa").removeprefix(b"\xf2")
                if stub[:2] != b"\xff\x25":
                    return None
                slot = address + 16 - len(stub) + 6 + int.from_bytes(stub[2:6], "little", signed=True)
            elif code[:2] == b"\xff\x15":
                slot = frame.pc + int.from_bytes(code[2:], "little", signed=True)
            else:
                return None
            to = int.from_bytes(memory.read(slot, 8), "little")
        except MemoryFault:
            return None
        module = unwinder.modules.at(to)
        symbol = module.symbol(to) if module is not None else None
        if module is None or symbol is None or symbol.offset or module.path == frame.module:
            return None
        return StackFrame(short(demangle(symbol.name)), "", 0, module.path, "tail", 0, to)

    def _native(self, frame: Frame, end: int, unwinder: Unwinder) -> list[StackFrame]:
        key = (frame.module, frame.offset if frame.module else frame.pc)
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = tuple(self._resolve(frame, unwinder))
        return [
            StackFrame(one.function, one.file, one.line, one.module, one.kind, end, frame.pc, frame.offset)
            for one in known
        ]

    def _resolve(self, frame: Frame, unwinder: Unwinder) -> list[StackFrame]:
        name = "<signal handler called>" if frame.signal else ""
        if frame.symbol is not None and not frame.signal:
            name = short(demangle(frame.symbol.name))
        module = unwinder.modules.at(frame.pc)
        if not name:
            start = _function_start(module, frame.pc - bool(frame.index)) if module is not None else None
            where = start if start is not None else frame.offset or frame.pc
            name = f"{os.path.basename(frame.module) or '?'}+{where:#x}"
        found: list[Place] = []
        if module is not None:
            address = frame.pc - module.bias - (1 if frame.index and not frame.signal else 0)
            for lines in self._lines_of(module):
                found = lines.at(address)
                if found:
                    break
        frames = [
            StackFrame(short(demangle(place.function)), place.file, place.line, frame.module, "inlined")
            for place in found[:-1]
        ]
        last = found[-1] if found else None
        frames.append(
            StackFrame(name, last.file if last else "", last.line if last else 0, frame.module, "native")
        )
        return frames

    def _lines_of(self, module: Module) -> list[Lines]:
        """Line tables of the module's own file and of its separate debug file."""
        if module.path not in self._lines:
            found: list[Lines] = []
            wanted = self._wants_lines is None or self._wants_lines(module.path)
            for stream in self._debug_streams(module) if wanted else []:
                self._streams.append(stream)
                found.append(Lines(stream))
            self._lines[module.path] = found
        return self._lines[module.path]

    def _debug_streams(self, module: Module) -> list[IO[bytes]]:
        streams: list[IO[bytes]] = []
        file = module._own_file()
        if file is not None:
            with suppress(OSError, ValueError):
                streams.append(io.BytesIO(file._map))
        identity = module._image.build_id(module.bias)
        if identity is not None:
            text = identity.hex()
            for folder in DEBUG_FOLDERS:
                with suppress(OSError):
                    streams.append(open(f"{folder}/.build-id/{text[:2]}/{text[2:]}.debug", "rb"))  # noqa: SIM115
        return streams


def _function_start(module: Module, pc: int) -> int | None:
    """Where the function that has no name begins, as linked, by the unwind tables."""
    for table in module.frames():
        with suppress(CfiError, MemoryFault):
            entry = table.find(pc)
            if entry is not None:
                return entry.start - module.bias
    return None
