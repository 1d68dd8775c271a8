"""Functions of a library that share state, and so must be cut together (isolation)."""

from __future__ import annotations

import re
from collections import Counter

from interfaces.libspec.model import Function, Interface

WHOLE = ("libc", "pthread")
"""Interfaces that are one component: descriptors, streams and locks go through all of them."""
_ALLOCATED = frozenset({"new", "object", "alloc", "realloc", "free"})
_GIVEN = frozenset({"in", "inout", "string", "strings"})
_UNTYPED = frozenset({"data", "ignore", "value"})
_STATE = "state"


def components(interface: Interface) -> dict[str, str]:
    """Function -> component. A component is named after what its functions share, or after its one function.

    Functions share state when they take or return the same kind of handle or structure, or memory that the
    library allocates. One that takes a pointer to anything (`curl_easy_setopt`) may be given any of these,
    and ties them all together. A function with none of these that computes from given memory or text
    (`crc32`) stands alone; any other may use the library's own state, and goes with the largest component.
    """
    if interface.name in WHOLE:
        return dict.fromkeys(interface.functions, interface.name)
    keys = {name: _keys(function) for name, function in interface.functions.items()}
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        while parent.setdefault(key, key) != key:
            key = parent[key]
        return key

    for found in keys.values():
        first, *rest = sorted(found) or [""]
        for key in rest:
            parent[root(key)] = root(first)
    if any(_takes_anything(function) for function in interface.functions.values()):
        every = sorted({key for found in keys.values() for key in found})
        for key in every[1:]:
            parent[root(key)] = root(every[0])
    sizes = Counter(root(min(found)) for found in keys.values() if found)
    uses = Counter(key for found in keys.values() for key in found)
    largest = sizes.most_common(1)[0][0] if sizes else _STATE
    names = {group: max((k for k in uses if root(k) == group), key=lambda k: uses[k]) for group in sizes}
    placed = {}
    for name, function in interface.functions.items():
        if keys[name]:
            placed[name] = names[root(min(keys[name]))]
        elif _computes(function):
            placed[name] = name
        else:
            placed[name] = names.get(largest, _STATE)
    return placed


def main_component(placed: dict[str, str]) -> str:
    """The component with most functions."""
    return Counter(placed.values()).most_common(1)[0][0]


def _keys(function: Function) -> set[str]:
    found = set()
    kinds = [(function.returns, function.result)]
    kinds += [(parameter.type, role) for parameter in function.parameters for role in parameter.roles]
    for kind, role in kinds:
        if any(part.kind in _ALLOCATED for part in role.parts):
            found.add("memory")
        pointee = re.sub(r"\b(const|volatile|struct|union)\b|[*\s]", "", kind.pointee)
        if pointee and (
            kind.pointee_kind == "struct"
            or any(part.kind == "handle" for part in role.parts)
            or (kind.pointee_kind == "pointer" and "void" not in kind.pointee and "char" not in kind.pointee)
        ):
            found.add(pointee)
    return found


def _takes_anything(function: Function) -> bool:
    return any(
        parameter.type.kind == "pointer"
        and parameter.type.pointee_kind == "void"
        and any(part.kind in _UNTYPED for role in parameter.roles for part in role.parts)
        for parameter in function.parameters
    )


def _computes(function: Function) -> bool:
    roles = [role for parameter in function.parameters for role in parameter.roles]
    return any(part.kind in _GIVEN for role in roles for part in role.parts)
