"""Where CPython keeps what a stack needs: offsets of its structures, by version.

Interpreters from 3.13 on describe themselves (`_Py_DebugOffsets` at the start of `_PyRuntime`); for 3.11 and
3.12 the offsets are those of the x86-64 headers, which hold for all their releases.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from replayer.memory import Memory, read_u64

COOKIE = b"xdebugpy"


class LayoutError(Exception):
    """This interpreter's structures are not known (another version, or no interpreter at all)."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets in bytes. `frame_hop` is what `current_frame` of the thread state points to: 0, the frame
    itself, or 1, a `_PyCFrame` whose field `cframe_frame` does.

    `entry` is the offset of a flag of the outermost frame that one native evaluation runs, None where such
    frames are followed by one that the interpreter owns (`owner` at least 3).
    """

    version: tuple[int, int]
    interpreters_head: int
    interpreter_next: int
    threads_head: int
    thread_next: int
    thread_frame: int
    frame_hop: int
    cframe_frame: int
    thread_native: int
    thread_id: int
    frame_previous: int
    frame_code: int
    frame_instruction: int
    frame_owner: int
    entry: int | None
    code_filename: int
    code_name: int
    code_qualname: int
    code_linetable: int
    code_firstlineno: int
    code_bytes: int
    ascii_size: int
    compact_size: int
    tagged: bool = False
    frame_locals: int = 72
    code_localsnames: int = 96


_PY311 = Layout(
    version=(3, 11), interpreters_head=40, interpreter_next=0, threads_head=16, thread_next=8,
    thread_frame=56, frame_hop=1, cframe_frame=8, thread_native=160, thread_id=152,
    frame_previous=48, frame_code=32, frame_instruction=56, frame_owner=69, entry=68,
    code_filename=112, code_name=120, code_qualname=128, code_linetable=136, code_firstlineno=72,
    code_bytes=184, ascii_size=48, compact_size=72,
)  # fmt: skip
_PY312 = Layout(
    version=(3, 12), interpreters_head=40, interpreter_next=0, threads_head=72, thread_next=8,
    thread_frame=56, frame_hop=1, cframe_frame=0, thread_native=144, thread_id=136,
    frame_previous=8, frame_code=0, frame_instruction=56, frame_owner=70, entry=None,
    code_filename=112, code_name=120, code_qualname=128, code_linetable=136, code_firstlineno=68,
    code_bytes=192, ascii_size=40, compact_size=56,
)  # fmt: skip

_NAMES_313 = (
    "size finalizing interpreters_head",
    "size id next threads_head gc imports_modules sysdict builtins ceval_gil gil gil_enabled gil_locked "
    "gil_holder",
    "size prev next interp current_frame thread_id native_thread_id datastack_chunk status",
    "size previous executable instr_ptr localsplus owner",
    "size filename name qualname linetable firstlineno argcount localsplusnames localspluskinds "
    "co_code_adaptive",
)
_NAMES_314 = (
    _NAMES_313[0],
    "size id next threads_head threads_main gc imports_modules sysdict builtins ceval_gil gil gil_enabled "
    "gil_locked gil_holder code_object_generation tlbc_generation",
    _NAMES_313[2],
    "size previous executable instr_ptr localsplus owner stackpointer tlbc_index",
    _NAMES_313[4] + " co_tlbc",
)


def layout_of(memory: Memory, runtime: int, version: int | None) -> Layout:
    """The layout of the interpreter whose `_PyRuntime` is at `runtime`.

    `version` is the value of its `Py_Version` (0x030b07f0 for 3.11.7), None where it has none. LayoutError
    for what is not known, MemoryFault at a hole.
    """
    start = memory.read(runtime, 24)
    if start[:8] == COOKIE:
        return _self_described(memory, runtime, struct.unpack_from("<Q", start, 8)[0])
    major, minor = (version >> 24 & 0xFF, version >> 16 & 0xFF) if version is not None else (0, 0)
    if (major, minor) == (3, 11):
        return _PY311
    if (major, minor) == (3, 12):
        return _PY312
    raise LayoutError(f"Python {major}.{minor} is not one whose stacks can be read (3.11 to 3.14)")


def _self_described(memory: Memory, runtime: int, version: int) -> Layout:
    number = (version >> 24 & 0xFF, version >> 16 & 0xFF)
    if number == (3, 13):
        names = _NAMES_313
    elif number == (3, 14):
        names = _NAMES_314
    else:
        raise LayoutError(
            f"Python {number[0]}.{number[1]} is not one whose stacks can be read (3.11 to 3.14)"
        )
    at = runtime + 24
    tables: list[dict[str, int]] = []
    for group in names:
        words = group.split()
        values = struct.unpack(f"<{len(words)}Q", memory.read(at, 8 * len(words)))
        if any(value > 1 << 24 for value in values):
            raise LayoutError("the offsets that this Python tells of itself make no sense")
        tables.append(dict(zip(words, values, strict=True)))
        at += 8 * len(words)
    runtime_state, interpreter, thread, frame, code = tables
    return Layout(
        version=number,
        interpreters_head=runtime_state["interpreters_head"],
        interpreter_next=interpreter["next"],
        threads_head=interpreter["threads_head"],
        thread_next=thread["next"],
        thread_frame=thread["current_frame"],
        frame_hop=0,
        cframe_frame=0,
        thread_native=thread["native_thread_id"],
        thread_id=thread["thread_id"],
        frame_previous=frame["previous"],
        frame_code=frame["executable"],
        frame_instruction=frame["instr_ptr"],
        frame_owner=frame["owner"],
        entry=None,
        code_filename=code["filename"],
        code_name=code["name"],
        code_qualname=code["qualname"],
        code_linetable=code["linetable"],
        code_firstlineno=code["firstlineno"],
        code_bytes=code["co_code_adaptive"],
        ascii_size=40,
        compact_size=56,
        tagged=number >= (3, 14),
        frame_locals=frame["localsplus"],
        code_localsnames=code["localsplusnames"],
    )


def read_text(memory: Memory, layout: Layout, address: int, limit: int = 4096) -> str:
    """The text of a str object; at most `limit` characters. LayoutError when it is none, MemoryFault."""
    length = read_u64(memory, address + 16)
    state: int = struct.unpack("<I", memory.read(address + 32, 4))[0]
    if length > 1 << 24:
        raise LayoutError("no str object")
    for shift in (2, 8, 16):
        kind = state >> shift & 7
        compact, is_ascii = state >> shift + 3 & 1, state >> shift + 4 & 1
        if kind in (1, 2, 4) and compact:
            start = address + (layout.ascii_size if is_ascii else layout.compact_size)
            data = memory.read(start, min(length, limit) * kind)
            coding = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[kind]
            return data.decode(coding, "replace")
    raise LayoutError("no str object")


def line_of(table: bytes, first: int, offset: int) -> int:
    """The line of the instruction at byte `offset` by a code object's location table; 0 where it has none.

    The form of the table: Objects/locations.md of CPython 3.11.
    """
    position = 0
    line = first
    end = 0
    while position < len(table):
        head = table[position]
        position += 1
        code = head >> 3 & 15
        end += ((head & 7) + 1) * 2
        here: int | None = None
        if code == 15:
            here = 0
        elif code in (13, 14):
            delta, position = _signed(table, position)
            line += delta
            if code == 14:
                for _ in range(3):
                    _value, position = _unsigned(table, position)
        elif code >= 10:
            line += code - 10
            position += 2
        else:
            position += 1
        if offset < end:
            return line if here is None else here
    return 0


def _unsigned(table: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(table):
        byte = table[position]
        position += 1
        value |= (byte & 63) << shift
        if not byte & 64:
            break
        shift += 6
    return value, position


def _signed(table: bytes, position: int) -> tuple[int, int]:
    value, position = _unsigned(table, position)
    return (-(value >> 1) if value & 1 else value >> 1), position
