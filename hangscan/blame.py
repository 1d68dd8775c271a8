"""Which frame of a stack is the application's, and whom a wait is to be blamed on."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from hangscan.knowledge import Knowledge, LoopRule, Pattern
from replayer.backtrace import StackFrame

_SYSTEM_FOLDERS = (
    "/usr/lib/",
    "/usr/lib32/",
    "/usr/lib64/",
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/usr/local/lib/",
    "/opt/",
)
_STANDARD_LIBRARY = re.compile(r"/lib(?:64)?/python3\.\d+/")
_INTERPRETER = re.compile(r"/(?:lib)?python3[^/]*$")
_STARTERS = ("_start", "__libc_start_main", "__libc_start_call_main", "clone", "clone3", "start_thread",
             "__clone", "__clone3")  # fmt: skip


def is_interpreter(module: str) -> bool:
    """Whether an ELF file is CPython itself."""
    return bool(_INTERPRETER.search(module))


def is_library(frame: StackFrame) -> bool:
    """Whether a frame is of a system library, of Python's standard library, or of an installed package."""
    if frame.kind == "python":
        if frame.file.startswith("<frozen"):
            return True
        return bool(_STANDARD_LIBRARY.search(frame.file)) or "/dist-packages/" in frame.file
    if is_interpreter(frame.module) or frame.function in _STARTERS or not frame.module.startswith("/"):
        return True
    if _STANDARD_LIBRARY.search(frame.module):
        return True
    if frame.module.startswith(_SYSTEM_FOLDERS):
        return True
    return frame.module.startswith("/usr/") and ".so" in os.path.basename(frame.module)


def wants_lines(module: str) -> bool:
    """Whether source lines of a module's frames are worth reading."""
    return (
        not module.startswith(_SYSTEM_FOLDERS)
        and not is_interpreter(module)
        and "/lib-dynload/" not in module
    )


def blamed_index(stack: Sequence[StackFrame], end: int | None = None) -> int:
    """The innermost frame of the application (before frame `end`, that of the loop), -1 when there is none.

    Where everything is a library's, that is the innermost Python frame outside the standard library, else
    the innermost native frame that is not of the C library.
    """
    limit = len(stack) if end is None else end
    for index in range(limit):
        if not is_library(stack[index]):
            return index
    for index in range(limit):
        frame = stack[index]
        if frame.kind == "python" and not frame.file.startswith("<frozen"):
            return index
    for index in range(limit):
        name = os.path.basename(stack[index].module)
        if name and not name.startswith(("libc.so", "libc-", "libpthread", "ld-linux")):
            return index
    return 0 if limit else -1


def pattern_of(stack: Sequence[StackFrame], knowledge: Knowledge) -> tuple[int, Pattern] | None:
    """The pattern that tells most of a stack: the outermost `whole` one within the run of library frames,
    else the innermost of any sort. With the index of its frame."""
    first: tuple[int, Pattern] | None = None
    outer: tuple[int, Pattern] | None = None
    for index, frame in enumerate(stack):
        pattern = knowledge.patterns.match(frame)
        if pattern is not None:
            if first is None:
                first = (index, pattern)
            if pattern.whole and (outer is None or outer[1].kind == pattern.kind):
                outer = (index, pattern)
        if not is_library(frame) and frame.kind != "inlined":
            break
    return outer or first


def loop_of(stack: Sequence[StackFrame], knowledge: Knowledge) -> tuple[int, LoopRule] | Pattern | None:
    """What a wait's stack tells: the loop whose idle wait it is (with the index of the loop's frame), the
    pattern that blocks, or None."""
    for index, frame in enumerate(stack):
        pattern = knowledge.patterns.match(frame)
        if pattern is not None and pattern.kind not in ("lock", "thread"):
            return pattern
        rule = knowledge.loops.match(frame)
        if rule is not None:
            for further in stack[index + 1 :]:
                outer = knowledge.patterns.match(further)
                if outer is not None and outer.nested:
                    return outer
                if not is_library(further):
                    break
            return index, rule
        if not is_library(frame) and frame.kind == "python":
            break
    return None
