"""Names of C++ and Rust functions as their programmers wrote them.

The C++ runtime library that is on the machine does the work (`__cxa_demangle` of libstdc++ or libc++abi),
called through ctypes; without one, names stay as they are.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from collections.abc import Callable
from functools import cache

_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1")
_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
_RUST_ESCAPES = {
    "$LT$": "<", "$GT$": ">", "$LP$": "(", "$RP$": ")", "$C$": ",", "$BP$": "*", "$RF$": "&", "$SP$": "@",
    "$u20$": " ", "$u27$": "'", "$u5b$": "[", "$u5d$": "]", "$u7b$": "{", "$u7d$": "}", "$u7e$": "~",
}  # fmt: skip
_SUFFIX = re.compile(r"\.(?:cold|part|isra|constprop|lto_priv|llvm)\b.*$")


@cache
def demangle(name: str) -> str:
    """The readable form of a symbol, or the symbol itself; suffixes that compilers add are left out."""
    base = _SUFFIX.sub("", name)
    if base.startswith("_R"):
        return rust_v0(base) or base
    if not base.startswith("_Z"):
        return base
    function = _library()
    text = function(base) if function is not None else None
    if text is None:
        return base
    if _RUST_HASH.search(text):
        text = _RUST_HASH.sub("", text)
        for escape, mark in _RUST_ESCAPES.items():
            text = text.replace(escape, mark)
        text = text.replace("..", "::").removeprefix("_")
    return text


def short(name: str) -> str:
    """A demangled name without its parameter list: what people call the function."""
    depth = 0
    for index, mark in enumerate(name):
        if mark in "<[{":
            depth += 1
        elif mark in ">]}" and depth:
            depth -= 1
        elif mark == "(" and depth == 0 and index and not name.startswith("(anonymous", index):
            if name[:index].endswith("operator"):
                continue
            return name[:index]
    return name


@cache
def _library() -> Callable[[str], str | None] | None:
    for name in _LIBRARIES:
        try:
            return _caller(ctypes.CDLL(name))
        except (OSError, AttributeError):
            continue
    return None


def _caller(library: ctypes.CDLL) -> Callable[[str], str | None]:
    """A function that demangles by a C++ runtime library; AttributeError when that cannot."""
    function = library.__cxa_demangle
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]

    def call(mangled: str) -> str | None:
        status = ctypes.c_int()
        result = function(mangled.encode(), None, None, ctypes.byref(status))
        if not result:
            return None
        text = ctypes.string_at(result).decode("utf-8", "replace")
        free(result)
        return text

    return call


def rust_v0(name: str) -> str | None:
    """The path in a Rust symbol of the v0 scheme, generic arguments left out; None when it is none."""
    parts: list[str] = []
    position = 2
    while position < len(name):
        found = re.compile(r"(?:s[0-9a-zA-Z]*_)?(\d+)_?").match(name, position)
        if found is None:
            position += 1
            continue
        size = int(found[1])
        start = found.end()
        if not size or start + size > len(name):
            position += 1
            continue
        word = name[start : start + size]
        parts.append(word)
        position = start + size
    return "::".join(parts) or None
