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
_INTERPRETER = re.compile(r"/(?:(?:lib)?python3[^/]*|node(?:js)?|libnode\.so[^/]*)$")
_C_LIBRARY = re.compile(r"libc[.-]|libpthread|ld-linux")
_BASE = re.compile(
    r"libc[.-]|libpthread|ld-linux|libm[.-]|libstdc\+\+|libgcc_s|libglib-|libgio-|libgobject-|libgmodule-|"
    r"libdbus-|libX11[.-]|libxcb[.-]|libffi"
)
_TOOLKIT = re.compile(
    _BASE.pattern
    + r"|libgtk-|libgdk[-_]|libpango|libcairo|libatk|libatspi|libharfbuzz|libfontconfig|libfreetype|"
    r"librsvg|libX[a-zA-Z]+[.-]|libxcb-|libwayland|libepoxy|libGL|libEGL|libQt[56]|libtcl|libtk|libpython|"
    r"libsqlite3|libcurl|libssl|libcrypto|libgnutls|libsoup|libuv|libevent|swrast_dri|iris_dri|libgallium|"
    r"_?[a-z]+\.cpython-|gi\.cpython|libgvfs|libdconf"
)
_BINDING = re.compile(
    r"/(?:_?[A-Za-z]+\.(?:cpython-|abi3)|gi/_gi|libpyside|libshiboken|libtcl|libtk|libffi)"
)
_NEAR = 8
_STARTERS = ("_start", "__libc_start_main", "__libc_start_call_main", "clone", "clone3", "start_thread",
             "__clone", "__clone3")  # fmt: skip


def is_interpreter(module: str) -> bool:
    """Whether an ELF file is CPython itself, or Node.js."""
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

    Where everything is a library's, that is the innermost Python frame outside the frozen modules, else the
    innermost frame of a library that is no toolkit's, else of one above GLib, Xlib and their like, else the
    innermost outside the C library.
    """
    limit = len(stack) if end is None else end
    inner = range(limit)
    for index in inner:
        if not is_library(stack[index]):
            return index
    for index in inner:
        frame = stack[index]
        if frame.kind == "python" and not frame.file.startswith("<frozen"):
            return index
    for base in (_TOOLKIT, _BASE, _C_LIBRARY):
        for index in inner:
            module = stack[index].module
            if module and not base.match(os.path.basename(module)):
                return _named(stack, index, limit)
    return 0 if limit else -1


def _named(stack: Sequence[StackFrame], index: int, limit: int) -> int:
    """The frame, or where it has no name the first one with a name that follows it in the same module."""
    for further in range(index, limit):
        if stack[further].module != stack[index].module:
            break
        if "+0x" not in stack[further].function:
            return further
    return index


def is_complete(stack: Sequence[StackFrame]) -> bool:
    """Whether a stack reaches to where its thread began."""
    return any(frame.function in _STARTERS for frame in stack[-4:])


def pattern_of(stack: Sequence[StackFrame], knowledge: Knowledge) -> tuple[int, Pattern] | None:
    """The pattern that tells most of a stack: within the run of library frames, the outermost of the same
    kind as the innermost one. With the index of its frame."""
    found: tuple[int, Pattern] | None = None
    for index, frame in enumerate(stack):
        pattern = knowledge.patterns.match(frame)
        if pattern is not None and (
            found is None or _alike(pattern, found[1]) or (pattern.whole and not found[1].whole)
        ):
            found = (index, pattern)
        if not is_library(frame) and frame.kind != "inlined":
            break
    return found


def _alike(one: Pattern, other: Pattern) -> bool:
    """Whether two patterns may tell of the same wait."""
    return one.kind == other.kind or {one.kind, other.kind} == {"thread", "lock"}


def _outermost(
    stack: Sequence[StackFrame], index: int, rule: LoopRule, knowledge: Knowledge
) -> tuple[int, LoopRule]:
    """The last of the frames from `index` outwards that follow each other and are of one toolkit's loop."""
    while index + 1 < len(stack):
        following = knowledge.loops.match(stack[index + 1])
        if following is None or following.toolkit != rule.toolkit:
            break
        index, rule = index + 1, following
    return index, rule


def _caller(stack: Sequence[StackFrame], index: int, rule: LoopRule) -> int:
    """The application's innermost frame outside frame `index`; this where there is none, or where a library
    other than a language's binding calls it and that tells nothing."""
    for at in range(index + 1, len(stack)):
        frame = stack[at]
        if not is_library(frame):
            return at
        through = frame.kind == "python" or is_interpreter(frame.module) or _BINDING.search(frame.module)
        if rule.pulled == "directly" and not through:
            return index
    return index


def loop_of(stack: Sequence[StackFrame], knowledge: Knowledge) -> tuple[int, LoopRule] | Pattern | None:
    """What a wait's stack tells: the loop whose idle wait it is (with the index of the loop's frame, the
    outermost of those that follow each other, or their caller: handlers may be called from there), the
    pattern that blocks, or None."""
    for index, frame in enumerate(stack):
        pattern = knowledge.patterns.match(frame)
        if pattern is not None and pattern.kind not in ("lock", "thread"):
            return pattern
        rule = knowledge.loops.match(frame) if index < _NEAR else None
        if rule is not None:
            index, rule = _outermost(stack, index, rule, knowledge)
            for at in range(index + 1, len(stack)):
                outer = knowledge.patterns.match(stack[at])
                if outer is not None and outer.nested:
                    return outer
                outer_rule = knowledge.loops.match(stack[at])
                if outer_rule is not None and outer_rule.toolkit == "Qt":
                    index, rule = _outermost(stack, at, outer_rule, knowledge)
                    break
                if outer_rule is None and not is_library(stack[at]):
                    break
            return (_caller(stack, index, rule) if rule.pulled else index), rule
        if not is_library(frame) and frame.kind == "python":
            break
    return None
